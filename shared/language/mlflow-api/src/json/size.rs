//! The number of values in JSON, before it is read: a value of two bytes takes some hundred in memory.

/// Largest number of values in JSON that becomes a value of `serde_json`, such as the body of a request. A batch of a thousand
/// metrics has some 13,000. All of them take less than 200 MB, whatever they are.
pub const MAX_VALUES: usize = 500_000;

/// Largest number of values in a JSON text that is part of a request, such as the records of a dataset. As a
/// [`Json`](super::Json), all of them take some 200 MB.
pub const MAX_TEXT_VALUES: usize = 1_000_000;

/// How many marks of a kind JSON has outside of its strings.
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

/// How many values JSON has, about: each but the first comes after a mark. Names of an object's entries count, too.
#[must_use]
pub fn values(json: &[u8]) -> usize {
    marks(json, |byte| matches!(byte, b'{' | b'[' | b',' | b':'))
}

/// The most values that bytes may have as JSON, also in texts in it. It takes less time than [`values`].
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
