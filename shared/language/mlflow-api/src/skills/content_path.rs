//! Paths of files in the content of a skill (`mlflow/genai/skill_content/paths.py`).

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::{Error, Result};

/// Maximum length of a name, in bytes (`MAX_PATH_SEGMENT_BYTES`).
const MAX_NAME_BYTES: usize = 255;
/// Maximum number of parts of a path (`MAX_PATH_DEPTH`).
const MAX_DEPTH: usize = 128;
/// Maximum length of a path, in bytes (`MAX_PATH_BYTES`).
const MAX_BYTES: usize = 4_096;
/// Characters that Windows does not allow in names.
const WINDOWS_INVALID: &str = "<>\"|?*";
/// Names that Windows reserves for devices, with any extension. `check_name` also refuses those
/// that end in a number, such as `COM1`.
const WINDOWS_RESERVED: [&str; 4] = ["CON", "PRN", "AUX", "NUL"];

/// Returns a path for messages. Bytes that are not valid UTF-8 are escaped as in Python.
#[must_use]
pub fn display_path(path: &[u8]) -> String {
    path.utf8_chunks().fold(String::new(), |mut shown, chunk| {
        shown.push_str(chunk.valid());
        shown.extend(chunk.invalid().iter().map(|byte| format!("\\udc{byte:02x}")));
        shown
    })
}

/// Checks a relative path, and returns it without superfluous slashes (`canonical_relative_path`).
/// Returns `None` for the root.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` for a path that not every system can store, or that leads
/// out of the root.
pub fn canonical_path(path: &str) -> Result<Option<String>> {
    if path.contains('\\') {
        return Err(Error::invalid(format!("Path '{path}' must use forward slashes as separators.")));
    }
    if path.starts_with('/') {
        return Err(Error::invalid(format!("Path '{path}' must be relative to the content root.")));
    }
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.len() > MAX_DEPTH {
        return Err(Error::invalid(format!("Path '{path}' is nested deeper than {MAX_DEPTH} directories.")));
    }
    if path.len().max(composed(path).len()) > MAX_BYTES {
        return Err(Error::invalid(format!("Path '{path}' is longer than {MAX_BYTES} bytes.")));
    }
    for part in &parts {
        check_name(part, path)?;
    }
    Ok((!parts.is_empty()).then(|| parts.join("/")))
}

/// Returns a path in Unicode's normalization form C, in which MLflow computes the digest.
#[must_use]
pub fn composed_path(path: &str) -> String {
    composed(path).into_owned()
}

fn composed(text: &str) -> std::borrow::Cow<'_, str> {
    const NORMALIZER: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();
    NORMALIZER.normalize(text)
}

fn check_name(name: &str, path: &str) -> Result<()> {
    let refused = |what: &str| Err(Error::invalid(format!("Path '{path}' {what}")));
    if matches!(name, "." | "..") {
        return refused("must not contain '.' or '..' segments.");
    }
    if name.contains(':') {
        return refused("must not contain ':' in a segment.");
    }
    if name.contains(|character| WINDOWS_INVALID.contains(character)) {
        return refused(&format!("contains a character Windows does not allow in names ({WINDOWS_INVALID})."));
    }
    if name.ends_with([' ', '.']) {
        return refused("has a name ending in a space or period.");
    }
    if name.contains(|character: char| character < ' ' || character == '\x7f') {
        return refused("must not contain control characters.");
    }
    if name.len().max(composed(name).len()) > MAX_NAME_BYTES {
        return refused(&format!("has a name longer than {MAX_NAME_BYTES} bytes."));
    }
    let device = name.split('.').next().unwrap_or_default().to_uppercase();
    let is_numbered =
        |kind: &str| device.strip_prefix(kind).is_some_and(|number| matches!(number.as_bytes(), [b'1'..=b'9']));
    if WINDOWS_RESERVED.contains(&device.as_str()) || is_numbered("COM") || is_numbered("LPT") {
        return refused("uses a reserved Windows device name.");
    }
    Ok(())
}

/// Checks the directory of a skill within its source (`normalize_subpath`). Returns it without
/// superfluous slashes and surrounding white space, or `None` for the root.
pub(super) fn subpath(sent: Option<&str>) -> Result<Option<String>> {
    let Some(sent) = sent else { return Ok(None) };
    canonical_path(sent.trim()).map_err(|error| {
        let message = format!("Subpath '{sent}' is invalid: {}", error.message);
        Error { message, ..error }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_its_root_on_every_system() {
        for (path, expected) in [("a/b.md", Some("a/b.md")), ("a//b/", Some("a/b")), ("", None), ("a b", Some("a b"))] {
            assert_eq!(canonical_path(path).unwrap().as_deref(), expected, "{path}");
        }
        let (long, deep) = ("a".repeat(256), "a/".repeat(129));
        for path in [
            "/a", "a/../b", "..", "./a", "a\\b", "c:/a", "a:b", "a?", "a.", "a ", "a\n", "con", "Com1.txt", "LPT9",
            &long, &deep,
        ] {
            assert!(canonical_path(path).is_err(), "{path}");
        }
        assert_eq!(subpath(Some(" a/b/ ")).unwrap().as_deref(), Some("a/b"));
        assert!(subpath(Some("../x")).unwrap_err().message.starts_with("Subpath '../x' is invalid: Path '../x' must"));
    }
}
