//! JSON in texts that clients send.

use mlflow_api::Json;

/// Approximate maximum number of values in one JSON text. Each takes about 64 bytes in memory and
/// at least two bytes in the text, so more of them could exhaust a server's memory.
const MOST: usize = 2_000_000;

/// Parses a JSON text. Returns `None` if the text is not JSON, or has too many values.
pub(crate) fn read(text: &str) -> Option<Json> {
    // Most texts are too short to have that many values.
    if text.len() > MOST && values(text) > MOST {
        return None;
    }
    Json::parse_lossy(text)
}

/// Counts the values in a JSON text by the marks that precede them.
fn values(text: &str) -> usize {
    marks(text.as_bytes(), |byte| matches!(byte, b'{' | b'[' | b',' | b':'))
}

/// Counts the marks of a kind outside of strings in JSON.
pub(crate) fn marks(json: &[u8], is_mark: impl Fn(u8) -> bool) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            mark if !is_text && is_mark(*mark) => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_too_many_values_is_a_text() {
        let list = |values: usize| format!("[{}0]", "0,".repeat(values));
        assert!(read(&list(MOST - 1)).is_some());
        assert_eq!(read(&list(MOST)), None);
        // The content of a string does not count as values.
        assert!(read(&format!("\"{}\\\"\"", "1,[".repeat(MOST))).is_some());
        assert_eq!(read("{\"a\": [1, {}]}"), Json::parse_lossy("{\"a\": [1, {}]}"));
        assert_eq!(values("{\"a,\\\",\": [1, {}]}"), 5);
    }
}
