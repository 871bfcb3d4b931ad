//! Python representations of values that only occur in messages about searches. They extend
//! [`mlflow_api::python`].

use std::fmt::Write as _;

pub(crate) use mlflow_api::python::data;
use mlflow_api::python::repr;

/// Formats a byte string like Python's `repr`.
pub(crate) fn bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut printed = format!("b{quote}");
    for &byte in bytes {
        match byte {
            b'\n' => printed.push_str("\\n"),
            b'\r' => printed.push_str("\\r"),
            b'\t' => printed.push_str("\\t"),
            b'\\' => printed.push_str("\\\\"),
            _ if char::from(byte) == quote => printed.extend(['\\', quote]),
            b' '..=b'~' => printed.push(char::from(byte)),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(printed, "\\x{byte:02x}");
            }
        }
    }
    printed.push(quote);
    printed
}

/// Formats a set of strings like Python's `repr`. The order in which Python prints the members
/// changes from process to process. Here they are sorted.
pub(crate) fn set(items: &[&str]) -> String {
    let mut sorted = items.to_vec();
    sorted.sort_unstable();
    format!("{{{}}}", join(sorted.into_iter().map(repr)))
}

/// Joins the items with commas.
pub(crate) fn join(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_python_prints_them() {
        let value = serde_json::json!({"a": 1.0, "b": [null, true, "x'"], "c": -3});
        assert_eq!(data(&value), r#"{'a': 1.0, 'b': [None, True, "x'"], 'c': -3}"#);
        assert_eq!(set(&["b", "a"]), "{'a', 'b'}");
        assert_eq!(bytes(b"\xff\n'\""), r#"b'\xff\n\'"'"#);
        assert_eq!(bytes(b"it's"), r#"b"it's""#);
    }
}
