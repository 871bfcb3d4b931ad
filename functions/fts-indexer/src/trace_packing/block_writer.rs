//! Writes blocks and deletes marks.

use std::collections::HashSet;
use std::time::Duration;

use entities::archived_objects::drop_later;
use entities::attributes::{BEHIND, EDITS, MARKED_AT, RELEASED};
use entities::{experiment_state, failed};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, WideDigest, rows};
use mlflow_api::TraceId;
use mlflow_api::tracking::LifecycleStage;
use rand::RngExt;
use table::{Condition, Failure, Item, Query, Result, Write, number, text};
use trace_blocks::{
    ArchivedGroups, Block, PackedTrace, TraceKey, TraceToPack, keep_archived, objects, pack, release_traces,
};

use crate::trace_packing::marks::Mark;
use crate::trace_packing::{CONCURRENCY, Packer};

/// How long a pass may write blocks after it acquired its lock. The lock expires after
/// [`trace_blocks::LOCK_DURATION_MS`].
const MAX_WRITE_DURATION: Duration = Duration::from_mins(1);

/// The new contents of a block.
pub(super) struct BlockContent {
    pub(super) end: TraceKey,
    pub(super) traces: Vec<TraceToPack>,
    /// The block's edit counter when the block was read. `None` for a new block.
    pub(super) replaces: Option<i64>,
    /// End of the block before this one in the time order, if this block is being split off from
    /// it.
    pub(super) previous_end: Option<TraceKey>,
    /// Whether the table will contain no other copies of the block's traces.
    pub(super) is_released: bool,
    /// The archived spans of the block that these traces were in before.
    pub(super) archived: ArchivedGroups,
}

/// Whether traces of an experiment may be packed into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExperimentStatus {
    /// The experiment is active.
    Active,
    /// The experiment is deleted, and may be restored.
    Deleted,
    /// The experiment was permanently deleted.
    Gone,
}

impl Packer<'_> {
    /// Returns the state of the experiment. Takes one request.
    pub(super) async fn experiment_status(&self) -> Result<ExperimentStatus> {
        let experiment = self.table.get(&rows::Experiment::key(&self.partition.experiment)).await?;
        Ok(match experiment.map(|item| experiment_state(&item).stage) {
            None => ExperimentStatus::Gone,
            Some(LifecycleStage::Active) => ExperimentStatus::Active,
            Some(LifecycleStage::Deleted) => ExperimentStatus::Deleted,
        })
    }

    /// Writes blocks. If there are several, they are written atomically. Their spans are written
    /// before that, except for the items in `are_there`. Takes one request per 25 items of spans,
    /// and one for the blocks. Costs one write unit per KB, or two if there are several blocks, and
    /// two more for each new block. Sends one more request if archived spans are dropped, and one if
    /// the day ended long ago.
    ///
    /// # Errors
    /// Returns [`Failure::Unexpected`] if another process has packed the partition in the meantime.
    pub(super) async fn write(&self, pieces: Vec<BlockContent>, are_there: &HashSet<WideDigest>) -> Result<Vec<Block>> {
        let (mut items, mut spans, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        let mut before: Option<(TraceKey, ArchivedGroups)> = None;
        for BlockContent { end, traces, replaces, previous_end: behind, is_released, archived } in pieces {
            before.get_or_insert_with(|| (end.clone(), archived.clone()));
            let (partition, now) = (self.partition, self.now);
            let edits = rand::rng().random_range(1..=i64::MAX);
            let packing = runtime::clock::aside(move || pack(&partition, &end, traces, edits, now));
            let packed = packing.await.map_err(|error| Failure::Unexpected(error.to_string()))?.map_err(failed)?;
            let block = match behind {
                Some(behind) => packed.block.with(BEHIND, text(behind.text())),
                None => packed.block,
            };
            let block = if is_released && self.releases { block.with(RELEASED, number(1)) } else { block };
            items.push((block, archived));
            spans.extend(packed.spans);
            conditions.push(replaces.map_or_else(Condition::item_missing, is_as_read));
        }
        let known: HashSet<Key> = are_there.iter().map(|digest| self.partition.spans_key(digest)).collect();
        spans.retain(|item| item.key().is_none_or(|key| !known.contains(&key)));
        let keep = |(block, archived): (Item, ArchivedGroups)| keep_archived(block, &spans, &archived);
        let items: Vec<_> = items.into_iter().map(keep).collect::<mlflow_api::Result<_>>().map_err(failed)?;
        let blocks: Vec<_> = items.iter().cloned().map(Block::of).collect::<mlflow_api::Result<_>>().map_err(failed)?;
        if let Some((end, archived)) = before {
            self.drop_archived(&end, &archived, &blocks).await?;
        }
        self.reopen_day(&blocks).await?;
        self.table.write_many(spans, &[]).await?;
        if self.begin.age() > MAX_WRITE_DURATION {
            return Err(Failure::Unavailable("the pass takes longer than its lock".to_owned()));
        }
        let mut writes: Vec<_> = items.into_iter().zip(conditions).collect();
        match (writes.pop(), writes.is_empty()) {
            (Some((block, condition)), true) => self.put(block, &condition).await?,
            (Some(last), false) => {
                writes.push(last);
                let writes: Vec<_> =
                    writes.into_iter().map(|(block, condition)| Write::Put(block, condition)).collect();
                self.table.transact(&writes).await.map_err(as_conflict)?;
            }
            (None, _) => {}
        }
        Ok(blocks)
    }

    async fn put(&self, block: Item, condition: &Condition) -> Result<()> {
        match self.table.put(block.clone(), condition).await {
            // The block was already written by an earlier attempt whose response was lost.
            Err(Failure::Refused { item: Some(found), .. }) if found == block => Ok(()),
            outcome => outcome.map_err(as_conflict),
        }
    }

    /// Deletes a block that is no longer needed, on condition that it has not changed since it was
    /// read. Its archived spans are deleted later.
    pub(super) async fn remove(&self, block: &Block) -> Result<()> {
        drop_later(self.table, objects(block.archived()), &block.key()).await?;
        match self.table.delete(&block.key(), &is_as_read(block.edits())).await {
            // The block was already deleted by an earlier attempt whose response was lost.
            Err(Failure::Refused { item: None, .. }) => Ok(()),
            outcome => outcome.map_err(as_conflict),
        }
    }

    /// Deletes marks, except those that have been put again since they were read. Takes one request
    /// per mark.
    pub(super) async fn unmark(&self, marks: Vec<Mark>) -> Result<()> {
        let items: Vec<_> = marks.iter().flat_map(|mark| mark.items.iter().cloned()).collect();
        self.delete_marks(&items).await
    }

    /// Deletes items of marks, except those that have been put again since they were read.
    pub(super) async fn delete_marks(&self, items: &[Item]) -> Result<()> {
        let keys = items.iter().filter_map(|item| Some((item.key()?, item)));
        let deletions = keys.map(|(key, item)| async move {
            match self.table.delete(&key, &Condition::unchanged(item, MARKED_AT)).await {
                Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
                Err(failure) => Err(failure),
            }
        });
        stream::iter(deletions.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    /// Releases the table's own copies of traces that a block contains now, if the table's layout
    /// permits it. Returns the traces whose documents may still refer to a mark with spans, so that their
    /// marks must not be deleted. Costs as much as [`release_traces`].
    pub(super) async fn release(&self, packed: Vec<PackedTrace>) -> Result<HashSet<TraceId>> {
        let documents = packed.iter().map(|packed| &packed.document);
        let mut kept: HashSet<_> =
            documents.filter(|document| document.in_mark().is_some()).map(|document| document.id().clone()).collect();
        if self.releases {
            let released = release_traces(self.table, packed).await?;
            kept.retain(|trace| !released.contains(trace));
        }
        Ok(kept)
    }

    /// Deletes items of spans that no block refers to any more. Takes one request per 25 items.
    pub(super) async fn delete_spans(&self, digests: impl IntoIterator<Item = WideDigest>) -> Result<()> {
        let keys: Vec<_> = digests.into_iter().map(|digest| self.partition.spans_key(&digest)).collect();
        self.table.write_many(Vec::new(), &keys).await
    }

    /// Deletes the blocks and spans that packing has written to the partition of an experiment that
    /// no longer exists. The removal of the experiment does not find them if it searched the
    /// partition before they were written.
    pub(super) async fn delete_leftovers(&self) -> Result<()> {
        for item in self.table.query(Query::of(self.partition.blocks())).await? {
            if let Ok(block) = Block::of(item) {
                drop_later(self.table, objects(block.archived()), &block.key()).await?;
            }
        }
        for range in std::iter::once(self.partition.blocks()).chain(self.partition.spans()) {
            self.table.delete_range(range).await?;
        }
        self.table.write_many(Vec::new(), &[self.partition.packing_key()]).await
    }
}

fn is_as_read(edits: i64) -> Condition {
    Condition::Equals(EDITS.into(), number(edits))
}

fn as_conflict(failure: Failure) -> Failure {
    match failure {
        Failure::Refused { .. } | Failure::Cancelled(_) => {
            Failure::Unexpected("another process is packing the partition".to_owned())
        }
        other => other,
    }
}
