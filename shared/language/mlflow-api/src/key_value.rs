//! Keys with values, which are tags and params.

use serde::Serialize;

use crate::messages;

messages! {
    /// A key and its value, which is a tag or a param.
    #[derive(Eq, PartialOrd, Ord, Serialize)]
    KeyValue {
        key: String,
        value: String,
    }
}

impl KeyValue {
    /// Returns the key and the value.
    #[must_use]
    pub fn pair(self) -> (String, String) {
        (self.key, self.value)
    }
}

/// Returns the keys and values of a list.
#[must_use]
pub fn pairs(list: Vec<KeyValue>) -> Vec<(String, String)> {
    list.into_iter().map(KeyValue::pair).collect()
}
