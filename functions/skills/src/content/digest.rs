//! The digest of a skill's files (`compute_tree_digest`).

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::tree::ContentFile;

/// Returns the digest of the paths and contents of files, which have to be sorted by path.
pub(crate) fn digest(files: &[ContentFile]) -> String {
    let mut hash = Sha256::new();
    for ContentFile { path, content } in files {
        for part in [path.as_bytes(), content] {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_mlflow() {
        let file = |path: &str, content: &str| ContentFile { path: path.to_owned(), content: content.into() };
        assert_eq!(digest(&[]), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        // Computed by MLflow 3.18.
        let files = [file("SKILL.md", "---\nname: a\n---\n"), file("ä/b.txt", "x")];
        assert_eq!(digest(&files), "9764e995678ae24c5571ad7059ff49fc1a88f7fec3fcaee75ae2e9602d3cbfc5");
    }
}
