//! Keys with values: tags, params.

use serde::Serialize;

use crate::messages;

messages! {
    /// A key and its value: a tag, a param.
    #[derive(Eq, PartialOrd, Ord, Serialize)]
    KeyValue {
        key: String,
        value: String,
    }
}

impl KeyValue {
    /// Key and value.
    #[must_use]
    pub fn pair(self) -> (String, String) {
        (self.key, self.value)
    }
}

/// The keys and values of a list.
#[must_use]
pub fn pairs(list: Vec<KeyValue>) -> Vec<(String, String)> {
    list.into_iter().map(KeyValue::pair).collect()
}
