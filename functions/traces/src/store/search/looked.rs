//! Reads the traces at given places, and their spans.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use entities::StoredTrace;
use entities::listing::Pace;
use mlflow_api::{ExperimentId, Result, TraceId};
use spans::Span;
use trace_blocks::{CoreTrace, TraceSpans, Turn, read_block_spans};

use super::super::store::Store;
use super::partition::{PackedBlock, Spot, Standing};

/// Maximum number of span items from blocks that are in memory at the same time. Each has up to 350
/// KB unpacked.
const GROUPS: usize = 64;

/// A trace that was found.
pub(super) enum Found {
    /// The document of a trace, and the block that it came from.
    Trace(StoredTrace, Option<Arc<PackedBlock>>),
    /// The columns of a trace.
    Columns(ExperimentId, CoreTrace),
}

impl Store {
    /// Returns the traces at these places, in order. One request per hundred marks.
    pub(super) async fn traces_at(&self, spots: Vec<Spot>) -> Result<Vec<Found>> {
        let marked = spots.iter().filter(|spot| matches!(spot.standing, Standing::Mark));
        let marked: BTreeSet<_> = marked.map(|spot| &spot.place.trace).collect();
        let heads = self.trace_heads(&marked.into_iter().collect::<Vec<_>>()).await?;
        let (mut found, mut pace) = (Vec::with_capacity(spots.len()), Pace::default());
        for spot in spots {
            pace.keep().await;
            match spot.standing {
                // A trace whose start time has changed has two marks.
                Standing::Mark => {
                    let trace = heads.get(&spot.place.trace);
                    let trace = trace.filter(|trace| spot.partition.holds(trace, &spot.place));
                    found.extend(trace.map(|trace| Found::Trace(trace.clone(), None)));
                }
                Standing::Read(trace) => found.push(Found::Trace(trace, None)),
                Standing::Packed(block, at) => {
                    found.extend(block.trace(at)?.map(|trace| Found::Trace(trace, Some(block))));
                }
                Standing::Columns(columns) => found.push(Found::Columns(spot.partition.experiment, columns)),
            }
        }
        Ok(found)
    }

    /// Reads the spans of traces that are in blocks. One request per hundred items of spans, and
    /// half a read unit per 4 KB.
    pub(super) async fn packed_spans<'a>(
        &self,
        traces: impl Iterator<Item = (&'a TraceId, Option<&'a Arc<PackedBlock>>)>,
    ) -> Result<HashMap<TraceId, Vec<Span>>> {
        let wanted: Vec<_> = traces.filter_map(|(trace, block)| Some((&block?.block, trace))).collect();
        Ok(read_block_spans(&self.table, &wanted).await?)
    }

    /// Returns the spans of a trace. Reads them unless they are given.
    pub(super) async fn spans_unless_read(
        &self,
        read: Option<Vec<Span>>,
        experiment: ExperimentId,
        trace: &TraceId,
        turn: &Turn,
    ) -> Result<TraceSpans> {
        match read {
            Some(spans) => Ok(spans.into()),
            None => self.trace_spans_in(experiment, trace, turn).await,
        }
    }
}

/// Splits traces into portions. The spans of a portion that come from blocks are in memory at the
/// same time.
pub(super) fn in_portions<T>(traces: Vec<T>, block_of: impl Fn(&T) -> Option<&Arc<PackedBlock>>) -> Vec<Vec<T>> {
    let mut portions = Vec::new();
    let (mut portion, mut blocks, mut groups) = (Vec::new(), HashSet::new(), 0);
    for trace in traces {
        let block = block_of(&trace).map(|block| (block.block.key(), block.block.groups().len()));
        if let Some((key, of_block)) = block.filter(|(key, _)| !blocks.contains(key)) {
            if groups > 0 && groups + of_block > GROUPS {
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
