//! Reads the marks and the blocks of a partition side by side.
//!
//! The marks of an interval are read before its blocks. So a trace that is packed in between is
//! found in both, and counts once. In the other order it would be found in neither. Where a place
//! has a mark, the block's copy of the trace does not count.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use entities::StoredTrace;
use listing::Pace;
use mlflow_api::Result;
use search::TimeRange;
use trace_blocks::{Block, CoreTrace, TraceKey, TracePartition, read_blocks};

use super::super::store::Store;

/// Marks that are read at a time at least: where traces are packed there are few, and 30 cost a read unit.
const MARKS: usize = 128;
/// Places that one block has most likely.
const FEW: usize = 32;

/// The part of the traces of blocks that a search needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Nothing: they are known otherwise.
    Nothing,
    /// When they began, how long they took, their states, names, sessions and tokens.
    Columns,
    /// All but their spans.
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
    /// A mark: a trace, as far as its document says that it is there.
    Mark,
    /// A trace whose document was read.
    Read(StoredTrace),
    /// Columns of a trace in a block.
    Columns(CoreTrace),
    /// A trace of a block: which of its traces.
    Packed(Arc<PackedBlock>, usize),
}

/// A block whose documents are unpacked when one is looked at. In a search of many partitions, most
/// blocks only show the next place.
pub(super) struct PackedBlock {
    pub(super) block: Block,
    documents: OnceLock<Vec<StoredTrace>>,
}

impl PackedBlock {
    /// One of its traces, newest first.
    pub(super) fn trace(&self, at: usize) -> Result<Option<StoredTrace>> {
        if let Some(documents) = self.documents.get() {
            return Ok(documents.get(at).cloned());
        }
        let documents = self.block.traces()?;
        Ok(self.documents.get_or_init(|| documents).get(at).cloned())
    }
}

/// A walk through a partition, newest first.
pub(super) struct PartitionWalk {
    partition: TracePartition,
    times: TimeRange,
    depth: Depth,
    /// Places up to this one were handed out.
    behind: Option<TraceKey>,
    /// Marks after that place, as far as they were read.
    marks: VecDeque<TraceKey>,
    marked: Reach,
    /// Whether the last read found no block that it could use: marks are dense there.
    is_unpacked: bool,
    is_done: bool,
}

/// How far marks were read.
enum Reach {
    Nowhere,
    To(TraceKey),
    End,
}

impl PartitionWalk {
    /// A walk between these times, through the places after one.
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

    /// The next places, about so many; none at the end. Two requests, one where marks are left in memory.
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
        // For few places, or where there may be none, one block is enough.
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
            // All of its traces may be too old.
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
            // Up to its end, all places are its own.
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

    /// The traces of a block, newest first.
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
