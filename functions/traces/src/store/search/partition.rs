//! Reads the marks and the blocks of a partition side by side.
//!
//! The marks of an interval are read before its blocks. A trace that is packed in between is
//! therefore found in both, and counts once. In the opposite order, it would be missed. If a place
//! has a mark, the block's copy of the trace is ignored.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use entities::StoredTrace;
use entities::listing::Pace;
use mlflow_api::Result;
use search::TimeRange;
use trace_blocks::{Block, CoreTrace, TraceKey, TracePartition, read_blocks};

use super::super::store::Store;

/// Minimum number of marks per read. If traces are packed, there are few marks, and 30 of them cost
/// one read unit.
const MARKS: usize = 128;
/// Number of places that a single block very likely covers.
const FEW: usize = 32;

/// How much of the traces in blocks a search needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Nothing, because they are found in another way.
    Nothing,
    /// Start times, durations, states, names, sessions and tokens.
    Columns,
    /// Everything except the spans.
    Documents,
}

/// A place that has a mark, or a trace in a block.
pub(super) struct Spot {
    pub(super) partition: TracePartition,
    pub(super) place: TraceKey,
    pub(super) standing: Standing,
}

/// The entry at a place.
pub(super) enum Standing {
    /// A mark. The trace exists there if its document says so.
    Mark,
    /// A trace whose document has been read.
    Read(StoredTrace),
    /// The columns of a trace in a block.
    Columns(CoreTrace),
    /// A trace in a block, with its index in the block.
    Packed(Arc<PackedBlock>, usize),
}

/// A block whose documents are unpacked on first access. In a search over many partitions, most
/// blocks are needed only for their newest place.
pub(super) struct PackedBlock {
    pub(super) block: Block,
    documents: OnceLock<Vec<StoredTrace>>,
}

impl PackedBlock {
    /// Returns the trace at an index of the block. Traces are ordered newest first.
    pub(super) fn trace(&self, at: usize) -> Result<Option<StoredTrace>> {
        if let Some(documents) = self.documents.get() {
            return Ok(documents.get(at).cloned());
        }
        let documents = self.block.traces()?;
        Ok(self.documents.get_or_init(|| documents).get(at).cloned())
    }
}

/// Iterator over the places of a partition, newest first.
pub(super) struct PartitionWalk {
    partition: TracePartition,
    times: TimeRange,
    depth: Depth,
    /// The last place that was returned.
    behind: Option<TraceKey>,
    /// Marks after that place that have been read.
    marks: VecDeque<TraceKey>,
    marked: Reach,
    /// Whether the last read found no usable block, which means that marks are dense there.
    is_unpacked: bool,
    is_done: bool,
}

/// How far marks have been read.
enum Reach {
    Nowhere,
    To(TraceKey),
    End,
}

impl PartitionWalk {
    /// Returns an iterator over the places in a time range, after `behind`.
    pub(super) fn of(partition: TracePartition, times: TimeRange, depth: Depth, behind: Option<TraceKey>) -> Self {
        Self {
            partition,
            times,
            depth,
            behind,
            marks: VecDeque::new(),
            marked: Reach::Nowhere,
            is_unpacked: false,
            is_done: false,
        }
    }

    /// Returns about `most` of the next places, or none at the end. Two requests, or one if marks
    /// are left in memory.
    pub(super) async fn next(&mut self, store: &Store, most: usize) -> Result<Vec<Spot>> {
        while !self.is_done {
            let spots = self.read(store, most).await?;
            if !spots.is_empty() {
                return Ok(spots);
            }
        }
        Ok(Vec::new())
    }

    async fn read(&mut self, store: &Store, most: usize) -> Result<Vec<Spot>> {
        if matches!(self.marked, Reach::Nowhere) {
            self.read_marks(store, most).await?;
        }
        // A single block is enough for a few places, or if there may be no block.
        let wanted = if most < FEW || self.is_unpacked { 0 } else { most };
        let (blocks, has_more) = match self.depth {
            Depth::Nothing => (Vec::new(), false),
            _ => read_blocks(&store.table, &self.partition, self.behind.as_ref(), wanted).await?,
        };
        let blocks_end = blocks.last().filter(|_| has_more).map(Block::end);
        let marks_end = if let Reach::To(place) = &self.marked { Some(place) } else { None };
        let end = blocks_end.into_iter().chain(marks_end).min().cloned();
        let is_within = |place: &TraceKey| end.as_ref().is_none_or(|end| place <= end);
        let here = self.marks.iter().take_while(|place| is_within(place)).count();
        let marks: Vec<_> = self.marks.drain(..here).collect();
        let mut last = self.behind.clone();
        let (mut spots, mut pace) = (Vec::new(), Pace::default());
        for block in blocks {
            // All traces of the block may be too old.
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
                    spots.push(Spot { partition: self.partition, place, standing });
                }
            }
            // All places up to the block's end are covered by the block.
            last = last.max(Some(end_of_block));
        }
        self.is_unpacked = spots.is_empty();
        let marks = marks.into_iter().filter(|place| self.times.contains(place.time));
        let partition = self.partition;
        spots.extend(marks.map(|place| Spot { partition, place, standing: Standing::Mark }));
        spots.sort_by(|one, other| one.place.cmp(&other.place));
        if marks_end == end.as_ref() && end.is_some() {
            self.marked = Reach::Nowhere;
        }
        let is_past = |end: &TraceKey| self.times.from.is_some_and(|from| end.time < from);
        self.is_done = end.as_ref().is_none_or(is_past);
        self.behind = end;
        Ok(spots)
    }

    async fn read_marks(&mut self, store: &Store, most: usize) -> Result<()> {
        let range = match &self.behind {
            Some(place) => self.partition.marks().after(&place.text()),
            None => self.partition.marks(),
        };
        let (marks, has_more) = store.trace_marks(range, false, most.max(MARKS)).await?;
        self.marks = marks.into_iter().map(|mark| mark.place).collect();
        self.marked = match self.marks.back().filter(|_| has_more) {
            Some(last) => Reach::To(last.clone()),
            None => Reach::End,
        };
        Ok(())
    }

    /// Returns the traces of a block, newest first.
    fn unpacked(&self, block: Block) -> Result<Vec<(TraceKey, Standing)>> {
        match self.depth {
            Depth::Nothing => Ok(Vec::new()),
            Depth::Columns => {
                let traces = block.core()?.into_iter();
                Ok(traces.map(|trace| (trace.place.clone(), Standing::Columns(trace))).collect())
            }
            Depth::Documents => {
                let traces = block.core()?.into_iter();
                let block = Arc::new(PackedBlock { block, documents: OnceLock::new() });
                let standing =
                    |(at, trace): (usize, CoreTrace)| (trace.place, Standing::Packed(Arc::clone(&block), at));
                Ok(traces.enumerate().map(standing).collect())
            }
        }
    }
}
