//! Paths of artifacts, as sent by clients.

use std::fmt::Write;

use percent_encoding::percent_decode_str;

use crate::{Error, Result};

/// Maximum number of layers of percent-encoding that are decoded (`_decode` in MLflow's `uri.py`).
const MAX_DECODINGS: usize = 10;

/// Decodes a path and checks that it can safely be appended to a location
/// (`validate_path_is_safe`). The path must be relative, and must not contain a drive, a fragment,
/// or `..` in any layer of encoding.
pub fn decode_and_check(path: &str) -> Result<String> {
    let decoded = decode(path).ok_or_else(invalid)?;
    let has_drive = {
        let mut characters = decoded.chars();
        characters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && characters.next() == Some(':')
            && characters.next().is_some_and(|third| third == '/' || third == '\\')
    };
    let is_absolute = decoded.starts_with('/') || decoded.starts_with("\\\\") || has_drive;
    let is_uri = decoded.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    if decoded.contains('#') || is_absolute || is_uri || decoded.split('/').any(|part| part == "..") {
        return Err(invalid());
    }
    // Control characters are escaped, because the names of files must not contain them.
    let mut escaped = String::with_capacity(decoded.len());
    for character in decoded.chars() {
        if character.is_ascii_control() {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{:02x}", character as u32);
        } else {
            escaped.push(character);
        }
    }
    Ok(escaped)
}

fn decode(path: &str) -> Option<String> {
    let mut path = path.to_owned();
    for _ in 0..MAX_DECODINGS {
        let once_more = percent_decode_str(&path).decode_utf8().ok()?.into_owned();
        if once_more == path {
            return Some(path);
        }
        path = once_more;
    }
    None
}

fn invalid() -> Error {
    Error::invalid("Invalid path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_where_they_are() {
        for (path, safe) in [
            ("", ""),
            ("a/b.txt", "a/b.txt"),
            ("a%20b", "a b"),
            ("a%2520b", "a b"),
            ("...", "..."),
            ("a..b/..c", "a..b/..c"),
            ("é", "é"),
            ("a%00b", "a%00b"),
            ("./a", "./a"),
        ] {
            assert_eq!(decode_and_check(path).as_deref(), Ok(safe), "{path}");
        }
        for path in [
            "..",
            "../a",
            "a/..",
            "a/../b",
            "%2e%2e/a",
            "%252e%252e%252fa",
            "a/..%2f..",
            "/etc",
            "%2fetc",
            "//host/a",
            "a#b",
            "a%23b",
            "C:/a",
            "c:\\a",
            "\\\\host\\a",
            "file:///etc",
            "FILE:/etc",
            "%ff",
            "%2525252525252525252525252525",
        ] {
            assert_eq!(decode_and_check(path), Err(invalid()), "{path}");
        }
    }
}
