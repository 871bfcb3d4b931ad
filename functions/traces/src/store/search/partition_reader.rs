//! Reads the marks and the blocks of a partition side by side.
//!
//! The marks of an interval are read before its blocks. A trace that is packed between the two
//! reads is therefore found in both, and returned once. In the opposite order, it would be missed.
//! If a position has a mark, the block's copy of the trace is ignored.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use entities::StoredTrace;
use entities::listing::CooperativeYield;
use mlflow_api::Result;
use search::TimeRange;
use trace_blocks::{Block, TraceColumns, TraceKey, TracePartition, read_blocks};

use super::super::store::Store;

/// Minimum number of marks per read. If most traces are packed, few marks are left. 30 marks without
/// spans cost one read unit, and so do three with spans.
const MIN_MARKS_PER_READ: usize = 32;
/// Number of positions in the time order that a single block very likely covers.
const PLACES_IN_ONE_BLOCK: usize = 32;

/// How much of the traces in blocks a search needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadDepth {
    /// No traces from blocks are needed, because the index of clients' request ids finds them.
    Nothing,
    /// Start times, durations, states, names, sessions and tokens.
    Columns,
    /// Everything except the spans.
    Documents,
}

/// A position in the time order that has a mark, or a trace in a block.
pub(super) struct OccupiedSpot {
    pub(super) partition: TracePartition,
    pub(super) place: TraceKey,
    pub(super) entry: SpotEntry,
}

/// The entry at a position in the time order.
pub(super) enum SpotEntry {
    /// A mark. Whether the trace exists at this position is determined from its document.
    Mark,
    /// A trace whose document has been read.
    Read(StoredTrace),
    /// The columns of a trace in a block.
    Columns(TraceColumns),
    /// A trace in a block, with its index in the block.
    Packed(Arc<LazyBlock>, usize),
}

/// A block whose documents are unpacked on first access. In a search over many partitions, most
/// blocks are needed only for the position of their newest trace.
pub(super) struct LazyBlock {
    pub(super) block: Block,
    documents: OnceLock<Vec<StoredTrace>>,
}

impl LazyBlock {
    /// Returns the trace at an index of the block. Traces are ordered newest first.
    pub(super) fn trace(&self, at: usize) -> Result<Option<StoredTrace>> {
        if let Some(documents) = self.documents.get() {
            return Ok(documents.get(at).cloned());
        }
        let documents = self.block.traces()?;
        Ok(self.documents.get_or_init(|| documents).get(at).cloned())
    }
}

/// Iterator over the positions of a partition that are occupied by a trace, newest first.
pub(super) struct PartitionReader {
    partition: TracePartition,
    times: TimeRange,
    depth: ReadDepth,
    /// The position that was returned last.
    last_returned: Option<TraceKey>,
    /// Marks that have been read but not returned yet.
    marks: VecDeque<TraceKey>,
    marks_read: MarksRead,
    /// Whether the last read found no usable block. In that case, most traces in this range still
    /// have marks.
    is_unpacked: bool,
    is_done: bool,
}

/// The position up to which the partition's marks have been read.
enum MarksRead {
    Nowhere,
    To(TraceKey),
    End,
}

impl PartitionReader {
    /// Returns an iterator over the positions in a time range that come after `behind`.
    pub(super) fn of(partition: TracePartition, times: TimeRange, depth: ReadDepth, behind: Option<TraceKey>) -> Self {
        Self {
            partition,
            times,
            depth,
            last_returned: behind,
            marks: VecDeque::new(),
            marks_read: MarksRead::Nowhere,
            is_unpacked: false,
            is_done: false,
        }
    }

    /// Returns about `most` of the partition's next positions, or none at its end. Takes two
    /// requests, or one if marks are left in memory.
    pub(super) async fn next(&mut self, store: &Store, most: usize) -> Result<Vec<OccupiedSpot>> {
        while !self.is_done {
            let spots = self.read(store, most).await?;
            if !spots.is_empty() {
                return Ok(spots);
            }
        }
        Ok(Vec::new())
    }

    async fn read(&mut self, store: &Store, most: usize) -> Result<Vec<OccupiedSpot>> {
        if matches!(self.marks_read, MarksRead::Nowhere) {
            self.read_marks(store, most).await?;
        }
        // Only one block is read if few positions are requested, or if there may be no block.
        let wanted = if most < PLACES_IN_ONE_BLOCK || self.is_unpacked { 0 } else { most };
        let (blocks, has_more) = match self.depth {
            ReadDepth::Nothing => (Vec::new(), false),
            _ => read_blocks(&store.table, &self.partition, self.last_returned.as_ref(), wanted).await?,
        };
        let blocks_end = blocks.last().filter(|_| has_more).map(Block::end);
        let marks_end = if let MarksRead::To(place) = &self.marks_read { Some(place) } else { None };
        let end = blocks_end.into_iter().chain(marks_end).min().cloned();
        let is_within = |place: &TraceKey| end.as_ref().is_none_or(|end| place <= end);
        let here = self.marks.iter().take_while(|place| is_within(place)).count();
        let marks: Vec<_> = self.marks.drain(..here).collect();
        let mut last = self.last_returned.clone();
        let (mut spots, mut pace) = (Vec::new(), CooperativeYield::default());
        for block in blocks {
            // Reading stops if all traces of the block began before the requested time range.
            if self.times.from.is_some_and(|from| block.newest() < from) {
                break;
            }
            pace.keep().await;
            let end_of_block = block.end().clone();
            for (place, standing) in self.unpacked(block)? {
                let is_next = last.as_ref().is_none_or(|last| place > *last) && is_within(&place);
                if !is_next {
                    continue;
                }
                last = Some(place.clone());
                if self.times.contains(place.time) && marks.binary_search(&place).is_err() {
                    spots.push(OccupiedSpot { partition: self.partition, place, entry: standing });
                }
            }
            // The block covers all positions up to its end.
            last = last.max(Some(end_of_block));
        }
        self.is_unpacked = spots.is_empty();
        let marks = marks.into_iter().filter(|place| self.times.contains(place.time));
        let partition = self.partition;
        spots.extend(marks.map(|place| OccupiedSpot { partition, place, entry: SpotEntry::Mark }));
        spots.sort_by(|one, other| one.place.cmp(&other.place));
        if marks_end == end.as_ref() && end.is_some() {
            self.marks_read = MarksRead::Nowhere;
        }
        let is_past = |end: &TraceKey| self.times.from.is_some_and(|from| end.time < from);
        self.is_done = end.as_ref().is_none_or(is_past);
        self.last_returned = end;
        Ok(spots)
    }

    async fn read_marks(&mut self, store: &Store, most: usize) -> Result<()> {
        let range = match &self.last_returned {
            Some(place) => self.partition.marks_after(place),
            None => self.partition.marks(),
        };
        let (marks, has_more) = store.trace_marks(range, false, most.max(MIN_MARKS_PER_READ)).await?;
        self.marks = marks.into_iter().map(|mark| mark.place).collect();
        self.marks_read = match self.marks.back().filter(|_| has_more) {
            Some(last) => MarksRead::To(last.clone()),
            None => MarksRead::End,
        };
        Ok(())
    }

    /// Returns the traces of a block, newest first.
    fn unpacked(&self, block: Block) -> Result<Vec<(TraceKey, SpotEntry)>> {
        match self.depth {
            ReadDepth::Nothing => Ok(Vec::new()),
            ReadDepth::Columns => {
                let traces = block.core()?.into_iter();
                Ok(traces.map(|trace| (trace.place.clone(), SpotEntry::Columns(trace))).collect())
            }
            ReadDepth::Documents => {
                let traces = block.core()?.into_iter();
                let block = Arc::new(LazyBlock { block, documents: OnceLock::new() });
                let standing =
                    |(at, trace): (usize, TraceColumns)| (trace.place, SpotEntry::Packed(Arc::clone(&block), at));
                Ok(traces.enumerate().map(standing).collect())
            }
        }
    }
}
