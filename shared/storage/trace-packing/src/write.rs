//! Writing blocks, and taking marks away.

use std::collections::HashSet;
use std::time::Duration;

use entities::attributes::{BEHIND, EDITS, MARKED_AT};
use entities::{experiment_state, failed};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, WideDigest, rows};
use mlflow_api::tracking::LifecycleStage;
use rand::RngExt;
use table::{Condition, Failure, Item, Result, Write, number, text};
use trace_blocks::{Block, ToPack, TraceKey, pack};

use crate::{AT_ONCE, Mark, Packer};

/// How long blocks are written for which a lock was taken: it runs out after [`trace_blocks::LOCK_LASTS`].
const SAFE: Duration = Duration::from_mins(1);

/// The wanted content of a block.
pub(super) struct Piece {
    pub(super) end: TraceKey,
    pub(super) traces: Vec<ToPack>,
    /// The edits of the block when it was read, if it is there.
    pub(super) replaces: Option<i64>,
    /// Where the block before it ends, if that is cut off it now.
    pub(super) behind: Option<TraceKey>,
}

/// Whether an experiment may have blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// It is active.
    Active,
    /// It is deleted, and may be restored.
    Deleted,
    /// It was removed for good.
    Gone,
}

impl Packer<'_> {
    /// The state of the experiment. One request.
    pub(super) async fn home(&self) -> Result<Home> {
        let experiment = self.table.get(&rows::Experiment::key(&self.partition.experiment)).await?;
        Ok(match experiment.map(|item| experiment_state(&item).stage) {
            None => Home::Gone,
            Some(LifecycleStage::Active) => Home::Active,
            Some(LifecycleStage::Deleted) => Home::Deleted,
        })
    }

    /// Writes blocks: all or none, where there are several. Their spans first, but for those that are there. One request per 25 items of spans, and
    /// one for the blocks; a write unit per KB, two for several blocks, and two where a block is new.
    ///
    /// # Errors
    /// [`Failure::Unexpected`] where somebody else has packed the partition meanwhile.
    pub(super) async fn write(&self, pieces: Vec<Piece>, are_there: &HashSet<WideDigest>) -> Result<Vec<Block>> {
        let (mut blocks, mut spans, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        for Piece { end, traces, replaces, behind } in pieces {
            let (partition, now) = (self.partition, self.now);
            let edits = rand::rng().random_range(1..=i64::MAX);
            let packing = clock::aside(move || pack(&partition, &end, traces, edits, now));
            let packed = packing.await.map_err(|error| Failure::Unexpected(error.to_string()))?.map_err(failed)?;
            blocks.push(match behind {
                Some(behind) => packed.block.with(BEHIND, text(behind.text())),
                None => packed.block,
            });
            spans.extend(packed.spans);
            conditions.push(replaces.map_or_else(Condition::item_missing, is_as_read));
        }
        let known: HashSet<Key> = are_there.iter().map(|digest| self.partition.spans_key(digest)).collect();
        spans.retain(|item| item.key().is_none_or(|key| !known.contains(&key)));
        self.table.write_many(spans, &[]).await?;
        if self.begin.age() > SAFE {
            return Err(Failure::Unavailable("a pass takes longer than its lock".to_owned()));
        }
        let mut writes: Vec<_> = blocks.iter().cloned().zip(conditions).collect();
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
        blocks.into_iter().map(Block::of).collect::<mlflow_api::Result<_>>().map_err(failed)
    }

    async fn put(&self, block: Item, condition: &Condition) -> Result<()> {
        match self.table.put(block.clone(), condition).await {
            // The answer to an attempt was lost.
            Err(Failure::Refused { item: Some(found), .. }) if found == block => Ok(()),
            outcome => outcome.map_err(as_conflict),
        }
    }

    /// Removes a block that nobody needs, as it was read.
    pub(super) async fn remove(&self, block: &Block) -> Result<()> {
        match self.table.delete(&block.key(), &is_as_read(block.edits())).await {
            // The answer to an attempt was lost.
            Err(Failure::Refused { item: None, .. }) => Ok(()),
            outcome => outcome.map_err(as_conflict),
        }
    }

    /// Takes marks away that nobody has put again. One request for each.
    pub(super) async fn unmark(&self, marks: Vec<Mark>) -> Result<()> {
        let deletions = marks.into_iter().map(|mark| async move {
            let is_as_read = Condition::Equals(MARKED_AT.into(), number(mark.put));
            match self.table.delete(&self.partition.mark_key(&mark.place), &is_as_read).await {
                Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
                Err(failure) => Err(failure),
            }
        });
        stream::iter(deletions.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    /// Removes items of spans that no block names any more. One request per 25.
    pub(super) async fn forget_spans(&self, digests: impl IntoIterator<Item = WideDigest>) -> Result<()> {
        let keys: Vec<_> = digests.into_iter().map(|digest| self.partition.spans_key(&digest)).collect();
        self.table.write_many(Vec::new(), &keys).await
    }

    /// Removes what packing has left in the partition of an experiment that is gone: its removal
    /// may have looked before that was written.
    pub(super) async fn clear(&self) -> Result<()> {
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
            Failure::Unexpected("somebody else packs the partition".to_owned())
        }
        other => other,
    }
}
