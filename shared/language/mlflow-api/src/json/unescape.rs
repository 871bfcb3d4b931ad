//! JSON in readable form, without escapes.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::reader::resolve;
use super::value::Json;

/// Maximum depth of JSON nested in JSON strings at which escapes are resolved. It limits the total
/// work, because the text of each level is at most as long as that of the level that contains it.
const MAX_NESTING: usize = 8;

/// Resolves the escapes in the strings of a JSON text, and in strings that are themselves JSON. All
/// other characters are unchanged, including quotes, spaces and numbers.
///
/// A string with an invalid escape is also unchanged. Unpaired surrogates are replaced with U+FFFD.
#[must_use]
pub fn unescaped(json: &str) -> Cow<'_, str> {
    if !json.contains('\\') {
        return Cow::Borrowed(json);
    }
    let mut written = String::with_capacity(json.len());
    write(json, MAX_NESTING, &mut written);
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

/// Checks whether a text is JSON, including the extensions that Python accepts.
fn is_json(text: &str) -> bool {
    // `serde_json` is much faster, and almost always sufficient.
    serde_json::from_str::<IgnoredAny>(text).is_ok() || Json::parse(text).is_some()
}

/// Splits a JSON text at its first string. Returns the text before the string, the string without
/// its quotes, and the text after it.
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
