//! The file with the user's tokens: by the origin of the server, so that a token is never sent to
//! another server. Only the user can read it.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::Failure;

/// Name of the file in the directory for configuration.
const FILE: &str = "mlflow-serverless/tokens.json";
/// Bits of a file's mode that permit access to other users.
const OF_OTHERS: u32 = 0o077;

/// A token that was issued to this machine.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredToken {
    /// The token.
    pub(crate) token: String,
    /// Name of its user.
    pub(crate) user: String,
    /// When it expires, in seconds since 1970.
    pub(crate) expires: i64,
}

/// The file with tokens.
pub(crate) struct StoredTokens {
    path: PathBuf,
}

impl StoredTokens {
    /// Returns the file of the user who runs the program.
    ///
    /// # Errors
    /// Returns an error if neither `XDG_CONFIG_HOME` nor `HOME` is set.
    pub(crate) fn of_user() -> Result<Self, Failure> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let directory = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
        let directory = directory.ok_or("set HOME: the token is stored in a file below it")?;
        Ok(Self { path: directory.join(FILE) })
    }

    /// Returns the token for an origin, even if it has expired.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if other users can read it.
    pub(crate) fn find(&self, origin: &str) -> Result<Option<StoredToken>, Failure> {
        Ok(self.read()?.remove(origin))
    }

    /// Stores a token in place of the earlier one for this origin, and removes tokens that have
    /// expired.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written.
    pub(crate) fn add(&self, origin: &str, token: StoredToken) -> Result<(), Failure> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let cannot = |error: std::io::Error| format!("cannot write {}: {error}", self.path.display());
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(cannot)?;
        let lock = self.path.with_extension("lock");
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock).map_err(cannot)?;
        // The lock is released when the file is closed.
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| cannot(error.into()))?;
        let mut tokens = self.read()?;
        let now = runtime::clock::now_ms() / 1_000;
        tokens.retain(|_, token| token.expires > now);
        tokens.insert(origin.to_owned(), token);
        let text = serde_json::to_string_pretty(&tokens)?;
        self.replace(&text).map_err(|error| cannot(error).into())
    }

    fn read(&self) -> Result<BTreeMap<String, StoredToken>, Failure> {
        let shown = self.path.display();
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            opened => opened.map_err(|error| format!("cannot read {shown}: {error}"))?,
        };
        let mode = file.metadata().map_err(|error| format!("cannot read {shown}: {error}"))?.mode();
        if mode & OF_OTHERS != 0 {
            return Err(format!("other users can read {shown}: run chmod 600 {shown}").into());
        }
        serde_json::from_reader(&mut file)
            .map_err(|error| format!("{shown} is not valid ({error}): delete it, and log in again").into())
    }

    /// Replaces the file as a whole, so that no reader sees a part of it.
    fn replace(&self, text: &str) -> std::io::Result<()> {
        let temporary = self.path.with_extension(format!("{}.tmp", std::process::id()));
        match std::fs::remove_file(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn token(text: &str, expires: i64) -> StoredToken {
        StoredToken { token: text.to_owned(), user: "ann".to_owned(), expires }
    }

    #[test]
    fn tokens_are_stored_by_origin_in_a_file_of_the_user() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = StoredTokens { path: directory.path().join(FILE) };
        assert!(tokens.find("https://a").unwrap().is_none());
        tokens.add("https://old", token("expired", 1)).unwrap();
        tokens.add("https://a", token("one", i64::MAX)).unwrap();
        tokens.add("https://b", token("two", i64::MAX)).unwrap();
        tokens.add("https://a", token("three", i64::MAX)).unwrap();
        let found = |origin| tokens.find(origin).unwrap().map(|token| token.token);
        assert_eq!(found("https://a"), Some("three".to_owned()));
        assert_eq!(found("https://b"), Some("two".to_owned()));
        assert_eq!((found("https://old"), found("https://a.example")), (None, None));
        assert_eq!(tokens.path.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(tokens.path.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = StoredTokens { path: directory.path().join(FILE) };
        tokens.add("https://a", token("one", i64::MAX)).unwrap();
        std::fs::set_permissions(&tokens.path, PermissionsExt::from_mode(0o644)).unwrap();
        let refusal = tokens.find("https://a").err().unwrap().to_string();
        assert!(refusal.contains("run chmod 600"), "{refusal}");
        std::fs::write(&tokens.path, "{").unwrap();
        std::fs::set_permissions(&tokens.path, PermissionsExt::from_mode(0o600)).unwrap();
        assert!(tokens.find("https://a").err().unwrap().to_string().contains("delete it"));
    }
}
