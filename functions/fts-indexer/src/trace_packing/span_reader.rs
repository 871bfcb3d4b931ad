//! Reads the spans of traces that are to be packed.

use std::collections::HashSet;

use entities::StoredTrace;
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::TraceId;
use table::{Failure, Item, Result};
use trace_blocks::{
    MAX_BLOCK_BYTES, SpansToPack, StoredSpans, copy_spans_of_mark, has_own_spans, read_few_spans, restore_spans,
};

use crate::trace_packing::{CONCURRENCY, Packer};

/// The spans of a trace to be packed.
pub(super) struct ReadSpans {
    pub(super) spans: SpansToPack,
    /// The items that are stored with the trace and whose spans are packed.
    pub(super) stored: Vec<StoredSpans>,
}

impl ReadSpans {
    /// The spans stay where they are stored with the trace.
    fn elsewhere() -> Self {
        Self { spans: SpansToPack::Elsewhere, stored: Vec::new() }
    }
}

impl Packer<'_> {
    /// Returns the spans of traces, in the order of the traces, and `None` for a trace that must not
    /// be packed, because the block that contains its earlier spans cannot be read. Each trace comes
    /// with the mark with spans that it refers to. Takes one request for each trace, two more if some of
    /// its spans are in a block, and one if they are in a mark and have become too large for a block.
    /// Costs one read unit per 4 KB.
    pub(super) async fn spans(&self, traces: Vec<(StoredTrace, Option<Item>)>) -> Result<Vec<Option<ReadSpans>>> {
        let (table, archive) = (self.table, self.archive);
        let reads = traces.into_iter().map(|(trace, mark)| async move {
            let mark = mark.as_ref();
            match read_few_spans(table, archive, &trace, mark, MAX_BLOCK_BYTES).await {
                // Spans are packed as soon as they are read, because the unpacked spans of all
                // traces of a block could take hundreds of MB.
                Ok(Some((spans, stored))) => match SpansToPack::of(trace.id(), &spans) {
                    SpansToPack::Elsewhere => self.keep_elsewhere(&trace, mark).await,
                    spans => Ok(ReadSpans { spans, stored }),
                },
                Ok(None) => self.keep_elsewhere(&trace, mark).await,
                // A trace that has no spans in a block is packed without its spans, and requests
                // for the spans return the error. Any other trace keeps its mark.
                Err(failure @ (Failure::Unreadable(_) | Failure::Unexpected(_))) => {
                    tracing::error!(?failure, "spans cannot be packed");
                    if trace.has_packed_spans() {
                        return Ok(None);
                    }
                    self.keep_elsewhere(&trace, mark).await
                }
                Err(failure) => Err(failure),
            }
            .map(Some)
        });
        stream::iter(reads.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await
    }

    /// Keeps the spans of a trace that are too large for a block with the trace. If the block
    /// contains some of them, they are stored with the trace again. So are those in its mark.
    async fn keep_elsewhere(&self, trace: &StoredTrace, mark: Option<&Item>) -> Result<ReadSpans> {
        if trace.has_packed_spans() {
            restore_spans(self.table, self.archive, trace).await.map_err(entities::failed)?;
        }
        if let Some(mark) = mark {
            copy_spans_of_mark(self.table, trace, mark).await?;
        }
        Ok(ReadSpans::elsewhere())
    }

    /// Returns those of the traces that store spans themselves. Takes one request for each trace.
    pub(super) async fn with_own_spans(&self, traces: Vec<&StoredTrace>) -> Result<HashSet<TraceId>> {
        let reads = traces.into_iter().map(|trace| async move {
            let has_own = has_own_spans(self.table, trace.experiment(), trace.id()).await?;
            Ok::<_, Failure>(has_own.then(|| trace.id().clone()))
        });
        let own: Vec<_> = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect().await?;
        Ok(own.into_iter().flatten().collect())
    }
}
