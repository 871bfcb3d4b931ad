//! Deletes objects of the archive that no item refers to, and completes the archiving of blocks that
//! was interrupted.

use std::collections::BTreeSet;

use entities::archived_objects::{DueObject, due_objects};
use entities::now_ms;
use futures::stream::{self, StreamExt};
use key_schema::{Key, WideDigest, rows};
use mlflow_api::{ArchiveObject, Result};
use rand::RngExt;
use table::Item;
use trace_blocks::{Block, PartitionLock};

use super::references::referenced_objects;
use crate::failures::RemovalFailures;
use crate::store::Retention;

/// Number of objects that are checked at a time.
const BATCH_SIZE: usize = 100;
/// Number of objects that are deleted concurrently.
const CONCURRENCY: usize = 8;

impl Retention {
    /// Checks the objects of the archive that are due by `now`, in ms. Deletes those that their item
    /// does not refer to. For the others, deletes what the object replaces. Does nothing if the server
    /// stores no artifacts. May be interrupted at any point and repeated.
    ///
    /// Sends one request if no objects are due. Otherwise sends two per hundred objects, and up to
    /// three for each object. Costs the read units of the items that refer to the objects.
    ///
    /// # Errors
    /// Returns failures of the table and of the archive, after other objects have been tried. The next
    /// sweep retries what has failed.
    pub async fn sweep_archive(&self, now: i64) -> Result<()> {
        if !self.archive.exists() || !self.may_archive {
            return Ok(());
        }
        let mut failures = RemovalFailures::default();
        let mut after: Option<DueObject> = None;
        loop {
            let due = due_objects(&self.table, now, after.as_ref(), BATCH_SIZE).await?;
            let Some(last) = due.last().cloned() else { return failures.finish() };
            let referrers: BTreeSet<&Key> = due.iter().map(|object| &object.referrer).collect();
            let items = self.table.get_many(&referrers.into_iter().cloned().collect::<Vec<_>>()).await?;
            let checks: Vec<_> = due.iter().map(|due| self.check_object(due, items.get(&due.referrer))).collect();
            let outcomes: Vec<_> = stream::iter(checks).buffered(CONCURRENCY).collect().await;
            for (due, outcome) in due.iter().zip(outcomes) {
                failures.note(format_args!("object {} of the archive", due.object), outcome)?;
            }
            after = Some(last);
        }
    }

    /// Deletes an object and its row, unless the item refers to the object.
    async fn check_object(&self, due: &DueObject, item: Option<&Item>) -> Result<()> {
        let is_referenced =
            item.map_or(Ok(false), |item| referenced_objects(item).map(|objects| objects.contains(&due.object)));
        if is_referenced? {
            if !self.delete_replaced(due.object, item).await? {
                return Ok(());
            }
        } else {
            self.archive.delete(due.object).await?;
        }
        Ok(self.table.write_many(Vec::new(), &[due.key()]).await?)
    }

    /// Deletes the items with spans that an object replaces, if the process that has archived the
    /// block was interrupted. Returns whether no such items are left.
    async fn delete_replaced(&self, object: ArchiveObject, item: Option<&Item>) -> Result<bool> {
        let Some(item) = item.filter(|item| is_block(item)) else {
            // The next archiving of the run deletes segments that are listed as archived.
            return Ok(true);
        };
        let block = Block::of(item.clone())?;
        if self.table.get_many(&replaced(&block, object)).await?.is_empty() {
            return Ok(true);
        }
        // Without the lock, the indexer could write such an item again at the same time.
        let nonce = rand::rng().random();
        let Some(lock) = PartitionLock::take(&self.table, block.partition(), nonce, now_ms()).await? else {
            return Ok(false);
        };
        if let Some(block) = self.table.get(&block.key()).await?.map(Block::of).transpose()? {
            self.table.write_many(Vec::new(), &replaced(&block, object)).await?;
        }
        if let Err(failure) = lock.give_back(&self.table).await {
            tracing::warn!(?failure, "a partition lock could not be released, and will expire");
        }
        Ok(true)
    }
}

fn is_block(item: &Item) -> bool {
    item.key().is_some_and(|key| rows::TraceBlock::parse(&key).is_some())
}

/// Returns the keys of the items with spans that an object of a block replaces.
fn replaced(block: &Block, object: ArchiveObject) -> Vec<Key> {
    let archived = block.archived().iter().filter(|(_, range)| range.object == object);
    archived.map(|(digest, _): (&WideDigest, _)| block.partition().spans_key(digest)).collect()
}
