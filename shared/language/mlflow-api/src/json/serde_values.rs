//! Conversion of clients' JSON to values of `serde_json`.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::reader::JsonError;
use super::size::{MAX_VALUES, values};
use super::value::Json;

/// Parses JSON, including JSON that `serde_json` rejects because of unpaired surrogates, or because
/// it has more than 128 nested arrays and objects.
///
/// # Errors
/// Returns the reason why the JSON was rejected. Numbers that are out of range, NaN and infinities
/// are rejected as [`JsonError::NoJson`].
pub fn read_value(json: &[u8]) -> Result<Value, JsonError> {
    if json.len() > MAX_VALUES && values(json) > MAX_VALUES {
        return Err(JsonError::TooMany);
    }
    if let Ok(value) = serde_json::from_slice(json) {
        return Ok(value);
    }
    if let Cow::Owned(mended) = without_halves(json)
        && let Ok(value) = serde_json::from_slice(&mended)
    {
        return Ok(value);
    }
    let text = std::str::from_utf8(json).map_err(|_| JsonError::NoJson)?;
    value(Json::read(text)?).ok_or(JsonError::NoJson)
}

/// Converts a value. Returns `None` if it contains a number that `serde_json` cannot represent.
fn value(json: Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        // Integers of any length are supported, because `serde_json` parses them.
        Json::Integer(digits) => match serde_json::from_str(&digits).ok()? {
            Value::Number(number) => Value::Number(number),
            _ => return None,
        },
        Json::Float(number) => Value::Number(Number::from_f64(number)?),
        Json::Text(text) => Value::String(text),
        Json::List(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                values.push(value(item)?);
            }
            Value::Array(values)
        }
        Json::Object(object) => {
            let mut entries = Map::new();
            for (key, entry) in object {
                entries.insert(key, value(entry)?);
            }
            Value::Object(entries)
        }
    })
}

/// Replaces the escapes of unpaired surrogates by the escape of U+FFFD. Takes one pass, and only
/// copies the JSON if there are such escapes.
#[must_use]
pub fn without_halves(json: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\')) {
        let escape = at + found;
        // An escape has two bytes, or six if it consists of a code with four hex digits.
        at = escape + 2;
        let Some(first) = code(json, escape) else { continue };
        at = escape + 6;
        if !(0xd800..0xe000).contains(&first) {
            continue;
        }
        let second = code(json, at).filter(|second| (0xdc00..0xe000).contains(second));
        if first < 0xdc00 && second.is_some() {
            at += 6;
        } else if let Some(digits) = mended.to_mut().get_mut(escape + 2..escape + 6) {
            digits.copy_from_slice(b"fffd");
        }
    }
    mended
}

/// Returns the code of the `\u` escape at a position, if there is one.
fn code(json: &[u8], at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
}
