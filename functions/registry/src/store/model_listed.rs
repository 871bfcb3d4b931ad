//! The entry of a model in a list.

use key_schema::{Name, TextSegment};
use search::RegisteredModelFields;

/// The entry of a model in a list.
#[derive(Clone)]
pub(super) struct Listed {
    pub(super) name: String,
    /// When it was last changed, in ms, if the list is by that.
    pub(super) changed: Option<i64>,
    /// Models of one group are in no order: their names are cut in keys, or they were changed at once.
    pub(super) group: String,
}

impl Listed {
    /// A model of this name; nothing else is known about it.
    pub(super) fn named(name: String) -> Self {
        let group = group_of(&name);
        Self { name, changed: None, group }
    }
}

impl RegisteredModelFields for Listed {
    fn name(&self) -> &str {
        &self.name
    }

    fn last_updated(&self) -> i64 {
        self.changed.unwrap_or_default()
    }

    fn tag(&self, _: &str) -> Option<&str> {
        None
    }
}

/// The beginning of the keys of a name, and of others that are cut like it.
pub(super) fn group_of(name: &str) -> String {
    Name::from(name).beginning()
}
