//! The rows that record which objects of the archive exist.
//!
//! An object belongs to one item of the table, its **referrer**. The protocol ensures that no object
//! remains for good that its referrer does not refer to, and that no referrer refers to an object
//! that was deleted:
//!
//! 1. [`announce`] writes a row for the object that is due after an hour.
//! 2. The object is written.
//! 3. The referrer is written, on condition that it has not changed, and only if
//!    [`AnnouncedObject::may_refer`] returns `true`. The row is not due for a while then.
//! 4. The data that the object replaces is deleted, and then the row ([`AnnouncedObject::finish`]).
//!
//! Before a write that drops the last reference of an item to an object, [`drop_later`] writes a row
//! that is due after [`DROPPED_OBJECT_RETENTION_MS`]. A reference to an object is never created again.
//!
//! A process may stop after any of these steps. A **sweep** reads the rows that are due
//! ([`due_objects`]). If the referrer refers to the object, the sweep completes step 4. Otherwise it
//! deletes the object and then the row.

use std::time::Duration;

use key_schema::attributes::REFERRER;
use key_schema::{Ascending, Key, Segment, rows};
use mlflow_api::{ArchiveObject, Result};
use runtime::clock::{Moment, now_ms};
use table::{Condition, Item, Query, Table, text};

use crate::unreadable_item::unreadable;

/// Time, in ms, after which an object without a reference is deleted if the attempt that announced it
/// was interrupted.
const ATTEMPT_MS: i64 = 3_600_000;
/// Time within which a referrer may be written after the object was announced. It is half of
/// [`ATTEMPT_MS`], so that neither clock skew nor a write in flight matters.
const MAX_ATTEMPT_DURATION: Duration = Duration::from_mins(30);
/// Time, in ms, for which an object is kept after its last reference was dropped. A table can be
/// restored to any point of the last 35 days. The restored table refers to the objects of that time.
pub const DROPPED_OBJECT_RETENTION_MS: i64 = 36 * 24 * 3_600_000;

/// An object that is about to be written.
#[derive(Clone, Debug)]
pub struct AnnouncedObject {
    object: ArchiveObject,
    row: Key,
    begun: Moment,
}

impl AnnouncedObject {
    /// Returns the name of the object.
    #[must_use]
    pub fn object(&self) -> ArchiveObject {
        self.object
    }

    /// Returns whether an item that refers to the object may still be written. Otherwise a sweep may
    /// be about to delete the object, and the attempt has to be abandoned.
    #[must_use]
    pub fn may_refer(&self) -> bool {
        self.begun.age() < MAX_ATTEMPT_DURATION
    }

    /// Deletes the row after the referrer has been written and the data that the object replaces has
    /// been deleted. Takes one request of one write unit.
    ///
    /// # Errors
    /// Returns failures of the table. The row stays until the next sweep.
    pub async fn finish(self, table: &Table) -> table::Result<()> {
        table.write_many(Vec::new(), &[self.row]).await
    }
}

/// Announces an object that the item `referrer` will refer to. Must be called before the object is
/// written. Takes one request of one write unit.
///
/// # Errors
/// Returns failures of the table. The object must not be written in this case.
pub async fn announce(table: &Table, object: ArchiveObject, referrer: &Key) -> table::Result<AnnouncedObject> {
    let begun = Moment::now();
    let due = now_ms().saturating_add(ATTEMPT_MS);
    table.put(row(object, referrer, due), &Condition::Always).await?;
    Ok(AnnouncedObject { object, row: rows::ArchivedObject::key(&Ascending(due), &object), begun })
}

/// Schedules the deletion of objects to which `referrer` is about to drop its reference. Must be
/// called before the write that drops them. If that write then fails, the sweep finds the reference
/// and keeps the object. Takes one request per 25 objects, and none if there are no objects.
///
/// # Errors
/// Returns failures of the table. The references must not be dropped in this case.
pub async fn drop_later(
    table: &Table,
    objects: impl IntoIterator<Item = ArchiveObject>,
    referrer: &Key,
) -> table::Result<()> {
    let due = now_ms().saturating_add(DROPPED_OBJECT_RETENTION_MS);
    let rows = objects.into_iter().map(|object| row(object, referrer, due)).collect();
    table.write_many(rows, &[]).await
}

fn row(object: ArchiveObject, referrer: &Key, due: i64) -> Item {
    Item::new(rows::ArchivedObject::key(&Ascending(due), &object)).with(REFERRER, text(referrer.text()))
}

/// An object that has to be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueObject {
    /// The name of the object.
    pub object: ArchiveObject,
    /// The only item that may refer to the object.
    pub referrer: Key,
    /// When the check is due, in ms.
    pub due: i64,
}

impl DueObject {
    fn of(item: &Item) -> Result<Self> {
        let read = || {
            let row = rows::ArchivedObject::parse(&item.key()?)?;
            let referrer = Key::from_text(item.get(REFERRER)?)?;
            Some(Self { object: row.object, referrer, due: row.due.0 })
        };
        read().ok_or_else(|| unreadable(item, "an object of the archive"))
    }

    /// Returns the key of the object's row.
    #[must_use]
    pub fn key(&self) -> Key {
        rows::ArchivedObject::key(&Ascending(self.due), &self.object)
    }
}

/// Returns the objects that have to be checked by the time `until`, in ms, in the order in which they
/// are due, starting after the object `after`. Returns at most `most`. Takes one request, and costs
/// one read unit per 40 objects.
///
/// # Errors
/// Returns failures of the table, and an internal error if a row cannot be read.
pub async fn due_objects(table: &Table, until: i64, after: Option<&DueObject>, most: usize) -> Result<Vec<DueObject>> {
    let due = rows::ArchivedObject::all().range().until_beginning(&Ascending(until).text());
    let due = match after {
        Some(after) => due.after(&format!("{}#{}", Ascending(after.due).text(), after.object)),
        None => due,
    };
    let page = table.query_page(&Query::of(due).limit(most)).await?;
    page.items.iter().map(DueObject::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_leads_to_its_object_and_referrer() {
        let referrer = Key { pk: "TR#1#2#3".to_owned(), sk: "B#4#tr-5".to_owned() };
        let object = ArchiveObject::new(7);
        let item = row(object, &referrer, 1_000);
        let due = DueObject::of(&item).unwrap();
        assert_eq!(due, DueObject { object, referrer, due: 1_000 });
        assert_eq!(item.key(), Some(due.key()));
        assert!(DueObject::of(&Item::new(due.key())).is_err());
    }
}
