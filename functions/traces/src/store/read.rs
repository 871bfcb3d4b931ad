//! Reads traces and their spans.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use entities::StoredTrace;
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::response_size::{MAX_JSON_BYTES, to_json_within};
use mlflow_api::traces::{ARCHIVE_REPO, SPANS_LOCATION_TAG, TRACKING_STORE, TraceInfo, TraceParts};
use mlflow_api::{Error, Result, TraceId};
use serde_json::value::RawValue;
use trace_blocks::{LargeTraceTurn, TraceSpans, read_archived_spans, read_traces};

use super::store::Store;

/// Number of traces whose spans are read concurrently.
const CONCURRENCY: usize = 8;

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

    /// Returns a trace with its spans. Takes as many requests as
    /// [`read_trace_spans`](trace_blocks::read_trace_spans). If the spans were archived to a file,
    /// reads them from the file.
    ///
    /// # Errors
    /// Returns MLflow's error if the spans are in an artifact file, or if some spans have not
    /// arrived and the caller does not accept a partial trace.
    pub async fn trace_get(&self, trace: &StoredTrace, allow_partial: bool) -> Result<WholeTrace> {
        let info = trace.info()?;
        if has_archived_spans(&info) {
            let spans = read_archived_spans(self.artifacts(), trace, &LargeTraceTurn::default()).await?;
            return Ok(WholeTrace { info, spans });
        }
        if !has_spans_in_table(&info) {
            return Err(spans_in_artifact());
        }
        let spans = self.trace_spans(trace, &LargeTraceTurn::default()).await?;
        let whole = WholeTrace { info, spans };
        if !allow_partial && (whole.spans.is_empty() || !whole.is_complete()) {
            let id = trace.id();
            let message = format!("Trace with ID {id} is not fully exported yet, please try again later.");
            return Err(Error::not_found(message));
        }
        Ok(whole)
    }

    /// Returns traces with their spans as JSON. Traces whose spans have not all arrived are
    /// skipped. `shown` removes the parts of a trace that the caller may not see. Takes one request
    /// per trace. Memory is limited to one response, plus the spans of a few small traces or of one
    /// large trace.
    ///
    /// # Errors
    /// Returns MLflow's error if the spans of a trace are in an artifact file, and
    /// [`too_long`](mlflow_api::response_size::too_long) as soon as the JSON exceeds the maximum
    /// size of a response.
    pub async fn trace_get_many(
        &self,
        traces: &[&StoredTrace],
        shown: impl Fn(TraceInfo) -> TraceInfo + Sync,
    ) -> Result<Vec<TraceParts>> {
        let infos: Vec<_> = traces.iter().map(|trace| trace.info()).collect::<Result<_>>()?;
        if !infos.iter().all(has_readable_spans) {
            return Err(spans_in_artifact());
        }
        let (room, turn) = (AtomicUsize::new(MAX_JSON_BYTES), LargeTraceTurn::default());
        let reads = infos.into_iter().zip(traces).map(|(info, trace)| async {
            if has_archived_spans(&info) {
                let spans = read_archived_spans(self.artifacts(), trace, &turn).await?;
                return WholeTrace { info: shown(info), spans }.parts_within(&room).map(Some);
            }
            let spans = self.trace_spans(trace, &turn).await?;
            let whole = WholeTrace { info: shown(info), spans };
            if whole.spans.is_empty() || !whole.is_complete() {
                return Ok(None);
            }
            // The spans are dropped at the end of this step. While the spans of a large trace are
            // in memory, other large traces wait.
            whole.parts_within(&room).map(Some)
        });
        let reads: Vec<_> = reads.collect();
        let whole: Vec<_> = stream::iter(reads).buffered(CONCURRENCY).try_collect().await?;
        Ok(whole.into_iter().flatten().collect())
    }
}
