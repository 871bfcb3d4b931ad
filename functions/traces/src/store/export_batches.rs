//! Splits an export into portions that are written one after another.

use entities::now_ms;
use mlflow_api::{Error, ExperimentId, Result, TraceId};
use spans::{SharedTags, TraceExport, TraceSummary};
use table::Item;
use trace_blocks::span_items;

/// Maximum number of traces in a portion, and maximum number of bytes of their unpacked spans. A
/// single trace may exceed the number of bytes.
const MAX_TRACES: usize = 1_000;
const MAX_BYTES: usize = 16 << 20;

/// A trace of an export, with the summary of its spans.
pub(super) struct SummarizedTrace {
    export: TraceExport,
    summary: TraceSummary,
}

/// A trace of an export, with its spans packed into items.
pub(super) struct PackedTrace {
    pub(super) trace: TraceId,
    pub(super) resource: SharedTags,
    pub(super) summary: TraceSummary,
    /// The items that store the trace's spans.
    pub(super) items: Vec<Item>,
}

/// Summarizes the spans of each trace. Fails if any span has a value that is too long.
pub(super) fn summarize_traces(exports: Vec<TraceExport>) -> Result<Vec<SummarizedTrace>> {
    let of_one = |export: TraceExport| Ok(SummarizedTrace { summary: spans::summarize(&export.spans)?, export });
    exports.into_iter().map(of_one).collect()
}

/// Splits traces into portions, in their order.
pub(super) fn split_into_batches(all: Vec<SummarizedTrace>) -> impl Iterator<Item = Vec<SummarizedTrace>> {
    let mut rest = all.into_iter().peekable();
    std::iter::from_fn(move || {
        let first = rest.next()?;
        let (mut bytes, mut portion) = (first.export.bytes, vec![first]);
        while let Some(next) = rest.next_if(|next| portion.len() < MAX_TRACES && bytes + next.export.bytes <= MAX_BYTES)
        {
            bytes += next.export.bytes;
            portion.push(next);
        }
        Some(portion)
    })
}

/// Packs the traces of a portion.
pub(super) async fn pack_traces(
    experiment: ExperimentId,
    portion: Vec<SummarizedTrace>,
    adds_only: bool,
) -> Result<Vec<PackedTrace>> {
    let bytes = portion.iter().map(|trace| trace.export.bytes).sum();
    let pack = move |SummarizedTrace { export, summary }: SummarizedTrace| {
        let trace = TraceId::new(u128::from_be_bytes(export.trace_id));
        let items = span_items(experiment, &trace, &export.spans, adds_only, now_ms())?;
        Ok(PackedTrace { trace, resource: export.resource, summary, items })
    };
    let packed = runtime::clock::aside_from(bytes, move || portion.into_iter().map(pack).collect()).await;
    packed.map_err(Error::internal)?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(bytes: usize) -> SummarizedTrace {
        let export = TraceExport { trace_id: [0; 16], spans: Vec::new(), resource: SharedTags::default(), bytes };
        SummarizedTrace { summary: spans::summarize(&[]).unwrap(), export }
    }

    fn sizes(bytes: &[usize]) -> Vec<usize> {
        split_into_batches(bytes.iter().map(|bytes| trace(*bytes)).collect()).map(|portion| portion.len()).collect()
    }

    #[test]
    fn portions_end_by_traces_and_by_bytes() {
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[1].repeat(2_500)), [1_000, 1_000, 500]);
        assert_eq!(sizes(&[MAX_BYTES / 2, MAX_BYTES / 2, 1, MAX_BYTES + 1, 1, 1]), [2, 1, 1, 2]);
    }
}
