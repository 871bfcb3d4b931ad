//! Records of uploads whose versions are not registered yet.

use std::time::Duration;

use entities::attributes::{ABANDONED, CONTENT_PATH, CREATED, EXPIRES};
use entities::now_ms;
use key_schema::{Key, rows};
use table::{Condition, Failure, Item, Result, Table, Update, Write, number, text};

use super::directory::ContentDirectory;

/// The time after which an upload that has not been completed is deleted. It is much longer than any
/// upload takes. An upload that takes even longer cannot be completed.
pub const MAX_UPLOAD_AGE: Duration = Duration::from_hours(1);

/// An upload whose version is not registered yet.
#[derive(Clone, Debug)]
pub struct SkillUpload {
    directory: ContentDirectory,
    pub(super) key: Key,
}

impl SkillUpload {
    /// Records an upload. Has to be called before the first file is written. Takes one request.
    ///
    /// # Errors
    /// Returns failures of the table. If the row has been written nevertheless, the row is deleted
    /// later.
    pub async fn begin(table: &Table, directory: ContentDirectory) -> Result<Self> {
        let key = rows::SkillUpload::key(&directory.token());
        let row = Item::new(key.clone())
            .with(CONTENT_PATH, text(directory.path().to_string()))
            .with(CREATED, number(now_ms()));
        match table.put(row, &Condition::item_missing()).await {
            // No other upload has this token, so an earlier attempt has written the row.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(Self { directory, key }),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the directory of the files.
    #[must_use]
    pub fn directory(&self) -> &ContentDirectory {
        &self.directory
    }

    /// Returns a write for the transaction that registers the version. It marks the upload as
    /// completed, on condition that its files are not being deleted.
    ///
    /// The row remains for a while. If it was deleted instead, a delayed attempt to write it could
    /// succeed afterwards, and the content of the version would be deleted.
    #[must_use]
    pub fn completion(&self) -> Write {
        let expires = now_ms().saturating_add(i64::try_from(MAX_UPLOAD_AGE.as_millis()).unwrap_or(i64::MAX)) / 1_000;
        let is_not_abandoned = Condition::Missing(ABANDONED.into());
        Write::Update(Update::new(self.key.clone()).only_if(is_not_abandoned).set(EXPIRES, number(expires)))
    }
}
