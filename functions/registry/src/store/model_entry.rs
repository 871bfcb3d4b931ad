//! Entries of models in the lists of models.

use key_schema::{Name, TextSegment};
use search::RegisteredModelFields;

/// An entry of a model in a list.
#[derive(Clone)]
pub(super) struct ModelEntry {
    pub(super) name: String,
    /// Time of the last change, in ms, if the list is ordered by it.
    pub(super) changed: Option<i64>,
    /// The group of the entry. Entries of one group have no defined order in the list, either
    /// because their names are truncated in the keys, or because the models were changed at the
    /// same time.
    pub(super) group: String,
}

impl ModelEntry {
    /// Creates an entry with only a name.
    pub(super) fn named(name: String) -> Self {
        let group = group_of(&name);
        Self { name, changed: None, group }
    }
}

impl RegisteredModelFields for ModelEntry {
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

/// Returns the key prefix that this name shares with all names that have the same truncated form.
pub(super) fn group_of(name: &str) -> String {
    Name::from(name).beginning()
}
