//! Reads the traces at given positions in the time order, and their spans.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use entities::StoredTrace;
use entities::listing::CooperativeYield;
use mlflow_api::{ExperimentId, Result, TraceId};
use spans::Span;
use trace_blocks::{LargeTraceTurn, TraceColumns, TraceSpans, read_block_spans};

use super::super::store::Store;
use super::partition_reader::{LazyBlock, OccupiedSpot, SpotEntry};

/// Maximum number of span items from blocks that are in memory at a time. An unpacked item has up
/// to 350 KB.
const MAX_SPAN_ITEMS: usize = 64;

/// A trace that was found.
pub(super) enum FoundTrace {
    /// The document of a trace, and the block that contained it, if it was read from a block.
    Trace(StoredTrace, Option<Arc<LazyBlock>>),
    /// The values of a trace that its block stores in columns.
    Columns(ExperimentId, TraceColumns),
}

impl Store {
    /// Returns the traces at these positions, in the given order. Takes one request per hundred
    /// marks.
    pub(super) async fn traces_at(&self, spots: Vec<OccupiedSpot>) -> Result<Vec<FoundTrace>> {
        let marked = spots.iter().filter(|spot| matches!(spot.entry, SpotEntry::Mark));
        let marked: BTreeSet<_> = marked.map(|spot| &spot.place.trace).collect();
        let heads = self.trace_unexpired_documents(&marked.into_iter().collect::<Vec<_>>()).await?;
        let (mut found, mut pace) = (Vec::with_capacity(spots.len()), CooperativeYield::default());
        for spot in spots {
            pace.keep().await;
            match spot.entry {
                // A trace whose start time has changed has two marks, so the trace is returned only
                // at its current position.
                SpotEntry::Mark => {
                    let trace = heads.get(&spot.place.trace);
                    let trace = trace.filter(|trace| spot.partition.holds(trace, &spot.place));
                    found.extend(trace.map(|trace| FoundTrace::Trace(trace.clone(), None)));
                }
                SpotEntry::Read(trace) => found.push(FoundTrace::Trace(trace, None)),
                SpotEntry::Packed(block, at) => {
                    found.extend(block.trace(at)?.map(|trace| FoundTrace::Trace(trace, Some(block))));
                }
                SpotEntry::Columns(columns) => found.push(FoundTrace::Columns(spot.partition.experiment, columns)),
            }
        }
        Ok(found)
    }

    /// Reads the spans of traces that are in blocks. Takes one request per hundred items of spans,
    /// and half a read unit per 4 KB.
    pub(super) async fn packed_spans<'a>(
        &self,
        traces: impl Iterator<Item = (&'a TraceId, Option<&'a Arc<LazyBlock>>)>,
    ) -> Result<HashMap<TraceId, Vec<Span>>> {
        let wanted: Vec<_> = traces.filter_map(|(trace, block)| Some((&block?.block, trace))).collect();
        Ok(read_block_spans(&self.table, &self.archive, &wanted).await?)
    }

    /// Returns the spans of a trace. Reads them unless they are given.
    pub(super) async fn spans_unless_read(
        &self,
        read: Option<Vec<Span>>,
        trace: &StoredTrace,
        turn: &LargeTraceTurn,
    ) -> Result<TraceSpans> {
        match read {
            Some(spans) => Ok(spans.into()),
            None => self.trace_spans(trace, turn).await,
        }
    }
}

/// Splits traces into portions that are processed one after another. The spans of a portion that
/// come from blocks are in memory at the same time.
pub(super) fn split_by_blocks<T>(traces: Vec<T>, block_of: impl Fn(&T) -> Option<&Arc<LazyBlock>>) -> Vec<Vec<T>> {
    let mut portions = Vec::new();
    let (mut portion, mut blocks, mut groups) = (Vec::new(), HashSet::new(), 0);
    for trace in traces {
        let block = block_of(&trace).map(|block| (block.block.key(), block.block.groups().len()));
        if let Some((key, of_block)) = block.filter(|(key, _)| !blocks.contains(key)) {
            if groups > 0 && groups + of_block > MAX_SPAN_ITEMS {
                portions.push(std::mem::take(&mut portion));
                blocks.clear();
                groups = 0;
            }
            blocks.insert(key);
            groups += of_block;
        }
        portion.push(trace);
    }
    portions.push(portion);
    portions
}
