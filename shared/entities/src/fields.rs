//! The setting of the fields that are indexed, in addition to those that always are.

use std::time::Duration;

use key_schema::attributes::{INDEXED, SEARCHED};
use key_schema::rows;
use search::IndexedFields;
use table::{Failure, Item, Result, Table, text};

/// How long a process may rely on the setting that it read. A process that takes a field out waits
/// as long.
pub const LEASE: Duration = Duration::from_mins(1);

const SETTING: &str = "index_fields";

/// Which fields the indexer indexes, and which of them searches may rely on: those that have been indexed for every run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// The fields that the indexer indexes.
    pub indexed: IndexedFields,
    /// The fields that searches rely on.
    pub searched: IndexedFields,
}

impl Setting {
    /// The setting of a table; the default where there is none. One request.
    ///
    /// # Errors
    /// [`Failure::Unreadable`] if it cannot be read.
    pub async fn read(table: &Table) -> Result<Self> {
        let Some(item) = table.get(&rows::Config::key(&SETTING.into())).await? else { return Ok(Self::default()) };
        let fields = |attribute| {
            let fields = item.text(attribute).map_or_else(|| Some(IndexedFields::default()), from_json);
            fields.ok_or_else(|| Failure::Unreadable(format!("{attribute} of the setting {SETTING}")))
        };
        Ok(Self { indexed: fields(INDEXED)?, searched: fields(SEARCHED)? })
    }

    /// Writes the setting. One request.
    pub async fn write(&self, table: &Table) -> Result<()> {
        let item = Item::new(rows::Config::key(&SETTING.into()))
            .with(INDEXED, text(to_json(&self.indexed)))
            .with(SEARCHED, text(to_json(&self.searched)));
        table.put(item, &table::Condition::Always).await
    }
}

/// Fields as JSON.
#[must_use]
pub fn to_json(fields: &IndexedFields) -> String {
    serde_json::to_string(fields).unwrap_or_default()
}

/// Fields from JSON; `None` if it cannot be read.
#[must_use]
pub fn from_json(json: &str) -> Option<IndexedFields> {
    serde_json::from_str(json).ok()
}
