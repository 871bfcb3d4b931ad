//! The setting for the age at which metric histories are archived.

use entities::attributes::KEPT_FOR;
use key_schema::{Key, rows};
use table::{Condition, Failure, Item, Table, text};

use crate::age::DeletionAge;

/// Name of the setting's row.
const NAME: &str = "history_archive";
/// Value of the row if histories are never archived.
const OFF: &str = "off";

/// The time since the end of a run after which its long histories are archived.
#[derive(Clone, Copy, Debug)]
pub struct HistoryArchiveAge;

impl HistoryArchiveAge {
    /// The age if the setting has not been changed.
    pub const DEFAULT: &str = "90d";

    /// Reads the age. `None` means that histories are never archived. Sends one request.
    ///
    /// # Errors
    /// Returns [`Failure::Unreadable`] if the setting cannot be read.
    pub async fn read(table: &Table) -> table::Result<Option<DeletionAge>> {
        let item = table.get(&Self::key()).await?;
        let text = item.as_ref().map_or(Some(Self::DEFAULT), |item| item.get(KEPT_FOR));
        if text == Some(OFF) {
            return Ok(None);
        }
        let age = text.and_then(|age| DeletionAge::parse(age).ok());
        age.map(Some).ok_or_else(|| Failure::Unreadable(format!("{KEPT_FOR} of the setting {NAME}")))
    }

    /// Sets the age. With `None`, histories are never archived. Sends one request.
    pub async fn write(table: &Table, age: Option<&DeletionAge>) -> table::Result<()> {
        let age = age.map_or(OFF, DeletionAge::as_str);
        table.put(Item::new(Self::key()).with(KEPT_FOR, text(age)), &Condition::Always).await
    }

    fn key() -> Key {
        rows::Config::key(&NAME.into())
    }
}
