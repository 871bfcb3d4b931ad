//! Reads traces and their spans.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use access::Granted;
use entities::{LocatedTrace, StoredTrace};
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::response_size::{MAX_JSON_BYTES, to_json_within};
use mlflow_api::traces::{ARCHIVE_REPO, SPANS_LOCATION_TAG, TRACKING_STORE, TraceInfo, TraceParts};
use mlflow_api::{Error, Result, TraceId};
use serde_json::value::RawValue;
use spans::Span;
use trace_blocks::{
    LargeTraceTurn, ReadTrace, TraceSpans, read_archived_spans, read_block_spans, read_documents, read_remaining_spans,
    read_traces, read_with_blocks,
};

use super::store::Store;

/// Number of traces whose spans are read concurrently.
const CONCURRENCY: usize = 8;
/// Maximum number of traces whose spans from blocks are in memory at a time. The spans of a trace in a
/// block have up to 350 KB.
const MAX_PACKED_TRACES: usize = 64;

/// A trace with its spans.
#[derive(Debug)]
pub struct WholeTrace {
    /// Everything except the spans.
    pub info: TraceInfo,
    /// Its spans: roots first, then by start time.
    pub spans: TraceSpans,
}

impl WholeTrace {
    /// Converts the trace to JSON.
    ///
    /// # Errors
    /// Returns [`too_long`](mlflow_api::response_size::too_long) if the JSON exceeds the maximum
    /// size of a response. Conversion stops when that size is reached.
    pub fn parts(self) -> Result<TraceParts> {
        self.parts_within(&AtomicUsize::new(MAX_JSON_BYTES))
    }

    /// Converts one of several traces that share a budget of `room` bytes. The size of the trace's
    /// JSON is subtracted from the budget.
    fn parts_within(self, room: &AtomicUsize) -> Result<TraceParts> {
        let mut parts = TraceParts { trace_info: self.info.json(), spans: Vec::with_capacity(self.spans.len()) };
        for span in self.spans.iter() {
            let json = to_json_within(room.load(Ordering::Relaxed), &spans::json(span))?;
            room.fetch_sub(json.len(), Ordering::Relaxed);
            let json = String::from_utf8(json).map_err(Error::internal)?;
            parts.spans.push(RawValue::from_string(json).map_err(Error::internal)?);
        }
        Ok(parts)
    }

    /// Checks whether all spans that the client has announced have arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.spans.len() as u64 >= self.info.announced_spans()
    }
}

/// Checks whether the spans of a trace are stored in the table rather than in an artifact file.
fn has_spans_in_table(info: &TraceInfo) -> bool {
    info.tag(SPANS_LOCATION_TAG) == Some(TRACKING_STORE)
}

/// Checks whether this server returns the spans of a trace: they are in the table, or were archived
/// to a file `traces.pb`.
#[must_use]
pub fn has_readable_spans(info: &TraceInfo) -> bool {
    has_spans_in_table(info) || has_archived_spans(info)
}

fn has_archived_spans(info: &TraceInfo) -> bool {
    info.tag(SPANS_LOCATION_TAG) == Some(ARCHIVE_REPO)
}

/// Returns MLflow's error for a trace whose spans are in an artifact file.
fn spans_in_artifact() -> Error {
    Error::new(mlflow_api::ErrorCode::BadRequest, "Trace data not stored in tracking store")
}

impl Store {
    /// Reads those of the given traces that exist in the table. The result includes expired traces,
    /// which must not be shown to clients. Takes one request per hundred traces, and one per
    /// block with some of them. Costs a read unit per 4 KB of each trace or block.
    pub(super) async fn trace_documents(&self, ids: &[&TraceId]) -> Result<HashMap<TraceId, StoredTrace>> {
        read_traces(&self.table, ids).await
    }

    /// Reads those of the given traces that exist and have not expired. Takes as many requests as
    /// [`read_traces`].
    pub async fn trace_unexpired_documents(&self, ids: &[&TraceId]) -> Result<HashMap<TraceId, StoredTrace>> {
        let mut traces = self.trace_documents(ids).await?;
        if !traces.is_empty() {
            let kept =
                self.retention_cache.since(traces.values().map(StoredTrace::experiment).collect::<Vec<_>>()).await?;
            traces.retain(|_, trace| kept.has(trace));
        }
        Ok(traces)
    }

    /// Returns the document of a trace that the request names. Takes no request, or one if the trace is
    /// packed, and then costs a read unit per 4 KB of the trace's block.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the trace was deleted since the request began.
    pub async fn trace_document(&self, trace: &Granted<LocatedTrace>) -> Result<StoredTrace> {
        let document = self.located_documents(std::slice::from_ref(trace)).await?.pop();
        document.ok_or_else(|| TraceId::not_found(trace.id().as_str()))
    }

    /// Returns the documents of traces that the request names, in their order, without those that were
    /// deleted since the request began. Takes one request per block that contains some of them, and a
    /// read unit per 4 KB of each block.
    pub async fn located_documents(&self, traces: &[Granted<LocatedTrace>]) -> Result<Vec<StoredTrace>> {
        let mut found = read_documents(&self.table, traces.iter().map(|trace| (**trace).clone()).collect()).await?;
        let found = traces.iter().filter_map(|trace| {
            // The trace may have been created again in an experiment that the caller may not read.
            found.remove(trace.id()).filter(|document| document.experiment() == trace.experiment())
        });
        Ok(found.collect())
    }

    /// Returns a trace that the request names with the block that contains it, or `None` if it was deleted
    /// since the request began. Takes as many requests as [`Store::trace_document`].
    pub async fn trace_with_block(&self, trace: &Granted<LocatedTrace>) -> Result<Option<ReadTrace>> {
        Ok(self.traces_with_blocks(std::slice::from_ref(trace)).await?.pop())
    }

    /// Returns traces that the request names with the blocks that contain them. Takes as many requests as
    /// [`Store::located_documents`].
    async fn traces_with_blocks(&self, traces: &[Granted<LocatedTrace>]) -> Result<Vec<ReadTrace>> {
        let mut found = read_with_blocks(&self.table, traces.iter().map(|trace| (**trace).clone()).collect()).await?;
        let found = traces.iter().filter_map(|trace| {
            found.remove(trace.id()).filter(|read| read.document.experiment() == trace.experiment())
        });
        Ok(found.collect())
    }

    /// Returns the spans of traces that are in the traces' blocks. Takes one request for all of them, and
    /// costs half a read unit per 4 KB. If spans are archived, takes about one request to the archive per
    /// block.
    async fn spans_in_blocks(&self, traces: impl Iterator<Item = &ReadTrace>) -> Result<HashMap<TraceId, Vec<Span>>> {
        let wanted: Vec<_> = traces.filter_map(|trace| Some((trace.block.as_deref()?, trace.document.id()))).collect();
        Ok(read_block_spans(&self.table, &self.archive, &wanted).await?)
    }

    /// Returns the spans of a trace, given those that were read from its block.
    async fn spans_unless_packed(
        &self,
        packed: Option<Vec<Span>>,
        trace: &ReadTrace,
        turn: &LargeTraceTurn,
    ) -> Result<TraceSpans> {
        match packed {
            Some(spans) => Ok(spans.into()),
            None => read_remaining_spans(&self.table, &self.archive, trace, turn).await,
        }
    }

    /// Returns a trace with its spans. If the trace is packed, takes one request and half a read unit per
    /// 4 KB. Otherwise, takes as many requests as [`read_trace_spans`](trace_blocks::read_trace_spans). If
    /// the spans were archived to a file, reads them from the file.
    ///
    /// # Errors
    /// Returns MLflow's error if the spans are in an artifact file, or if some spans have not
    /// arrived and the caller does not accept a partial trace.
    pub async fn trace_get(&self, trace: &ReadTrace, allow_partial: bool) -> Result<WholeTrace> {
        let (info, turn) = (trace.document.info()?, LargeTraceTurn::default());
        if has_archived_spans(&info) {
            let spans = read_archived_spans(self.artifacts(), &trace.document, &turn).await?;
            return Ok(WholeTrace { info, spans });
        }
        if !has_spans_in_table(&info) {
            return Err(spans_in_artifact());
        }
        let packed = self.spans_in_blocks(std::iter::once(trace)).await?.remove(&info.id);
        let spans = self.spans_unless_packed(packed, trace, &turn).await?;
        let whole = WholeTrace { info, spans };
        if !allow_partial && (whole.spans.is_empty() || !whole.is_complete()) {
            let id = &whole.info.id;
            let message = format!("Trace with ID {id} is not fully exported yet, please try again later.");
            return Err(Error::not_found(message));
        }
        Ok(whole)
    }

    /// Returns traces with their spans as JSON. Traces whose spans have not all arrived are
    /// skipped. `shown` removes the parts of a trace that the caller may not see. Takes one request
    /// per trace that is not packed, one per block, and one per 64 packed traces for their spans. Memory is
    /// limited to one response, plus the spans of 64 packed traces, of a few small traces or of one large
    /// trace.
    ///
    /// # Errors
    /// Returns MLflow's error if the spans of a trace are in an artifact file, and
    /// [`too_long`](mlflow_api::response_size::too_long) as soon as the JSON exceeds the maximum
    /// size of a response.
    pub async fn trace_get_many(
        &self,
        traces: &[Granted<LocatedTrace>],
        shown: impl Fn(TraceInfo) -> TraceInfo + Sync,
    ) -> Result<Vec<TraceParts>> {
        let traces = self.traces_with_blocks(traces).await?;
        let infos: Vec<_> = traces.iter().map(|trace| trace.document.info()).collect::<Result<_>>()?;
        if !infos.iter().all(has_readable_spans) {
            return Err(spans_in_artifact());
        }
        let (room, turn, shown) = (&AtomicUsize::new(MAX_JSON_BYTES), &LargeTraceTurn::default(), &shown);
        let (mut rest, mut whole) = (infos.into_iter().zip(&traces), Vec::new());
        loop {
            let portion: Vec<_> = rest.by_ref().take(MAX_PACKED_TRACES).collect();
            if portion.is_empty() {
                return Ok(whole);
            }
            let in_table = portion.iter().filter(|(info, _)| has_spans_in_table(info)).map(|(_, trace)| *trace);
            let mut packed = self.spans_in_blocks(in_table).await?;
            let reads = portion.into_iter().map(|(info, trace)| {
                let packed = packed.remove(&info.id);
                async move {
                    if has_archived_spans(&info) {
                        let spans = read_archived_spans(self.artifacts(), &trace.document, turn).await?;
                        return WholeTrace { info: shown(info), spans }.parts_within(room).map(Some);
                    }
                    let spans = self.spans_unless_packed(packed, trace, turn).await?;
                    let whole = WholeTrace { info: shown(info), spans };
                    if whole.spans.is_empty() || !whole.is_complete() {
                        return Ok(None);
                    }
                    // The spans are dropped at the end of this step. While the spans of a large trace are
                    // in memory, other large traces wait.
                    whole.parts_within(room).map(Some)
                }
            });
            let reads: Vec<_> = reads.collect();
            let read: Vec<Option<TraceParts>> = stream::iter(reads).buffered(CONCURRENCY).try_collect().await?;
            whole.extend(read.into_iter().flatten());
        }
    }
}
