//! The key file of a local server.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::context::SecretContext;
use crate::envelope::{KEY_BYTES, Key, decrypt, encrypt, random_key};
use crate::error::{KeyFileError, SecretError};

/// Maximum size of a key file in bytes. A key takes 44 bytes, and may be followed by a line break.
const MAX_FILE_BYTES: u64 = 256;
/// Permission bits of users other than the owner.
const OF_OTHERS: u32 = 0o077;
/// The name of the layer that contains the data key.
const KEY_LAYER: &str = "mlflow-serverless data key";
/// Length of the id of the key, which precedes the wrapped data key.
const ID_BYTES: usize = 8;

/// A key that was read from a file. It wraps data keys.
pub struct KeyFile {
    key: Key,
    /// Identifies the key: the beginning of a hash that is keyed with it. With this id, a secret
    /// that was sealed with another key can be distinguished from a secret that was changed.
    id: [u8; ID_BYTES],
}

impl KeyFile {
    /// Reads a key file.
    ///
    /// # Errors
    /// A [`KeyFileError`] if the file cannot be read, is accessible to users other than its owner, or
    /// does not contain a key.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let io = |source| KeyFileError::Io { path: path.to_owned(), source };
        if !fs::metadata(path).map_err(io)?.is_file() {
            return Err(io(io::Error::other("it is not a file")));
        }
        let file = File::open(path).map_err(io)?;
        // The permissions of the open file are checked, because it may have replaced the file at
        // this path after the check above.
        let permissions = file.metadata().map_err(io)?.permissions();
        if permissions.mode() & OF_OTHERS != 0 {
            return Err(KeyFileError::Permissions { path: path.to_owned() });
        }
        let mut text = Zeroizing::new(Vec::with_capacity(usize::try_from(MAX_FILE_BYTES).unwrap_or_default() + 1));
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).map_err(io)?;
        let is_long = text.len() as u64 > MAX_FILE_BYTES;
        let decoded = STANDARD.decode(text.trim_ascii()).map(Zeroizing::new);
        let key =
            decoded.ok().filter(|_| !is_long).and_then(|decoded| <[u8; KEY_BYTES]>::try_from(decoded.as_slice()).ok());
        let key = key.ok_or_else(|| KeyFileError::Malformed { path: path.to_owned() })?;
        Ok(Self::of(Key::new(key)))
    }

    /// Creates a key file with a new key. Only the owner may read it.
    ///
    /// # Errors
    /// A [`KeyFileError`] if the file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, KeyFileError> {
        let io = |source| KeyFileError::Io { path: path.to_owned(), source };
        let key = random_key().map_err(|error| io(io::Error::other(error)))?;
        let mut text = Zeroizing::new(String::with_capacity(2 * KEY_BYTES));
        STANDARD.encode_string(*key, &mut text);
        text.push('\n');
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(io)?;
        if let Err(source) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
            // The file can be deleted, because no secret was sealed with the key yet. If deleting
            // it fails as well, an incomplete file is reported when it is read.
            let _ = fs::remove_file(path);
            return Err(io(source));
        }
        sync_directory(path).map_err(io)?;
        Ok(Self::of(key))
    }

    fn of(key: Key) -> Self {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &*key), b"mlflow-serverless key id");
        let id = tag.as_ref().first_chunk().copied().unwrap_or_default();
        Self { key, id }
    }

    /// Returns a new data key, and the same key wrapped.
    pub(crate) fn data_key(&self, context: &SecretContext<'_>) -> Result<(Key, Vec<u8>), SecretError> {
        let key = random_key()?;
        let wrapped = encrypt(&self.key, &*key, &context.authenticated_data(KEY_LAYER))?;
        Ok((key, [self.id.as_slice(), &wrapped].concat()))
    }

    /// Unwraps a data key.
    pub(crate) fn unwrap(&self, wrapped: &[u8], context: &SecretContext<'_>) -> Result<Key, SecretError> {
        let (id, wrapped) = wrapped.split_first_chunk::<ID_BYTES>().ok_or(SecretError::Tampered)?;
        if *id != self.id {
            return Err(SecretError::KeyUnavailable("the secret was sealed with the key of another file".to_owned()));
        }
        let key = Zeroizing::new(decrypt(&self.key, wrapped, &context.authenticated_data(KEY_LAYER))?);
        Ok(Key::new(key.as_slice().try_into().map_err(|_| SecretError::Tampered)?))
    }
}

/// Makes the creation of a file durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyFile(…)")
    }
}

#[cfg(test)]
mod tests;
