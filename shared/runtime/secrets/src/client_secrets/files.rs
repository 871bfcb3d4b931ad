//! Client secrets in files, for a local server.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use zeroize::Zeroizing;

use super::error::ClientSecretError;
use super::{MAX_CLIENT_SECRET_BYTES, client_secret};
use crate::secret::Secret;

/// Permission bits of users other than the owner.
const OF_OTHERS: u32 = 0o077;

/// Reads a client secret from a file, which only its owner may have access to.
pub(super) fn read(path: &Path) -> Result<Secret, ClientSecretError> {
    let place = || path.display().to_string();
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ClientSecretError::Missing { place: place() },
        _ => ClientSecretError::Io { path: path.to_owned(), source },
    };
    if !fs::metadata(path).map_err(io)?.is_file() {
        return Err(io(io::Error::other("it is not a file")));
    }
    let file = File::open(path).map_err(io)?;
    // The permissions of the open file are checked, because it may have replaced the file at this
    // path after the check above.
    if file.metadata().map_err(io)?.permissions().mode() & OF_OTHERS != 0 {
        return Err(ClientSecretError::Permissions { path: path.to_owned() });
    }
    // Two more bytes than the limit, for a line break and to detect a longer file.
    let most = MAX_CLIENT_SECRET_BYTES + 2;
    let mut text = Zeroizing::new(Vec::with_capacity(most));
    file.take(most as u64).read_to_end(&mut text).map_err(io)?;
    client_secret(&text, place)
}
