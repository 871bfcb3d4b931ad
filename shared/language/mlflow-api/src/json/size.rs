//! Limits on the number of values in JSON. The values are counted before parsing, because a value
//! of two bytes takes about a hundred bytes in memory.

/// Maximum number of values in JSON that is parsed into a value of `serde_json`, such as the body
/// of a request. Values of any type take less than 200 MB of memory at this limit. For comparison,
/// a batch of 1,000 metrics has about 13,000 values.
pub const MAX_VALUES: usize = 500_000;

/// Maximum number of values in a JSON text that is part of a request, such as the records of a
/// dataset. Parsed into a [`Json`](super::Json), this many values take about 200 MB of memory.
pub const MAX_TEXT_VALUES: usize = 1_000_000;

/// Counts the bytes outside of JSON strings for which `is_mark` returns true.
pub fn marks(json: &[u8], is_mark: impl Fn(u8) -> bool) -> usize {
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

/// Estimates the number of values in JSON by counting the punctuation that precedes every value
/// except the first. Keys of objects are counted, too.
#[must_use]
pub fn values(json: &[u8]) -> usize {
    marks(json, |byte| matches!(byte, b'{' | b'[' | b',' | b':'))
}

/// Returns an upper bound of the number of values in JSON, including JSON that is nested in
/// strings. Faster than [`values`].
#[must_use]
pub fn most_values(json: &[u8]) -> usize {
    json.iter().filter(|byte| matches!(byte, b'{' | b'[' | b',' | b':')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        for (json, expected, most) in
            [("[1, 2, {\"a\": [3]}]", 6, 6), ("\"[,:\\\"{\"", 0, 4), ("{\"a\": \"\\\\\", \"b\": 1}", 4, 4), ("5", 0, 0)]
        {
            assert_eq!((values(json.as_bytes()), most_values(json.as_bytes())), (expected, most), "{json}");
        }
    }
}
