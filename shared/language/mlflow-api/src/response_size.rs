//! The maximum size of responses.
//!
//! A Lambda function can return a response of up to 6 MB. The response is a JSON document that
//! contains the HTTP body as a string. A compressed body is encoded in base64, which turns three
//! bytes into four. An uncompressed body is a JSON string, in which each quote and each backslash
//! is escaped.

use std::io::{self, Write};
use std::ops::Add;

use serde::Serialize;

use crate::{Error, Result};

/// Maximum size, in bytes, of the encoded body in a Lambda's response of 6 MB. The remaining 64 KB
/// are reserved for the status and the headers.
pub const MAX_BODY_BYTES: usize = (6 << 20) - (64 << 10);
/// Size of a Lambda's response, in bytes, at which a page ends. The difference to
/// [`MAX_BODY_BYTES`] is reserved for the page token.
pub const MAX_PAGE_BYTES: usize = 5_500_000;
/// Size, in bytes, of the JSON of an item that fills a page on its own. It is less than
/// [`MAX_PAGE_BYTES`], because base64 makes the JSON a third longer.
pub const MAX_PAGE_JSON_BYTES: usize = MAX_PAGE_BYTES / 4 * 3;
/// Maximum size of the JSON of any response, in bytes. It prevents a single response from
/// exhausting the memory of a process. For comparison, the largest dataset of a run that MLflow
/// allows has 18 MB, or twice as much if it consists of quotes.
pub const MAX_JSON_BYTES: usize = 64 << 20;

/// The space that a body takes in a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseSize {
    bytes: usize,
    /// The number of characters that a JSON string escapes, which are quotes and backslashes.
    /// Compact JSON contains no control characters.
    escaped: usize,
}

impl ResponseSize {
    /// Returns the size of this JSON, which may be a part of a body.
    #[must_use]
    pub fn of(json: &[u8]) -> Self {
        Self { bytes: json.len(), escaped: json.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count() }
    }

    /// Returns the size of a JSON text of `bytes` bytes that contains no characters to be escaped.
    #[must_use]
    pub fn of_plain(bytes: usize) -> Self {
        Self { bytes, escaped: 0 }
    }

    /// Returns the size of the JSON in bytes, without escaping or compression.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// Returns the size in a Lambda's response in bytes: as text or in base64, whichever is larger.
    /// A compressed response is sent in base64, and compression may not reduce the size.
    #[must_use]
    pub fn bytes_in_response(self) -> usize {
        let in_base64 = self.bytes.div_ceil(3) * 4;
        in_base64.max(self.bytes_as_text())
    }

    /// Returns the size as uncompressed text, in bytes.
    #[must_use]
    pub fn bytes_as_text(self) -> usize {
        self.bytes + self.escaped
    }
}

impl Add for ResponseSize {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, escaped: self.escaped + other.escaped }
    }
}

/// Serializes a response to JSON.
///
/// # Errors
/// Fails with [`too_long`] if the JSON has more than [`MAX_JSON_BYTES`] bytes.
pub fn to_json(answer: &impl Serialize) -> Result<Vec<u8>> {
    to_json_within(MAX_JSON_BYTES, answer)
}

/// Serializes a part of a response to JSON, with a limit of `room` bytes.
///
/// # Errors
/// Fails with [`too_long`] if the JSON exceeds the limit.
pub fn to_json_within(room: usize, part: &impl Serialize) -> Result<Vec<u8>> {
    let mut json = BoundedBuffer { bytes: Vec::new(), most: room };
    match serde_json::to_writer(&mut json, part) {
        Ok(()) => Ok(json.bytes),
        Err(error) if error.is_io() => Err(too_long("The answer", MAX_JSON_BYTES)),
        Err(error) => Err(Error::internal(error)),
    }
}

/// Returns the error for a response that is too long. Its status is 400, so clients do not retry
/// the request.
#[must_use]
pub fn too_long(what: &str, most: usize) -> Error {
    let megabytes = most >> 20;
    Error::invalid(format!(
        "{what} is longer than {megabytes} MB, which is more than this server can answer. Ask for less at once."
    ))
}

/// A buffer with a maximum size, in bytes.
struct BoundedBuffer {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn a_response_holds_a_body_as_text_or_in_base64() {
        for (json, expected) in [("", 0), ("abc", 4), ("abcd", 8), (r#""a""#, 5), (r#"{"k":"\"\\"}"#, 20)] {
            assert_eq!(ResponseSize::of(json.as_bytes()).bytes_in_response(), expected, "{json}");
            let as_text = serde_json::to_string(json).map(|text| text.len() - 2);
            assert!(as_text.is_ok_and(|text| text <= expected), "{json}");
        }
        let parts = ResponseSize::of(br#"{"a":"#) + ResponseSize::of(br#""b"}"#);
        assert_eq!(parts, ResponseSize::of(br#"{"a":"b"}"#));
    }

    #[test]
    fn the_longest_answer_is_refused_and_not_repeated() {
        assert_eq!(to_json(&["x"]).ok(), Some(br#"["x"]"#.to_vec()));
        let long = "x".repeat(MAX_JSON_BYTES / 2);
        assert!(to_json(&[&long]).is_ok());
        let error = to_json(&[&long, &long]).expect_err("it is too long");
        assert_eq!(error.code, ErrorCode::InvalidParameterValue);
        assert!(error.message.contains("longer than 64 MB"), "{error}");
        assert_eq!(to_json_within(5, &["x"]).ok(), Some(br#"["x"]"#.to_vec()));
        assert!(to_json_within(4, &["x"]).is_err());
    }
}
