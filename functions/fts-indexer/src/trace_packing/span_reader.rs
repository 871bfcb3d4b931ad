//! Reads the spans of traces that are to be packed.

use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::TraceId;
use table::{Failure, Result};
use trace_blocks::{MAX_BLOCK_BYTES, SpansToPack, read_few_spans};

use crate::trace_packing::{CONCURRENCY, Packer};

impl Packer<'_> {
    /// Returns the spans of traces, in the order of the traces. Takes one request for each trace,
    /// and costs one read unit per 4 KB.
    pub(super) async fn spans(&self, traces: Vec<TraceId>) -> Result<Vec<SpansToPack>> {
        let (table, experiment) = (self.table, self.partition.experiment);
        let reads = traces.into_iter().map(|trace| async move {
            match read_few_spans(table, experiment, &trace, MAX_BLOCK_BYTES).await {
                // Spans are packed as soon as they are read, because the unpacked spans of all
                // traces of a block could take hundreds of MB.
                Ok(spans) => Ok(spans.map_or(SpansToPack::Elsewhere, |spans| SpansToPack::of(&trace, &spans))),
                // The trace is packed without its spans, and requests for the spans return the
                // error.
                Err(failure @ (Failure::Unreadable(_) | Failure::Unexpected(_))) => {
                    tracing::error!(?failure, "spans cannot be packed");
                    Ok(SpansToPack::Elsewhere)
                }
                Err(failure) => Err(failure),
            }
        });
        stream::iter(reads.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await
    }
}
