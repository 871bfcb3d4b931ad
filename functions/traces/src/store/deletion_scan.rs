//! Reads the traces of a day in their time order from the oldest on, for deletion.

use std::collections::{HashSet, VecDeque};

use entities::StoredTrace;
use futures::future::try_join_all;
use key_schema::list_positions;
use mlflow_api::{ExperimentId, Result};
use table::Query;
use trace_blocks::{Block, TraceKey, TracePartition};

use super::mark::TraceDay;
use super::store::Store;

/// Number of positions per page, and of marks per read.
const PAGE_SIZE: usize = 100;

/// A position in the time order that has a mark, or a trace in a block.
pub(super) struct OccupiedPlace {
    pub(super) partition: TracePartition,
    pub(super) place: TraceKey,
    pub(super) occupied_by: OccupiedBy,
}

/// The entry at a position in the time order.
pub(super) enum OccupiedBy {
    /// A mark, with the time in ms when it was written.
    Mark(i64),
    /// A trace in a block.
    Packed(StoredTrace),
}

/// Iterator over the positions in a day's time order up to a given time, oldest first. Positions
/// with equal times are in descending order of their ids.
pub(super) struct OldestPlaces {
    each: Vec<PartitionScan>,
}

/// The iteration over one partition of the day.
struct PartitionScan {
    partition: TracePartition,
    latest: i64,
    /// Positions that were read but not returned yet. Everything up to `before` has been read.
    ready: VecDeque<OccupiedPlace>,
    before: Option<TraceKey>,
    /// The end of the last block that was read, and whether all traces of that block were returned.
    block: Option<(TraceKey, bool)>,
    is_done: bool,
}

impl OldestPlaces {
    pub(super) fn of(experiment: ExperimentId, day: TraceDay, latest: i64) -> Self {
        let partition = |shard| TracePartition { experiment, day: day.day, shard };
        let each = (0..day.shards).map(|shard| PartitionScan {
            partition: partition(shard),
            latest,
            ready: VecDeque::new(),
            before: None,
            block: None,
            is_done: false,
        });
        Self { each: each.collect() }
    }

    /// Returns the next positions, at most a hundred, or `None` at the end. Takes two requests per
    /// partition of the day, each of which returns up to a hundred marks or one block.
    pub(super) async fn next(&mut self, store: &Store) -> Result<Option<Vec<OccupiedPlace>>> {
        let mut next = Vec::new();
        while next.len() < PAGE_SIZE {
            let dry = self.each.iter_mut().filter(|partition| partition.ready.is_empty() && !partition.is_done);
            try_join_all(dry.map(|partition| partition.read(store))).await?;
            if self.each.iter().any(|partition| partition.ready.is_empty() && !partition.is_done) {
                continue;
            }
            let place = |partition: &PartitionScan| partition.ready.front().map(|there| there.place.clone());
            let oldest =
                self.each.iter_mut().filter(|partition| !partition.ready.is_empty()).max_by_key(|it| place(it));
            let Some(there) = oldest.and_then(|partition| partition.ready.pop_front()) else { break };
            next.push(there);
        }
        Ok(Some(next).filter(|next| !next.is_empty()))
    }
}

impl PartitionScan {
    /// Reads the next marks, and then the next block. If a position has a mark, the block's copy of
    /// the trace is ignored.
    async fn read(&mut self, store: &Store) -> Result<()> {
        let (partition, latest) = (self.partition, self.latest);
        let marks = partition.marks().starting(&list_positions::time(latest));
        let marks = match &self.before {
            // Of the last position, which is read again, the range has only the mark without spans.
            Some(place) => marks.until(&place.text()),
            None => marks,
        };
        // One additional mark is requested, because the range includes the last position, which is
        // read again.
        let (marks, has_more_marks) = store.trace_marks(marks, true, PAGE_SIZE + 1).await?;
        let (block, has_more_blocks) = self.next_block(store).await?;
        let traces = block.as_ref().map(Block::traces).transpose()?.unwrap_or_default();
        let newest = traces.first().map(TraceKey::of);
        let is_last = newest.as_ref().is_some_and(|newest| newest.time > latest);
        let marks_end = marks.last().filter(|_| has_more_marks).map(|mark| &mark.place);
        let block_end = newest.as_ref().filter(|_| has_more_blocks && !is_last);
        // Both marks and blocks have been read up to the older one of their two ends.
        let end = marks_end.into_iter().chain(block_end).max().cloned();
        let is_within = |place: &TraceKey| end.as_ref().is_none_or(|end| place >= end);
        let is_new =
            |place: &TraceKey| place.time <= latest && self.before.as_ref().is_none_or(|before| place < before);
        let marked: HashSet<&TraceKey> = marks.iter().map(|mark| &mark.place).collect();
        let is_released = block.as_ref().is_some_and(Block::is_released);
        let current = |trace| if is_released { StoredTrace::behind_pointer(&trace) } else { trace };
        let packed = traces.into_iter().map(|trace| (TraceKey::of(&trace), OccupiedBy::Packed(current(trace))));
        let packed = packed.filter(|(place, _)| !marked.contains(place));
        let all = packed.chain(marks.iter().map(|mark| (mark.place.clone(), OccupiedBy::Mark(mark.at))));
        let mut ready: Vec<_> = all
            .filter(|(place, _)| is_within(place) && is_new(place))
            .map(|(place, standing)| OccupiedPlace { partition, place, occupied_by: standing })
            .collect();
        ready.sort_by(|one, other| other.place.cmp(&one.place));
        // A block without traces in the range will be read again, because other blocks may be
        // created before it in the meantime.
        if let Some(block) = block.filter(|block| is_within(block.end())) {
            let is_read = newest.as_ref().is_none_or(is_within);
            self.block = Some((block.end().clone(), is_read));
        }
        self.ready = ready.into();
        self.is_done = end.is_none();
        // The block that was read before may have been split in the meantime. The new block then
        // ends before positions that were already returned.
        self.before = end.map(|end| self.before.take().map_or(end.clone(), |before| before.min(end)));
        Ok(())
    }

    /// Returns the oldest block that has not been read completely, and whether there may be more
    /// blocks.
    async fn next_block(&self, store: &Store) -> Result<(Option<Block>, bool)> {
        let all = self.partition.blocks();
        let (range, known) = match &self.block {
            Some((end, is_read)) => (all.until(&end.text()), Some(end).filter(|_| *is_read)),
            None => (all, None),
        };
        // One additional block is requested, because the range includes the last block, which is
        // read again.
        let query = Query::of(range).backwards().limit(1 + usize::from(known.is_some()));
        let page = store.table.query_page(&query).await?;
        let blocks = page.items.into_iter().map(Block::of).collect::<Result<Vec<_>>>()?;
        let next = blocks.into_iter().find(|block| known.is_none_or(|known| block.end() < known));
        Ok((next, page.next.is_some()))
    }
}
