//! Encodings of JSON: UTF-8, UTF-16 and UTF-32, with or without a byte order mark.

use std::borrow::Cow;

use super::reader::JsonError;

/// The byte order mark in UTF-8.
const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";
/// Size of a surrogate encoded in UTF-8, which is invalid UTF-8.
const SURROGATE_BYTES: usize = 3;

/// The encoding of a JSON document, with the document's bytes without their byte order mark.
enum Encoding<'a> {
    Utf8(&'a [u8]),
    Utf16(&'a [u8], fn([u8; 2]) -> u16),
    Utf32(&'a [u8], fn([u8; 4]) -> u32),
}

impl<'a> Encoding<'a> {
    /// Detects the encoding, like Python's `json.detect_encoding`.
    fn of(json: &'a [u8]) -> Self {
        match json {
            [0, 0, 0xfe, 0xff, rest @ ..] => Self::Utf32(rest, u32::from_be_bytes),
            [0xff, 0xfe, 0, 0, rest @ ..] => Self::Utf32(rest, u32::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => Self::Utf16(rest, u16::from_be_bytes),
            [0xff, 0xfe, rest @ ..] => Self::Utf16(rest, u16::from_le_bytes),
            // There is no byte order mark. The first character is ASCII, and in most JSON so is the
            // second.
            [0, 0, _, _, ..] => Self::Utf32(json, u32::from_be_bytes),
            [_, 0, 0, 0, ..] => Self::Utf32(json, u32::from_le_bytes),
            [0, _, _, _, ..] | [0, _] => Self::Utf16(json, u16::from_be_bytes),
            [_, 0, _, _, ..] | [_, 0] => Self::Utf16(json, u16::from_le_bytes),
            _ => Self::Utf8(json.strip_prefix(UTF_8_MARK).unwrap_or(json)),
        }
    }
}

/// Checks whether a JSON document is encoded in UTF-16 or UTF-32.
#[must_use]
pub fn is_wide(json: &[u8]) -> bool {
    !matches!(Encoding::of(json), Encoding::Utf8(_))
}

/// Converts a JSON document in any of the encodings to UTF-8. Unpaired surrogates are replaced by
/// U+FFFD.
///
/// # Errors
/// Returns [`JsonError::NoJson`] if the bytes are invalid in the detected encoding.
pub fn to_utf8(json: &[u8]) -> Result<Cow<'_, [u8]>, JsonError> {
    match Encoding::of(json) {
        Encoding::Utf8(text) => match std::str::from_utf8(text) {
            Ok(_) => Ok(Cow::Borrowed(text)),
            Err(_) => replace_encoded_surrogates(text).map(Cow::Owned),
        },
        Encoding::Utf16(text, unit) => {
            let (units, []) = text.as_chunks() else { return Err(JsonError::NoJson) };
            let characters = char::decode_utf16(units.iter().copied().map(unit));
            let text: String = characters.map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
            Ok(Cow::Owned(text.into_bytes()))
        }
        Encoding::Utf32(text, unit) => {
            let (units, []) = text.as_chunks() else { return Err(JsonError::NoJson) };
            let character = |code: u32| match code {
                0xd800..0xe000 => Ok(char::REPLACEMENT_CHARACTER),
                code => char::from_u32(code).ok_or(JsonError::NoJson),
            };
            let text = units.iter().copied().map(unit).map(character).collect::<Result<String, _>>()?;
            Ok(Cow::Owned(text.into_bytes()))
        }
    }
}

/// Replaces surrogates that are encoded in UTF-8 with U+FFFD. They are invalid, but Python accepts
/// them (`surrogatepass`).
fn replace_encoded_surrogates(text: &[u8]) -> Result<Vec<u8>, JsonError> {
    let mut mended = text.to_vec();
    let mut at = 0;
    while let Err(error) = std::str::from_utf8(mended.get(at..).unwrap_or_default()) {
        at += error.valid_up_to();
        match mended.get_mut(at..at + SURROGATE_BYTES) {
            Some(surrogate) if matches!(surrogate, [0xed, 0xa0..=0xbf, 0x80..=0xbf]) => {
                surrogate.copy_from_slice("\u{fffd}".as_bytes());
            }
            _ => return Err(JsonError::NoJson),
        }
        at += SURROGATE_BYTES;
    }
    Ok(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\"name\": \"größer 🎉\"}";

    fn wide(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    fn wider(text: &str, unit: fn(u32) -> [u8; 4]) -> Vec<u8> {
        text.chars().map(u32::from).flat_map(unit).collect()
    }

    #[test]
    fn json_is_read_in_each_encoding_with_a_mark_and_without() {
        let marked = format!("\u{feff}{TEXT}");
        for text in [TEXT, marked.as_str()] {
            for json in [
                text.as_bytes().to_vec(),
                wide(text, u16::to_le_bytes),
                wide(text, u16::to_be_bytes),
                wider(text, u32::to_le_bytes),
                wider(text, u32::to_be_bytes),
            ] {
                assert_eq!(to_utf8(&json).unwrap(), TEXT.as_bytes(), "{json:x?}");
                assert_eq!(is_wide(&json), json.contains(&0), "{json:x?}");
            }
        }
        for short in ["5", "{}", "\"a\"", ""] {
            for json in [wide(short, u16::to_le_bytes), wide(short, u16::to_be_bytes), short.as_bytes().to_vec()] {
                assert_eq!(to_utf8(&json).unwrap(), short.as_bytes(), "{json:x?}");
            }
        }
    }

    #[test]
    fn bytes_of_no_encoding_are_no_json() {
        for json in [
            &b"{\"a\": \"\xff\"}"[..],
            b"{\"a\": \"\xed\xa0",
            b"\xff\xfe{\0}",
            b"\xff\xfe\0\0{\0\0",
            b"\0\0\0{\0\x11\0\0",
        ] {
            assert_eq!(to_utf8(json), Err(JsonError::NoJson), "{json:x?}");
        }
    }

    #[test]
    fn surrogates_become_another_character() {
        assert_eq!(to_utf8(b"\"a\xed\xa0\xbdb\xed\xb8\x80\"").unwrap(), "\"a\u{fffd}b\u{fffd}\"".as_bytes());
        assert_eq!(to_utf8(b"\"\0\x3d\xd8\"\0").unwrap(), "\"\u{fffd}\"".as_bytes());
        assert_eq!(to_utf8(b"\"\0\0\0\x3d\xd8\0\0\"\0\0\0").unwrap(), "\"\u{fffd}\"".as_bytes());
    }
}
