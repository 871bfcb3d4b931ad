//! Comparison of two executions of a write, without times, random ids, and values derived from
//! them.

use std::collections::BTreeSet;

use serde_json::Value;

/// Response fields with creation and change times, and with a digest that is derived from such a
/// time.
const TIMES: [&str; 11] = [
    "creation_time",
    "last_update_time",
    "created_time",
    "last_updated_time",
    "creation_timestamp",
    "last_updated_timestamp",
    "creation_timestamp_ms",
    "last_updated_timestamp_ms",
    "create_time",
    "update_time",
    "digest",
];

/// Everything that clients could read before a write, as text, and the long words in this text,
/// which include all ids.
pub(crate) struct Known {
    before: String,
    words: BTreeSet<String>,
}

/// Fields that contain an experiment's number. They differ after a repeated creation, which skips a
/// number.
const NUMBERED: [&str; 2] = ["experiment_id", "artifact_location"];

/// Returns whether a character separates words. The ids of scorers contain dashes.
pub(super) fn is_end(letter: char) -> bool {
    !letter.is_ascii_alphanumeric() && letter != '-'
}

impl Known {
    pub(crate) fn of(before: &str) -> Self {
        let words = before.split(is_end).filter(is_long).map(str::to_owned).collect();
        Self { before: before.to_owned(), words }
    }

    /// Returns the value without times. All ids that did not exist before the write are replaced by
    /// one placeholder.
    pub(crate) fn same(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let number = fields.get("experiment_id").and_then(Value::as_str);
                let is_new = number.is_some_and(|id| !self.before.contains(&format!("\"experiment_id\":\"{id}\"")));
                let fields = fields.iter().map(|(name, value)| {
                    let is_drawn = TIMES.contains(&name.as_str()) && !value.is_object()
                        || is_new && NUMBERED.contains(&name.as_str());
                    (self.same_text(name), if is_drawn { Value::Null } else { self.same(value) })
                });
                fields.collect()
            }
            Value::Array(values) => values.iter().map(|value| self.same(value)).collect(),
            Value::String(text) => self.same_text(text).into(),
            other => other.clone(),
        }
    }

    pub(crate) fn same_text(&self, text: &str) -> String {
        let mut same = String::with_capacity(text.len());
        for word in text.split_inclusive(is_end) {
            let bare = word.trim_end_matches(is_end);
            if is_long(&bare) && !self.words.contains(bare) {
                same.push_str("NEW");
                same.push_str(&word[bare.len()..]);
            } else {
                same.push_str(word);
            }
        }
        same
    }
}

/// Returns whether a word has the length of an id or a time in milliseconds, and contains a digit.
pub(super) fn is_long(word: &&str) -> bool {
    word.len() >= 13 && word.len() <= 64 && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Describes the first difference between two values.
pub(crate) fn difference(expected: &Value, found: &Value) -> String {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for name in expected.keys().chain(found.keys()) {
                let (one, other) = (expected.get(name), found.get(name));
                if one != other {
                    let nothing = Value::Null;
                    return format!("/{name}{}", difference(one.unwrap_or(&nothing), other.unwrap_or(&nothing)));
                }
            }
            String::new()
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let differing = expected.iter().zip(found).enumerate().find(|(_, (one, other))| one != other);
            differing.map_or(String::new(), |(at, (one, other))| format!("/{at}{}", difference(one, other)))
        }
        _ => {
            let cut = |value: &Value| value.to_string().chars().take(160).collect::<String>();
            format!(" should be {} and is {}", cut(expected), cut(found))
        }
    }
}
