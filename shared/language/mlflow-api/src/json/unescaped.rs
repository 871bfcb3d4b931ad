//! JSON as people read it: without escapes.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::reader::resolve;
use super::value::Json;

/// Levels of JSON within strings of JSON that are resolved. It bounds the work: each level is at
/// most as long as the one around it.
const LEVELS: usize = 8;

/// Resolves the escapes in the strings of a JSON text, also in strings that are JSON themselves.
/// Everything else stays as it is written, including quotes, spaces and numbers.
///
/// A string that cannot be read keeps its escapes. Half of a surrogate pair becomes U+FFFD.
#[must_use]
pub fn unescaped(json: &str) -> Cow<'_, str> {
    if !json.contains('\\') {
        return Cow::Borrowed(json);
    }
    let mut written = String::with_capacity(json.len());
    write(json, LEVELS, &mut written);
    Cow::Owned(written)
}

fn write(json: &str, levels: usize, written: &mut String) {
    let mut rest = json;
    while let Some((before, string, after)) = first_string(rest) {
        written.push_str(before);
        written.push('"');
        match string.contains('\\').then(|| resolve(string)).flatten() {
            Some(text) => write_text(&text, levels, written),
            None => written.push_str(string),
        }
        written.push('"');
        rest = after;
    }
    written.push_str(rest);
}

fn write_text(text: &str, levels: usize, written: &mut String) {
    let may_be_json = text.contains('\\') && text.trim_start().starts_with(['{', '[', '"']);
    match levels.checked_sub(1) {
        Some(levels) if may_be_json && is_json(text) => write(text, levels, written),
        _ => written.push_str(text),
    }
}

/// Whether a text is JSON, also as only Python writes it.
fn is_json(text: &str) -> bool {
    // `serde_json` is much faster, and nearly always enough.
    serde_json::from_str::<IgnoredAny>(text).is_ok() || Json::parse(text).is_some()
}

/// The first string of a JSON text without its quotes, between the text before them and after them.
fn first_string(json: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = json.split_once('"')?;
    let mut is_escaped = false;
    let closes = |byte: u8| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    };
    let end = rest.bytes().position(closes)?;
    Some((before, rest.get(..end)?, rest.get(end + 1..)?))
}
