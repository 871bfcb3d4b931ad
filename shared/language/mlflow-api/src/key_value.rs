//! Pairs of a key and a value, such as tags and params.

use serde::Serialize;

use crate::messages;

messages! {
    /// A tag or a param: a key with its value.
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

/// Returns the key and the value of each element of a list.
#[must_use]
pub fn pairs(list: Vec<KeyValue>) -> Vec<(String, String)> {
    list.into_iter().map(KeyValue::pair).collect()
}
