//! Splits an export into portions that are written one after another.

use mlflow_api::{Error, ExperimentId, Result, TraceId};
use spans::{Export, Summary, Tags};
use table::Item;

use super::spans::items;

/// Maximum number of traces in a portion, and of bytes of their spans before packing. A single
/// trace may exceed the latter.
const TRACES: usize = 1_000;
const BYTES: usize = 16 << 20;

/// A trace of an export, with the summary of its spans.
pub(super) struct Summarized {
    export: Export,
    summary: Summary,
}

/// A trace of an export, with its spans packed into items.
pub(super) struct Packed {
    pub(super) trace: TraceId,
    pub(super) resource: Tags,
    pub(super) summary: Summary,
    /// Items of its spans.
    pub(super) items: Vec<Item>,
}

/// Summarizes the spans of each trace. Fails if any span has a value that is too long.
pub(super) fn summarized(exports: Vec<Export>) -> Result<Vec<Summarized>> {
    let of_one = |export: Export| Ok(Summarized { summary: spans::summarize(&export.spans)?, export });
    exports.into_iter().map(of_one).collect()
}

/// Splits traces into portions, in their order.
pub(super) fn portions(all: Vec<Summarized>) -> impl Iterator<Item = Vec<Summarized>> {
    let mut rest = all.into_iter().peekable();
    std::iter::from_fn(move || {
        let first = rest.next()?;
        let (mut bytes, mut portion) = (first.export.bytes, vec![first]);
        while let Some(next) = rest.next_if(|next| portion.len() < TRACES && bytes + next.export.bytes <= BYTES) {
            bytes += next.export.bytes;
            portion.push(next);
        }
        Some(portion)
    })
}

/// Packs the traces of a portion.
pub(super) async fn packed(experiment: ExperimentId, portion: Vec<Summarized>, adds_only: bool) -> Result<Vec<Packed>> {
    let bytes = portion.iter().map(|trace| trace.export.bytes).sum();
    let pack = move |Summarized { export, summary }: Summarized| {
        let trace = TraceId::new(u128::from_be_bytes(export.trace_id));
        let items = items(experiment, &trace, &export.spans, adds_only)?;
        Ok(Packed { trace, resource: export.resource, summary, items })
    };
    let packed = runtime::clock::aside_from(bytes, move || portion.into_iter().map(pack).collect()).await;
    packed.map_err(Error::internal)?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(bytes: usize) -> Summarized {
        let export = Export { trace_id: [0; 16], spans: Vec::new(), resource: Tags::default(), bytes };
        Summarized { summary: spans::summarize(&[]).unwrap(), export }
    }

    fn sizes(bytes: &[usize]) -> Vec<usize> {
        portions(bytes.iter().map(|bytes| trace(*bytes)).collect()).map(|portion| portion.len()).collect()
    }

    #[test]
    fn portions_end_by_traces_and_by_bytes() {
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[1].repeat(2_500)), [1_000, 1_000, 500]);
        assert_eq!(sizes(&[BYTES / 2, BYTES / 2, 1, BYTES + 1, 1, 1]), [2, 1, 1, 2]);
    }
}
