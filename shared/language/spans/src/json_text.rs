//! JSON in texts that clients send.

use mlflow_api::Json;

/// Parses a JSON text. Returns `None` if the text is not JSON, or has more values than are read
/// ([`MAX_TEXT_VALUES`](mlflow_api::json::MAX_TEXT_VALUES)).
pub(crate) fn read(text: &str) -> Option<Json> {
    Json::parse_lossy(text)
}

#[cfg(test)]
mod tests {
    use mlflow_api::json::MAX_TEXT_VALUES as MOST;

    use super::*;

    #[test]
    fn a_text_of_too_many_values_is_a_text() {
        let list = |values: usize| format!("[{}0]", "0,".repeat(values));
        assert!(read(&list(MOST - 1)).is_some());
        assert_eq!(read(&list(MOST)), None);
        // The content of a string does not count as values.
        assert!(read(&format!("\"{}\\\"\"", "1,[".repeat(MOST))).is_some());
        assert_eq!(read("{\"a\": [1, {}]}"), Json::parse_lossy("{\"a\": [1, {}]}"));
    }
}
