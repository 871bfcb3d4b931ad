//! How large answers may be.
//!
//! Lambda takes a response of at most 6 MB from a function: a JSON document, in which the body is a string. A compressed body is in
//! base64, which makes four bytes out of three. A plain one is text, in which each quote and each backslash is escaped.

use std::io::{self, Write};
use std::ops::Add;

use serde::Serialize;

use crate::{Error, Result};

/// Bytes that a body may have in a Lambda's response of 6 MB. The rest is for status and headers.
pub const RESPONSE_BODY: usize = (6 << 20) - (64 << 10);
/// Bytes in a Lambda's response at which a page ends. The rest of [`RESPONSE_BODY`] is for the page
/// token.
pub const PAGE: usize = 5_500_000;
/// Bytes of JSON that certainly do not fit on a page with anything else.
pub const PAGE_JSON: usize = PAGE / 4 * 3;
/// Bytes of JSON in the longest answer that is made at all, so that one answer does not take a process's whole memory. The
/// largest dataset of a run that MLflow allows has 18 MB, and twice as much where all of it is quotes.
pub const LONGEST: usize = 64 << 20;

/// How much of a response a body takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerSize {
    bytes: usize,
    /// Characters that a text in JSON escapes: quotes and backslashes. There are no control characters in compact JSON.
    escaped: usize,
}

impl AnswerSize {
    /// The size of this JSON, or of a part of it.
    #[must_use]
    pub fn of(json: &[u8]) -> Self {
        Self { bytes: json.len(), escaped: json.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count() }
    }

    /// The size of so many bytes, none of them escaped.
    #[must_use]
    pub fn of_plain(bytes: usize) -> Self {
        Self { bytes, escaped: 0 }
    }

    /// Bytes of JSON, before any escaping or compression.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// Bytes it takes in a Lambda's response, as text or compressed, whichever is more: compression may gain nothing.
    #[must_use]
    pub fn in_response(self) -> usize {
        let in_base64 = self.bytes.div_ceil(3) * 4;
        in_base64.max(self.as_text())
    }

    /// Bytes it takes as a text, not compressed.
    #[must_use]
    pub fn as_text(self) -> usize {
        self.bytes + self.escaped
    }
}

impl Add for AnswerSize {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, escaped: self.escaped + other.escaped }
    }
}

/// An answer as JSON.
///
/// # Errors
/// [`too_long`] if it has more than [`LONGEST`] bytes.
pub fn to_json(answer: &impl Serialize) -> Result<Vec<u8>> {
    to_json_within(LONGEST, answer)
}

/// A part of an answer as JSON, where there is room for so many bytes.
///
/// # Errors
/// [`too_long`] if it has more.
pub fn to_json_within(room: usize, part: &impl Serialize) -> Result<Vec<u8>> {
    let mut json = Bounded { bytes: Vec::new(), most: room };
    match serde_json::to_writer(&mut json, part) {
        Ok(()) => Ok(json.bytes),
        Err(error) if error.is_io() => Err(too_long("The answer", LONGEST)),
        Err(error) => Err(Error::internal(error)),
    }
}

/// The refusal of an answer that is too long: 400, which clients do not repeat.
#[must_use]
pub fn too_long(what: &str, most: usize) -> Error {
    let megabytes = most >> 20;
    Error::invalid(format!(
        "{what} is longer than {megabytes} MB, which is more than this server can answer. Ask for less at once."
    ))
}

/// Bytes in memory, and how many they may be.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for Bounded {
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
            assert_eq!(AnswerSize::of(json.as_bytes()).in_response(), expected, "{json}");
            let as_text = serde_json::to_string(json).map(|text| text.len() - 2);
            assert!(as_text.is_ok_and(|text| text <= expected), "{json}");
        }
        let parts = AnswerSize::of(br#"{"a":"#) + AnswerSize::of(br#""b"}"#);
        assert_eq!(parts, AnswerSize::of(br#"{"a":"b"}"#));
    }

    #[test]
    fn the_longest_answer_is_refused_and_not_repeated() {
        assert_eq!(to_json(&["x"]).ok(), Some(br#"["x"]"#.to_vec()));
        let long = "x".repeat(LONGEST / 2);
        assert!(to_json(&[&long]).is_ok());
        let error = to_json(&[&long, &long]).expect_err("it is too long");
        assert_eq!(error.code, ErrorCode::InvalidParameterValue);
        assert!(error.message.contains("longer than 64 MB"), "{error}");
        assert_eq!(to_json_within(5, &["x"]).ok(), Some(br#"["x"]"#.to_vec()));
        assert!(to_json_within(4, &["x"]).is_err());
    }
}
