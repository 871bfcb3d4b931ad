//! Python's formatting and parsing of values. MLflow's error messages contain such values, and the
//! tests of clients compare them.

use std::fmt::Write;

use serde_json::Value;

/// Formats a string like Python's `repr`: in single quotes, unless the text contains a single quote
/// and no double quote.
#[must_use]
pub fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut printed = String::with_capacity(text.len() + 2);
    printed.push(quote);
    for character in text.chars() {
        match character {
            '\\' => printed.push_str("\\\\"),
            '\n' => printed.push_str("\\n"),
            '\r' => printed.push_str("\\r"),
            '\t' => printed.push_str("\\t"),
            c if c == quote => {
                printed.push('\\');
                printed.push(c);
            }
            c if is_printable(c) => printed.push(c),
            c => {
                let _ = match c as u32 {
                    code @ 0..=0xff => write!(printed, "\\x{code:02x}"),
                    code @ 0..=0xffff => write!(printed, "\\u{code:04x}"),
                    code => write!(printed, "\\U{code:08x}"),
                };
            }
        }
    }
    printed.push(quote);
    printed
}

/// Checks whether Python's `repr` prints a character as it is. It escapes control and format
/// characters, separators except for the space, and characters for private use.
fn is_printable(character: char) -> bool {
    !matches!(character as u32,
        0..=0x1f | 0x7f..=0xa0 | 0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2 | 0x1680 | 0x180e
        | 0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f | 0x3000 | 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb
        | 0xe0001 | 0xe0020..=0xe007f | 0xf_0000..=0x10_ffff)
}

/// Removes white space at both ends like Python's `str.strip`, which also removes the separators of
/// ASCII.
#[must_use]
pub fn strip(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_whitespace() || ('\x1c'..='\x1f').contains(&character))
}

/// Formats bytes like Python's `repr`.
#[must_use]
pub fn repr_bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut printed = String::with_capacity(bytes.len() + 3);
    printed.push('b');
    printed.push(quote);
    for byte in bytes {
        match byte {
            b'\\' => printed.push_str("\\\\"),
            b'\n' => printed.push_str("\\n"),
            b'\r' => printed.push_str("\\r"),
            b'\t' => printed.push_str("\\t"),
            b' '..=b'~' => {
                if char::from(*byte) == quote {
                    printed.push('\\');
                }
                printed.push(char::from(*byte));
            }
            _ => {
                let _ = write!(printed, "\\x{byte:02x}");
            }
        }
    }
    printed.push(quote);
    printed
}

/// Formats a list of strings like Python's `repr`.
#[must_use]
pub fn repr_list<T: AsRef<str>>(texts: &[T]) -> String {
    let printed: Vec<_> = texts.iter().map(|text| repr(text.as_ref())).collect();
    format!("[{}]", printed.join(", "))
}

/// Formats a float like Python's `repr`: with the fewest digits that parse as the same number, and
/// with an exponent below 1e-4 and from 1e16 on.
#[must_use]
pub fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Formats a JSON value like Python's `repr` formats the result of `json.loads`.
#[must_use]
pub fn data(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) if number.is_f64() => number.as_f64().map_or_else(|| number.to_string(), float),
        Value::Number(number) => number.to_string(),
        Value::String(string) => repr(string),
        Value::Array(items) => format!("[{}]", items.iter().map(data).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let printed: Vec<_> =
                fields.iter().map(|(name, field)| format!("{}: {}", repr(name), data(field))).collect();
            format!("{{{}}}", printed.join(", "))
        }
    }
}

/// Formats a value like `json.dumps(value, sort_keys=True, separators=(",", ":"))`: keys are
/// sorted, and all characters outside ASCII are escaped.
#[must_use]
pub fn json(value: &Value) -> String {
    let mut printed = String::new();
    write_json(value, Style { sorted: true, comma: ",", colon: ":" }, &mut printed);
    printed
}

/// Formats a value like `json.dumps(value)`: keys keep their order, and each comma and colon is
/// followed by a space.
#[must_use]
pub fn json_spaced(value: &Value) -> String {
    let mut printed = String::new();
    write_json(value, Style { sorted: false, comma: ", ", colon: ": " }, &mut printed);
    printed
}

#[derive(Clone, Copy)]
struct Style {
    sorted: bool,
    comma: &'static str,
    colon: &'static str,
}

fn write_json(value: &Value, style: Style, printed: &mut String) {
    match value {
        Value::Null => printed.push_str("null"),
        Value::Bool(value) => printed.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => match number.as_f64() {
            Some(value) if number.is_f64() => printed.push_str(&float(value)),
            _ => printed.push_str(&number.to_string()),
        },
        Value::String(text) => write_json_text(text, printed),
        Value::Array(items) => {
            printed.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    printed.push_str(style.comma);
                }
                write_json(item, style, printed);
            }
            printed.push(']');
        }
        Value::Object(entries) => {
            let mut keys: Vec<_> = entries.iter().collect();
            if style.sorted {
                keys.sort_by_key(|(key, _)| *key);
            }
            printed.push('{');
            for (position, (key, entry)) in keys.into_iter().enumerate() {
                if position > 0 {
                    printed.push_str(style.comma);
                }
                write_json_text(key, printed);
                printed.push_str(style.colon);
                write_json(entry, style, printed);
            }
            printed.push('}');
        }
    }
}

/// Writes a JSON string in ASCII, like `json.dumps`.
pub fn write_json_text(text: &str, printed: &mut String) {
    printed.push('"');
    for character in text.chars() {
        match character {
            '"' => printed.push_str("\\\""),
            '\\' => printed.push_str("\\\\"),
            '\n' => printed.push_str("\\n"),
            '\r' => printed.push_str("\\r"),
            '\t' => printed.push_str("\\t"),
            '\u{8}' => printed.push_str("\\b"),
            '\u{c}' => printed.push_str("\\f"),
            ' '..='~' => printed.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(printed, "\\u{unit:04x}");
                }
            }
        }
    }
    printed.push('"');
}

/// Writes a JSON string with only the required escapes, like `json.dumps(text,
/// ensure_ascii=False)`.
pub fn write_unicode_text(text: &str, printed: &mut String) {
    printed.push('"');
    for character in text.chars() {
        match character {
            '"' => printed.push_str("\\\""),
            '\\' => printed.push_str("\\\\"),
            '\n' => printed.push_str("\\n"),
            '\r' => printed.push_str("\\r"),
            '\t' => printed.push_str("\\t"),
            '\u{8}' => printed.push_str("\\b"),
            '\u{c}' => printed.push_str("\\f"),
            ..' ' => {
                let _ = write!(printed, "\\u{:04x}", u32::from(character));
            }
            _ => printed.push(character),
        }
    }
    printed.push('"');
}

/// Returns the name of the Python type that `json.loads` returns for a value.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

/// Returns the decimal form of a text that Python's `int(text)` accepts, or `None`.
#[must_use]
pub fn int(text: &str) -> Option<String> {
    let text = text.trim();
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if !digits_well_placed(digits) || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return None;
    }
    let digits: String = digits.chars().filter(|&digit| digit != '_').collect();
    let digits = digits.trim_start_matches('0');
    Some(match (digits.is_empty(), negative) {
        (true, _) => "0".to_owned(),
        (false, true) => format!("-{digits}"),
        (false, false) => digits.to_owned(),
    })
}

/// Returns the number in a text that Python's `float(text)` accepts, or `None`.
#[must_use]
pub fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim();
    if !text.contains('_') {
        return text.parse().ok();
    }
    // Underscores are only allowed between two digits.
    let between_digits = text.char_indices().filter(|(_, character)| *character == '_').all(|(position, _)| {
        let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        position > 0 && digit(text.as_bytes().get(position - 1)) && digit(text.as_bytes().get(position + 1))
    });
    if between_digits { text.replace('_', "").parse().ok() } else { None }
}

fn digits_well_placed(digits: &str) -> bool {
    !digits.is_empty() && !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__")
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    #[test]
    fn texts_print_as_in_python() {
        assert_eq!(repr("a"), "'a'");
        assert_eq!(repr("it's"), "\"it's\"");
        assert_eq!(repr("it's \"x\""), "'it\\'s \"x\"'");
        assert_eq!(repr("a\n\\\0é"), "'a\\n\\\\\\x00é'");
        assert_eq!(repr("\u{a0}\u{200b}\u{3000}\u{e0001} 日"), "'\\xa0\\u200b\\u3000\\U000e0001 日'");
        assert_eq!(repr_list(&["a", "b"]), "['a', 'b']");
        assert_eq!(repr_bytes(b"it's \0\n\\\xff"), r#"b"it's \x00\n\\\xff""#);
        assert_eq!(repr_bytes(b"'\""), r#"b'\'"'"#);
    }

    #[test]
    fn texts_are_stripped_as_in_python() {
        assert_eq!(strip(" \u{1c}\u{1f}\u{3000}\u{a0}a b\n\u{85}"), "a b");
        assert_eq!(strip("\u{200b}\u{feff}"), "\u{200b}\u{feff}");
    }

    #[test]
    fn floats_print_as_in_python() {
        for (number, printed) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e16, "1e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1e15, "1000000000000000.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (5e-324, "5e-324"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float(number), printed);
        }
    }

    #[test]
    fn json_prints_as_in_python() {
        let nested = value!({"b": [1, 2.5, null, true], "a": "é\u{1F600}\u{7f}\n"});
        assert_eq!(json_spaced(&value!({"b": [1, 2], "a": {}})), r#"{"b": [1, 2], "a": {}}"#);
        assert_eq!(json(&nested), r#"{"a":"\u00e9\ud83d\ude00\u007f\n","b":[1,2.5,null,true]}"#);
    }

    #[test]
    fn numbers_are_read_as_in_python() {
        assert_eq!(int(" +1_0 ").as_deref(), Some("10"));
        assert_eq!(int("1.0"), None);
        assert_eq!(parse_float("1_0.5"), Some(10.5));
        assert_eq!(parse_float("_1"), None);
        assert_eq!(parse_float(" -Infinity\n"), Some(f64::NEG_INFINITY));
        assert_eq!(parse_float("0x1"), None);
    }
}
