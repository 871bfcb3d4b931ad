//! A pass over the marks of a partition.

use artifact_store::Archive;
use entities::{Moment, StoredTrace};
use rand::RngExt;
use table::{Failure, Item, Query, Result, Table};
use trace_blocks::{Block, PartitionLock, QUIET_MARK_AGE, TraceKey, TracePartition};

use crate::trace_packing::block_ends::{BlockEnds, OwnerBlock};
use crate::trace_packing::block_writer::ExperimentStatus;
use crate::trace_packing::marks::{Mark, take_by_place};
use crate::trace_packing::{MAX_MARKS_PER_BLOCK, Packer, PackingThresholds};

/// Number of marks per read.
const BATCH_SIZE: usize = 1_000;
/// Maximum number of marks in the range of one block that are collected.
const MAX_COLLECTED_MARKS: usize = 4_096;
/// Maximum age, in ms, of a mark in the range of a block. When it is reached, the block is
/// rewritten, even if it has few marks.
const MAX_MARK_AGE_MS: i64 = 86_400_000;
/// Age, in ms, from which it is certain that an earlier pass has checked a mark.
const RECENT_AGE_MS: i64 = 900_000;

/// When a partition has to be checked again, unless something else requests it earlier.
#[derive(Debug, Default)]
pub(crate) struct NextCheck {
    /// Delay in ms, counted from the beginning of the pass.
    pub(crate) within: Option<i64>,
    /// Mark at which to continue immediately, because the pass ran out of time.
    pub(crate) from: Option<TraceKey>,
}

impl NextCheck {
    fn within(&mut self, ms: i64) {
        self.within = Some(self.within.map_or(ms, |known| known.min(ms)));
    }

    fn within_any(&mut self, ms: Option<i64>) {
        if let Some(ms) = ms {
            self.within(ms);
        }
    }

    fn resume_at(&mut self, place: TraceKey) {
        // Of several positions, the oldest is kept. Positions are ordered newest first.
        self.from = self.from.take().max(Some(place));
    }
}

/// Marks, oldest first, whose positions are in the range of one block, or in the range of none.
#[derive(Debug, Default)]
struct MarkGroup {
    ends: BlockEnds,
    owner: Option<OwnerBlock>,
    marks: Vec<Mark>,
}

/// Packs the quiet traces of a partition, beginning at a mark or at the oldest one. If marks are
/// left, returns when the partition has to be checked again. Costs one read unit per 4 KB of marks
/// (30 without spans), and of each document and its spans. Reading the spans takes one request per trace.
/// `block_writer.rs` describes the costs of the writes.
///
/// # Errors
/// Returns failures of the table. The call can then be repeated.
pub(crate) async fn pack_partition(
    table: &Table,
    archive: &Archive,
    partition: TracePartition,
    from: Option<&TraceKey>,
    sizes: PackingThresholds,
    releases: bool,
    now: i64,
) -> Result<NextCheck> {
    let begin = Moment::now();
    let nonce = rand::rng().random();
    let Some(lock) = PartitionLock::take(table, partition, nonce, now).await? else {
        return Ok(NextCheck { within: Some(QUIET_MARK_AGE), from: None });
    };
    let packer = Packer { table, archive, partition, thresholds: sizes, releases, now, begin };
    let outcome = packer.pack_locked(from).await;
    // After a failed write, the lock is not released but left to expire, because the write may
    // still be in flight.
    let again = outcome?;
    if let Err(failure) = lock.give_back(table).await {
        tracing::warn!(?failure, "a partition lock could not be released, and will expire");
    }
    Ok(again)
}

/// The outcome of a step: the pass either continues, or has ended because the experiment was
/// deleted in the meantime.
enum PassProgress {
    /// Marks that are left for later, because they are too few to fill a block.
    Left(Vec<Mark>),
    Ended,
}

impl Packer<'_> {
    async fn pack_locked(&self, from: Option<&TraceKey>) -> Result<NextCheck> {
        match self.experiment_status().await? {
            ExperimentStatus::Active => self.pass(from).await,
            ExperimentStatus::Deleted => self.next_check_of_deleted().await,
            ExperimentStatus::Gone => {
                self.delete_leftovers().await?;
                Ok(NextCheck::default())
            }
        }
    }

    /// Returns when the partition of a deleted experiment has to be checked again, because the
    /// experiment may be restored. Returns no time if nothing is left to pack. Takes one request.
    async fn next_check_of_deleted(&self) -> Result<NextCheck> {
        let marks = self.table.query_page(&Query::of(self.partition.marks()).limit(1)).await?;
        Ok(NextCheck { within: (!marks.items.is_empty()).then_some(MAX_MARK_AGE_MS), from: None })
    }

    async fn pass(&self, from: Option<&TraceKey>) -> Result<NextCheck> {
        let (mut again, mut gathered, mut is_further) = (NextCheck::default(), MarkGroup::default(), false);
        let marks = from.map_or_else(|| self.partition.marks(), |from| self.partition.marks_until(from));
        let (mut query, mut items) = (Query::of(marks).backwards().limit(BATCH_SIZE), Vec::new());
        loop {
            let page = self.table.query_page(&query).await?;
            items.extend(page.items);
            for marks in take_by_place(&mut items, page.next.is_none()) {
                let (marks, deleted) = self.limit_marks(marks).await?;
                is_further |= deleted > 0;
                let Some(mark) = self.quiet(marks, &mut again) else { continue };
                if deleted > 0 && self.begin.age() > self.thresholds.max_duration {
                    again.resume_at(gathered.marks.first().map_or(mark.place, |oldest| oldest.place.clone()));
                    return Ok(again);
                }
                let owner = gathered.ends.owner(self, &mark.place).await?;
                let is_same = owner == gathered.owner;
                if is_same && gathered.marks.len() < MAX_COLLECTED_MARKS {
                    gathered.marks.push(mark);
                    continue;
                }
                if is_further && self.begin.age() > self.thresholds.max_duration {
                    again.resume_at(gathered.marks.first().map_or(mark.place, |oldest| oldest.place.clone()));
                    return Ok(again);
                }
                is_further |= !gathered.marks.is_empty();
                let PassProgress::Left(left) = self.pack(&mut gathered, &mut again).await? else { return Ok(again) };
                gathered.marks = if is_same { left } else { Vec::new() };
                // The block is looked up again, because packing may have changed the blocks.
                gathered.owner = gathered.ends.owner(self, &mark.place).await?;
                gathered.marks.push(mark);
            }
            let deleted;
            (items, deleted) = self.limit_marks(items).await?;
            is_further |= deleted > 0;
            if is_further && self.begin.age() > self.thresholds.max_duration {
                let open = items.first().and_then(|item| TraceKey::of_key(&item.key()?));
                if let Some(place) = gathered.marks.first().map(|oldest| oldest.place.clone()).or(open) {
                    again.resume_at(place);
                    return Ok(again);
                }
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => break,
            }
        }
        self.pack(&mut gathered, &mut again).await?;
        Ok(again)
    }

    /// Returns the marks of a position if its trace may be packed now.
    fn quiet(&self, marks: Vec<Item>, again: &mut NextCheck) -> Option<Mark> {
        let mark = Mark::of(marks)?;
        if mark.waits() {
            return None;
        }
        if !self.is_quiet(&mark) {
            // The next check takes place when all marks that exist now are quiet.
            again.within(QUIET_MARK_AGE);
            return None;
        }
        Some(mark)
    }

    /// Checks whether marks were put so long ago that no request relies on them.
    pub(super) fn is_quiet(&self, mark: &Mark) -> bool {
        mark.put <= self.now.saturating_sub(QUIET_MARK_AGE)
    }

    /// Packs the collected marks.
    async fn pack(&self, gathered: &mut MarkGroup, again: &mut NextCheck) -> Result<PassProgress> {
        let marks = std::mem::take(&mut gathered.marks);
        self.delete_unused_spans(&marks).await?;
        let Some(owner) = gathered.owner.clone() else { return self.pack_new(gathered, marks, again).await };
        let oldest = marks.iter().map(|mark| mark.put).min().unwrap_or(self.now);
        let is_few = marks.len() < self.thresholds.min_changed_marks.min(self.thresholds.min_new_marks);
        let is_looked_at = |mark: &Mark| mark.put <= self.now.saturating_sub(RECENT_AGE_MS);
        if is_few && oldest > self.now.saturating_sub(MAX_MARK_AGE_MS) && marks.iter().all(is_looked_at) {
            again.within(oldest.saturating_add(MAX_MARK_AGE_MS).saturating_sub(self.now));
            return Ok(PassProgress::Left(marks));
        }
        let Some((block, traces)) = self.block(&owner.end).await? else {
            again.within(MAX_MARK_AGE_MS);
            return Ok(PassProgress::Left(Vec::new()));
        };
        // Only marks within the block's time range change the block. Traces that began later than
        // the newest trace of the newest block are packed into new blocks, or fill up that block.
        let is_within = |mark: &Mark| !owner.is_newest || mark.place.time <= block.newest();
        let (mut change, mut new): (Vec<_>, Vec<_>) = marks.into_iter().partition(is_within);
        if change.len() > MAX_MARKS_PER_BLOCK {
            change.truncate(MAX_MARKS_PER_BLOCK);
            again.within(QUIET_MARK_AGE);
        }
        // Few marks are enough for rewriting the block if one of them is old, so that marks do not
        // stay forever, or if the trace of a mark was deleted, because deleted traces must not stay
        // in the block.
        let oldest = change.iter().map(|mark| mark.put).min().unwrap_or(self.now);
        let mut is_due = oldest <= self.now.saturating_sub(MAX_MARK_AGE_MS);
        if !is_due && !change.is_empty() && change.len() < self.thresholds.min_changed_marks {
            is_due = !self.documents(&change).await?.dead.is_empty();
        }
        let fill = new.len().min(self.thresholds.max_traces.saturating_sub(block.count()));
        if fill >= self.thresholds.min_new_marks && change.len() + fill <= MAX_MARKS_PER_BLOCK {
            change.extend(new.drain(..fill));
        }
        if change.len() >= self.thresholds.min_changed_marks || (is_due && !change.is_empty()) {
            gathered.ends = BlockEnds::default();
            again.within_any(self.rewrite(&block, traces, &change).await?);
        } else if !change.is_empty() {
            again.within(oldest.saturating_add(MAX_MARK_AGE_MS).saturating_sub(self.now));
        }
        self.pack_new(gathered, new, again).await
    }

    /// Reads a block and its traces. Returns `None` if the block cannot be read, so that other
    /// blocks are packed nevertheless. Its marks are kept, and requests for its unmarked traces
    /// return the error.
    async fn block(&self, end: &TraceKey) -> Result<Option<(Block, Vec<StoredTrace>)>> {
        let gone = || Failure::Unexpected("another process is packing the partition".to_owned());
        let read = match self.table.get(&self.partition.block_key(end)).await {
            Err(Failure::Unreadable(what)) => Err(what),
            item => Block::of(item?.ok_or_else(gone)?)
                .and_then(|block| block.traces().map(|traces| (block, traces)))
                .map_err(|error| error.to_string()),
        };
        Ok(read.inspect_err(|what| tracing::error!(what, "a block of traces cannot be read, and is not packed")).ok())
    }

    /// Creates new blocks from marks at positions that are in the range of no block.
    async fn pack_new(
        &self,
        gathered: &mut MarkGroup,
        marks: Vec<Mark>,
        again: &mut NextCheck,
    ) -> Result<PassProgress> {
        if marks.len() < self.thresholds.min_new_marks {
            return Ok(PassProgress::Left(marks));
        }
        gathered.ends = BlockEnds::default();
        let appended = self.append(&marks).await?;
        again.within_any(appended.recheck_within);
        if let Some(place) = appended.resume_at {
            again.resume_at(place);
        }
        if appended.is_over {
            again.within(MAX_MARK_AGE_MS);
            return Ok(PassProgress::Ended);
        }
        Ok(PassProgress::Left(appended.left))
    }
}
