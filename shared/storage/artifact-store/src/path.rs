//! Paths of artifacts.

use std::fmt;

use mlflow_api::{Error, Result, artifact_path};
use percent_encoding::percent_decode_str;

use crate::staging;

/// Maximum length of a decoded path in bytes.
const MAX_PATH_BYTES: usize = 4_096;
/// Maximum number of parts.
const MAX_PATH_PARTS: usize = 100;

/// The directory of offloaded responses. Paths of clients cannot refer to it, and lists do not show
/// it. Its name is also in `template.yaml`.
pub(crate) const OFFLOADED_RESPONSES_DIRECTORY: &str = ".answers";

/// The directory of the archive. Paths of clients cannot refer to it, and lists do not show it. Its
/// name is also in `template.yaml`.
pub(crate) const ARCHIVE_DIRECTORY: &str = ".archive";

/// Checks whether a path leads to files that are not artifacts, and which clients cannot refer to:
/// offloaded responses and the archive. The comparison ignores case and characters other than
/// ASCII, because some file systems of macOS do so, too.
pub(crate) fn is_hidden(path: &ArtifactPath) -> bool {
    let Some(first) = path.first() else { return false };
    let ascii: String = first.chars().filter(char::is_ascii).collect();
    [OFFLOADED_RESPONSES_DIRECTORY, ARCHIVE_DIRECTORY].iter().any(|hidden| ascii.eq_ignore_ascii_case(hidden))
}

/// A relative path below a backend or a location, as a list of parts that never leads outside it.
/// It is created only from validated text, so an [`crate::ArtifactBackend`] need not validate it
/// again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactPath(Vec<String>);

impl ArtifactPath {
    /// Parses a path from a client, like MLflow ([`artifact_path::decode_and_check`]). Layers of
    /// percent-encoding are removed before validation, and `.` and empty parts are dropped. The
    /// empty path is the backend or the location itself.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for a path that is absolute, is too long, contains a reserved
    /// name, or contains `..`, a backslash, a drive or a fragment in any encoding.
    pub fn parse(sent: &str) -> Result<Self> {
        let invalid = || Error::invalid("Invalid path");
        if sent.len() > 3 * MAX_PATH_BYTES {
            return Err(invalid());
        }
        let checked = artifact_path::decode_and_check(sent)?;
        // Clients on Windows treat a backslash as a separator.
        if checked.len() > MAX_PATH_BYTES || checked.contains('\\') {
            return Err(invalid());
        }
        let parts: Vec<_> = checked.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect();
        if parts.len() > MAX_PATH_PARTS {
            return Err(invalid());
        }
        if let Some(reserved) = parts.iter().find(|part| staging::is_reserved(part)) {
            return Err(Error::invalid(format!(
                "Invalid artifact file name: '{reserved}'. Artifact names starting with '{}' are reserved.",
                staging::RESERVED_PREFIX
            )));
        }
        Ok(Self(parts))
    }

    /// Parses a path to be written, after HTTP decoding.
    ///
    /// # Errors
    /// The errors of [`ArtifactPath::parse`], and an error for a path that is still
    /// percent-encoded. MLflow's decoding would turn the name `a%20b` into `a b`, and could
    /// overwrite another file.
    pub fn to_write(sent: &str) -> Result<Self> {
        let path = Self::parse(sent)?;
        if percent_decode_str(sent).ne(sent.bytes()) && path.to_string() != sent {
            return Err(Error::invalid(format!(
                "Invalid path: '{sent}' would become '{path}'. Give the file a name without a '%' before two hexadecimal digits."
            )));
        }
        Ok(path)
    }

    /// Parses the path of a file to be written, like [`ArtifactPath::to_write`].
    ///
    /// # Errors
    /// The errors of [`ArtifactPath::to_write`], and an error for a path that cannot name a file.
    pub fn of_new_file(sent: &str) -> Result<Self> {
        let path = Self::of_file(sent)?;
        Self::to_write(sent).map(|_| path)
    }

    /// Parses the path of a file.
    ///
    /// # Errors
    /// The errors of [`ArtifactPath::parse`], and an error for a path that cannot be a file.
    pub fn of_file(sent: &str) -> Result<Self> {
        let path = Self::parse(sent)?;
        if path.0.is_empty() || sent.ends_with('/') {
            return Err(Error::invalid("Artifact path must include a filename (cannot end with '/')."));
        }
        Ok(path)
    }

    /// Returns the path that consists of this path and, below it, the path `below`.
    #[must_use]
    pub fn join(&self, below: &Self) -> Self {
        Self(self.0.iter().chain(&below.0).cloned().collect())
    }

    /// Returns the path that consists of the given directories and, below them, this path.
    #[must_use]
    pub fn below(&self, directories: &[&str]) -> Self {
        Self(directories.iter().map(|part| (*part).to_owned()).chain(self.0.iter().cloned()).collect())
    }

    /// Returns the path without its first parts.
    #[must_use]
    pub fn without_first(&self, parts: usize) -> Self {
        Self(self.0.iter().skip(parts).cloned().collect())
    }

    /// Returns the first part, or `None` for the empty path.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }

    /// Returns the last part and the parts before it, or `None` for the empty path.
    pub(crate) fn split_last(&self) -> Option<(&str, &[String])> {
        self.0.split_last().map(|(last, before)| (last.as_str(), before))
    }

    /// Returns the parts of the path.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for ArtifactPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_in_parts() {
        for (sent, expected) in
            [("", ""), ("a//b/./c/", "a/b/c"), ("a%20b%2Fc", "a b/c"), ("...", "..."), ("a%00b", "a%00b"), (".", "")]
        {
            assert_eq!(ArtifactPath::parse(sent).unwrap().to_string(), expected, "{sent}");
        }
        let (long, deep) = ("a".repeat(MAX_PATH_BYTES + 1), "a/".repeat(MAX_PATH_PARTS + 1));
        for sent in [
            "a\\b",
            "a%5cb",
            "..\\x",
            "a%255C..%255Cb",
            "../a",
            "a/%2e%2e",
            "/a",
            "c:/a",
            &long,
            &deep,
            &"%41".repeat(9_999),
        ] {
            assert_eq!(ArtifactPath::parse(sent).unwrap_err().message, "Invalid path", "{sent}");
        }
        assert!(ArtifactPath::parse("a/.artifact.uploading.x").unwrap_err().message.ends_with("are reserved."));
        for sent in ["", "a/", ".", "./"] {
            assert!(ArtifactPath::of_file(sent).unwrap_err().message.contains("must include a filename"), "{sent}");
        }
        for sent in ["a b", "50%", "a%zz", "%", "é", "100%-b", "%00"] {
            assert_eq!(ArtifactPath::to_write(sent).unwrap().to_string(), sent);
        }
        for (sent, read) in [("a%20b", "a b"), ("x/%41", "x/A"), ("a%252520b", "a b")] {
            let message = ArtifactPath::of_new_file(sent).unwrap_err().message;
            assert!(message.starts_with(&format!("Invalid path: '{sent}' would become '{read}'.")), "{message}");
        }
        let path = ArtifactPath::of_file("1/r/artifacts/m").unwrap();
        assert_eq!((path.first(), path.split_last().unwrap().0), (Some("1"), "m"));
        assert_eq!(ArtifactPath::default().join(&path), path);
    }
}
