//! Writes to the table in batches, no faster than the user allows. In a dry run, only counts the
//! writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use entities::attributes::IMPORTED;
use key_schema::Key;
use key_schema::definition::DATA;
use runtime::clock::sleep;
use table::{Condition, Item, Table, Update, Write, text};
use tokio::time::Instant;

use super::decision::REPLACING;
use crate::Failure;

/// A writer of items, which counts what it writes.
pub(crate) struct TableWriter {
    table: Table,
    /// Whether items are only counted.
    is_dry_run: bool,
    /// Maximum number of write units per second, or 0 for no limit.
    units_per_second: u64,
    started: Instant,
    units: AtomicU64,
    bytes: AtomicU64,
}

impl TableWriter {
    /// Creates the writer of a table, with a maximum number of write units per second.
    pub(crate) fn new(table: Table, is_dry_run: bool, units_per_second: Option<u64>) -> Self {
        Self {
            table,
            is_dry_run,
            units_per_second: units_per_second.unwrap_or_default(),
            started: Instant::now(),
            units: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Returns whether nothing is written.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// Returns the maximum number of write units per second, if there is one.
    pub(super) fn max_units_per_second(&self) -> Option<u64> {
        (self.units_per_second > 0).then_some(self.units_per_second)
    }

    /// Returns the write units of everything that was written. In a dry run, returns the units that
    /// would be needed.
    pub(crate) fn units(&self) -> u64 {
        self.units.load(Ordering::Relaxed)
    }

    /// Returns the bytes of all items that were written, or that a dry run has counted.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Writes items in batches, in no particular order. Costs one request per 25 items, and the write
    /// units of the items.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn put_all(&self, items: Vec<Item>) -> Result<(), Failure> {
        self.count(items.iter(), 1).await;
        if self.is_dry_run || items.is_empty() {
            return Ok(());
        }
        self.table.write_many(items, &[]).await.map_err(unwritten)
    }

    /// Writes an item, unless the table has an item with its key. Costs one request and the write
    /// units of the item.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn put_if_missing(&self, item: Item) -> Result<(), Failure> {
        self.count(std::iter::once(&item), 1).await;
        if self.is_dry_run {
            return Ok(());
        }
        match self.table.put(item, &Condition::item_missing()).await {
            Err(table::Failure::Refused { .. }) => Ok(()),
            written => written.map_err(unwritten),
        }
    }

    /// Marks an imported entity as being replaced, before any of its items is overwritten. The mark
    /// is in the entity's document, which is itself replaced last. Costs one request and the write
    /// units of the document.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn begin_replacement(&self, document: &Item) -> Result<(), Failure> {
        let (Some(key), Some(imported)) = (document.key(), document.get(IMPORTED)) else { return Ok(()) };
        self.count(std::iter::once(document), 1).await;
        if self.is_dry_run || imported == REPLACING {
            return Ok(());
        }
        let update = Update::new(key).set(IMPORTED, text(REPLACING));
        self.table.apply(&update).await.map_err(unwritten)
    }

    /// Deletes items in batches. Costs one request per 25 items, and the write units of the items.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn delete_all(&self, keys: Vec<Key>) -> Result<(), Failure> {
        if self.is_dry_run || keys.is_empty() {
            return Ok(());
        }
        self.table.write_many(Vec::new(), &keys).await.map_err(unwritten)
    }

    /// Executes writes in one transaction, which takes twice their units.
    ///
    /// # Errors
    /// The failure of the table: [`table::Failure::Cancelled`] if a condition does not hold.
    pub(crate) async fn transact(&self, writes: &[Write]) -> table::Result<()> {
        let items = writes.iter().filter_map(|write| match write {
            Write::Put(item, _) => Some(item),
            _ => None,
        });
        self.count(items, 2).await;
        if self.is_dry_run { Ok(()) } else { self.table.transact(writes).await }
    }

    #[expect(clippy::cast_precision_loss, reason = "a pause needs few digits")]
    /// Counts items, and pauses until the maximum number of write units per second allows them.
    async fn count(&self, items: impl Iterator<Item = &Item>, factor: u64) {
        let (mut units, mut bytes) = (0, 0);
        for item in items {
            units += write_units(item) * factor;
            bytes += item.size() as u64;
        }
        let total = self.units.fetch_add(units, Ordering::Relaxed) + units;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.units_per_second > 0 && !self.is_dry_run {
            let due = Duration::from_secs_f64(total as f64 / self.units_per_second as f64);
            sleep(due.saturating_sub(self.started.elapsed())).await;
        }
    }
}

/// Returns the write units of a new item with its index entries: one per KB of the item, and one
/// for each index, which projects only keys.
fn write_units(item: &Item) -> u64 {
    let indexes = DATA.local_indexes.iter().chain(DATA.global_indexes).filter(|index| item.is_in(index));
    (item.size() as u64).div_ceil(1_024).max(1) + indexes.count() as u64
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
fn unwritten(failure: table::Failure) -> Failure {
    format!("cannot write to the table: {failure:?}").into()
}
