//! Portions of an export that are written one after another.

use mlflow_api::{Error, ExperimentId, Result, TraceId};
use spans::{Export, Summary, Tags};
use table::Item;

use super::spans::items;

/// Traces in a portion, and bytes of their spans before they are packed; one trace alone may have more.
const TRACES: usize = 1_000;
const BYTES: usize = 16 << 20;

/// A trace of an export, with the summary of its spans.
pub(super) struct Summarized {
    export: Export,
    summary: Summary,
}

/// The same, ready to be written.
pub(super) struct Packed {
    pub(super) trace: TraceId,
    pub(super) resource: Tags,
    pub(super) summary: Summary,
    /// Its spans.
    pub(super) items: Vec<Item>,
}

/// Summarizes spans by trace; refuses all of them if one has a value that is too long.
pub(super) fn summarized(exports: Vec<Export>) -> Result<Vec<Summarized>> {
    let of_one = |export: Export| Ok(Summarized { summary: spans::summarize(&export.spans)?, export });
    exports.into_iter().map(of_one).collect()
}

/// Takes portions off, in their order.
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

/// Packs a portion.
pub(super) async fn packed(experiment: ExperimentId, portion: Vec<Summarized>, adds_only: bool) -> Result<Vec<Packed>> {
    let bytes = portion.iter().map(|trace| trace.export.bytes).sum();
    let pack = move |Summarized { export, summary }: Summarized| {
        let trace = TraceId::new(u128::from_be_bytes(export.trace_id));
        let items = items(experiment, &trace, &export.spans, adds_only)?;
        Ok(Packed { trace, resource: export.resource, summary, items })
    };
    let packed = clock::aside_from(bytes, move || portion.into_iter().map(pack).collect()).await;
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
