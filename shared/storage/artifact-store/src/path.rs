//! Paths of artifacts.

use std::fmt;

use mlflow_api::{Error, Result, artifact_path};
use percent_encoding::percent_decode_str;

use crate::staging;

/// Bytes of a path, decoded.
const LONGEST: usize = 4_096;
/// Parts of a path.
const MOST_PARTS: usize = 100;

/// The directory of answers that no function could carry: no path of a client leads there, and no list shows it. `template.yaml` names it, too.
pub(crate) const HIDDEN: &str = ".answers";

/// Whether a path leads to files that clients only read by URLs of the server's own.
pub(crate) fn is_hidden(path: &ArtifactPath) -> bool {
    path.first() == Some(HIDDEN)
}

/// A path below some place or location: its parts. None of them leads elsewhere. It is only made
/// from checked texts, so a [`crate::ArtifactBackend`] need not check it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactPath(Vec<String>);

impl ArtifactPath {
    /// Reads a path as a client sends it, in MLflow's way ([`artifact_path::checked`]). Layers of
    /// encoding are taken off before it is checked, and `.` and empty parts are left out. The empty
    /// path is the place or the location itself.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for an absolute path, one with a step upwards, a backslash, a
    /// drive or a fragment in whatever encoding. The same for one that is too long, and for names
    /// that the store keeps for itself.
    pub fn parse(sent: &str) -> Result<Self> {
        let invalid = || Error::invalid("Invalid path");
        if sent.len() > 3 * LONGEST {
            return Err(invalid());
        }
        let checked = artifact_path::checked(sent)?;
        // To clients on Windows, a backslash separates.
        if checked.len() > LONGEST || checked.contains('\\') {
            return Err(invalid());
        }
        let parts: Vec<_> = checked.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect();
        if parts.len() > MOST_PARTS {
            return Err(invalid());
        }
        if let Some(reserved) = parts.iter().find(|part| staging::is_reserved(part)) {
            return Err(Error::invalid(format!(
                "Invalid artifact file name: '{reserved}'. Artifact names starting with '{}' are reserved.",
                staging::RESERVED
            )));
        }
        Ok(Self(parts))
    }

    /// Reads a path for writing, as HTTP has decoded it.
    ///
    /// # Errors
    /// As [`ArtifactPath::parse`], and for a path with a layer of encoding left. MLflow's way to
    /// read it makes `a b` of a file called `a%20b`, over another one of that name.
    pub fn to_write(sent: &str) -> Result<Self> {
        let path = Self::parse(sent)?;
        if percent_decode_str(sent).ne(sent.bytes()) && path.to_string() != sent {
            return Err(Error::invalid(format!(
                "Invalid path: '{sent}' would become '{path}'. Give the file a name without a '%' before two hexadecimal digits."
            )));
        }
        Ok(path)
    }

    /// Reads the path of a file to write: as [`ArtifactPath::to_write`].
    ///
    /// # Errors
    /// Also for a path that cannot be a file's.
    pub fn of_new_file(sent: &str) -> Result<Self> {
        let path = Self::of_file(sent)?;
        Self::to_write(sent).map(|_| path)
    }

    /// Reads the path of a file.
    ///
    /// # Errors
    /// As [`ArtifactPath::parse`], and for a path that cannot be a file's.
    pub fn of_file(sent: &str) -> Result<Self> {
        let path = Self::parse(sent)?;
        if path.0.is_empty() || sent.ends_with('/') {
            return Err(Error::invalid("Artifact path must include a filename (cannot end with '/')."));
        }
        Ok(path)
    }

    /// The path of something below this one.
    #[must_use]
    pub fn join(&self, below: &Self) -> Self {
        Self(self.0.iter().chain(&below.0).cloned().collect())
    }

    /// The same path below these directories.
    #[must_use]
    pub fn below(&self, directories: &[&str]) -> Self {
        Self(directories.iter().map(|part| (*part).to_owned()).chain(self.0.iter().cloned()).collect())
    }

    /// The path below its first parts.
    #[must_use]
    pub fn without_first(&self, parts: usize) -> Self {
        Self(self.0.iter().skip(parts).cloned().collect())
    }

    /// The first part; `None` for the empty path.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }

    /// The last part, and the parts before it; `None` for the empty path.
    pub(crate) fn split_last(&self) -> Option<(&str, &[String])> {
        self.0.split_last().map(|(last, before)| (last.as_str(), before))
    }

    /// Its parts.
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
        let (long, deep) = ("a".repeat(LONGEST + 1), "a/".repeat(MOST_PARTS + 1));
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
