//! Archives the blocks of a partition.
//!
//! Blocks are archived one after another, under the lock of the partition. Archiving a block takes
//! about eight requests. It costs about 20 read units, and 80 write units: 30 for the block, 45 for
//! deleting the items with its spans, and the rest for rows. With the pause after each block, this is
//! at most 500 write units per second, half of what one partition of the table handles.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use artifact_store::{Archive, ArchiveError};
use entities::archived_objects::{announce, drop_later};
use entities::attributes::{ALL, CONTENT, EDITS, MARKED_AT, TO_PACK, WAITS};
use entities::now_ms;
use key_schema::WideDigest;
use mlflow_api::{Error, Result};
use rand::RngExt;
use runtime::clock::Moment;
use table::{Condition, Failure, Item, Query, number};
use trace_blocks::{
    Block, GroupError, LOCK_USE_DURATION, PartitionLock, QUIET_MARK_AGE, SpanGroup, TraceKey, TracePartition, joined,
    objects, read_archived, release_block, with_archived,
};

use crate::store::Retention;

/// Number of blocks that are read at a time. Each has about 30 KB.
const BLOCK_BATCH_SIZE: usize = 10;
/// Number of marks that are read at a time.
const MARK_BATCH_SIZE: usize = 100;
/// Pause after each block.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the archiver may write under a lock. The lock expires later.
const MAX_WRITE_DURATION: Duration = Duration::from_mins(1);

/// A partition that is being archived under its lock.
struct PartitionArchiver<'a> {
    retention: &'a Retention,
    partition: TracePartition,
    begun: Moment,
}

/// How far the blocks of a partition have been archived under one lock.
enum Progress {
    /// The blocks after this place are left.
    Through(TraceKey),
    /// All blocks have been tried. Contains the number of blocks that could not be archived.
    Done(usize),
    /// The experiment is not active, so nothing was archived.
    Inactive,
}

impl Retention {
    /// Archives the blocks of a partition. Returns whether all of them are archived. Sends one request
    /// if the partition has no blocks.
    pub(crate) async fn archive_partition(&self, partition: TracePartition) -> Result<bool> {
        let any = Query::of(partition.blocks()).for_removal().limit(1);
        if self.table.query_page(&any).await?.items.is_empty() {
            return Ok(true);
        }
        let mut after = None;
        loop {
            let nonce = rand::rng().random();
            // If the partition is being packed, it is archived when the experiment has its turn again.
            let Some(lock) = PartitionLock::take(&self.table, partition, nonce, now_ms()).await? else {
                return Ok(false);
            };
            let archiver = PartitionArchiver { retention: self, partition, begun: Moment::now() };
            // If a write failed, it may still be in flight. In that case the lock is not released, but
            // left to expire.
            let progress = archiver.run(after.as_ref()).await?;
            if let Err(failure) = lock.give_back(&self.table).await {
                tracing::warn!(?failure, "a partition lock could not be released, and will expire");
            }
            match progress {
                Progress::Through(place) => after = Some(place),
                Progress::Inactive => return Ok(false),
                Progress::Done(0) => return Ok(true),
                Progress::Done(failed) => {
                    return Err(Error::internal(format!("{failed} blocks of traces cannot be archived")));
                }
            }
        }
    }

    /// Requests that the traces of a partition are packed, however few they are, if there are traces
    /// that are not packed and can be. Sends one request, and one more to request packing.
    pub(crate) async fn request_packing(&self, partition: TracePartition) -> Result<()> {
        let mut query = Query::of(partition.marks()).limit(MARK_BATCH_SIZE);
        let quiet_since = now_ms().saturating_sub(QUIET_MARK_AGE);
        loop {
            let page = self.table.query_page(&query).await?;
            let can_be_packed =
                |mark: &Item| !mark.has(WAITS) && mark.get(MARKED_AT).is_some_and(|put| put <= quiet_since);
            if page.items.iter().any(can_be_packed) {
                let request = Item::new(partition.packing_key()).with(TO_PACK, number(now_ms())).with(ALL, number(1));
                return Ok(self.table.put(request, &Condition::Always).await?);
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(()),
            }
        }
    }
}

impl PartitionArchiver<'_> {
    /// Archives the blocks after a place, or all blocks, for as long as the lock may be used.
    async fn run(&self, after: Option<&TraceKey>) -> Result<Progress> {
        // A process that removes the experiment waits until the lock is free, and relies on the fact
        // that nothing is written under a lock that is taken after the experiment was deleted.
        if !self.retention.is_active(self.partition.experiment).await? {
            return Ok(Progress::Inactive);
        }
        let range = match after {
            Some(place) => self.partition.blocks().after(&place.text()),
            None => self.partition.blocks(),
        };
        let (mut failed, mut through) = (0, after.cloned());
        let mut query = Query::of(range).limit(BLOCK_BATCH_SIZE);
        loop {
            let page = self.retention.table.query_page(&query).await?;
            for item in page.items {
                if self.begun.age() > LOCK_USE_DURATION
                    && let Some(through) = through
                {
                    return Ok(Progress::Through(through));
                }
                through = item.key().as_ref().and_then(TraceKey::of_key);
                match Block::of(item) {
                    Ok(block) => {
                        release_block(&self.retention.table, &block).await?;
                        failed += usize::from(!self.archive(&block).await?);
                    }
                    Err(error) => {
                        tracing::error!(%error, "a block of traces cannot be read, and is not archived");
                        failed += 1;
                    }
                }
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(Progress::Done(failed)),
            }
        }
    }

    /// Archives the spans of a block that are in items of the table. Returns whether no such spans
    /// are left. Takes no request if the block has none.
    ///
    /// The new object also contains the spans of the block that were archived before. It replaces their
    /// objects, so that a block normally has one object, which contains no spans of deleted traces.
    async fn archive(&self, block: &Block) -> Result<bool> {
        let digests: BTreeSet<WideDigest> = block.groups().iter().filter_map(SpanGroup::digest_of_item).collect();
        if digests.is_empty() {
            return Ok(true);
        }
        let table = &self.retention.table;
        let keys: Vec<_> = digests.iter().map(|digest| self.partition.spans_key(digest)).collect();
        let items = table.get_many(&keys).await?;
        let mut contents: BTreeMap<WideDigest, Vec<u8>> = BTreeMap::new();
        for (digest, key) in digests.iter().zip(&keys) {
            if let Some(content) = items.get(key).and_then(|item| item.bytes(CONTENT)) {
                contents.insert(*digest, content.to_vec());
            } else {
                tracing::error!(key = key.text(), "an item with spans is missing, and is not archived");
            }
        }
        let is_complete = contents.len() == digests.len();
        if contents.is_empty() {
            return Ok(false);
        }
        let moved: Vec<_> = contents.keys().map(|digest| self.partition.spans_key(digest)).collect();
        let mut groups = block.archived().clone();
        for (digest, read) in read_archived(&self.retention.archive, block.archived()).await {
            match read {
                Ok((content, _)) => drop(contents.insert(digest, content.to_vec())),
                // The block continues to refer to the object, so that readers get an error.
                Err(GroupError::Lost(cause)) => tracing::error!(cause, "archived spans are lost"),
                Err(GroupError::Failed(failure)) => return Err(failure.into()),
            }
        }
        let announced = announce(table, Archive::new_object(), &block.key()).await?;
        let Some((object, archived)) = joined(announced.object(), &contents) else {
            return Err(Error::internal("spans of a block have an unexpected size"));
        };
        self.retention.archive.write(announced.object(), object).await.map_err(unavailable)?;
        groups.extend(archived);
        let kept = objects(&groups);
        let dropped = objects(block.archived()).into_iter().filter(|object| !kept.contains(object));
        drop_later(table, dropped.collect::<Vec<_>>(), &block.key()).await?;
        if self.begun.age() > MAX_WRITE_DURATION || !announced.may_refer() {
            return Err(Error::unavailable("archiving a block takes longer than the lock of its partition"));
        }
        let edits = rand::rng().random_range(1..=i64::MAX);
        match table.apply(&with_archived(block, &groups, edits)).await {
            // The block was already written by an earlier attempt whose response was lost.
            Err(Failure::Refused { item: Some(item), .. }) if item.get(EDITS) == Some(edits) => {}
            Err(Failure::Refused { .. }) => {
                return Err(Error::unavailable("another process is packing the partition"));
            }
            outcome => outcome?,
        }
        if self.begun.age() <= MAX_WRITE_DURATION {
            table.write_many(Vec::new(), &moved).await?;
            announced.finish(table).await?;
        } // Otherwise the sweep deletes these items. The packer may be working on the block already.
        runtime::clock::sleep(PAUSE).await;
        Ok(is_complete)
    }
}

/// Converts an error of the archive, and logs it for the operator.
fn unavailable(error: ArchiveError) -> Error {
    tracing::warn!(%error, "an object of the archive could not be written");
    error.into()
}
