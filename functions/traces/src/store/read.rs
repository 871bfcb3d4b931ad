//! Reading traces.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use entities::{StoredTrace, read_traces};
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::answer_size::{LONGEST, to_json_within};
use mlflow_api::traces::{SPANS_LOCATION_TAG, TRACKING_STORE, TraceInfo, TraceParts};
use mlflow_api::{Error, Result, TraceId};
use serde_json::value::RawValue;
use trace_blocks::{TraceSpans, Turn};

use super::store::Store;

/// Traces whose spans are read at a time.
const AT_ONCE: usize = 8;

/// A trace with its spans.
#[derive(Debug)]
pub struct WholeTrace {
    /// All but the spans.
    pub info: TraceInfo,
    /// Its spans, roots first, then by their start.
    pub spans: TraceSpans,
}

impl WholeTrace {
    /// Its JSON.
    ///
    /// # Errors
    /// [`too_long`](mlflow_api::answer_size::too_long), where it is longer than any answer, and no more than that is made of it.
    pub fn parts(self) -> Result<TraceParts> {
        self.parts_within(&AtomicUsize::new(LONGEST))
    }

    /// The same for one of several traces, which share `room` bytes. Its own are subtracted.
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

    /// Whether all spans have come that its client has announced.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.spans.len() as u64 >= self.info.announced_spans()
    }
}

/// Whether the spans of a trace are with it, and not in a file.
#[must_use]
pub fn has_spans_here(info: &TraceInfo) -> bool {
    info.tag(SPANS_LOCATION_TAG) == Some(TRACKING_STORE)
}

/// MLflow's error for spans that are in a file.
fn elsewhere() -> Error {
    Error::new(mlflow_api::ErrorCode::BadRequest, "Trace data not stored in tracking store")
}

impl Store {
    /// Those of these traces that are in the table: also those that are kept no longer, which clients are not shown. One request per hundred; a
    /// read unit per 4 KB of each.
    pub(super) async fn trace_documents(&self, ids: &[&TraceId]) -> Result<HashMap<TraceId, StoredTrace>> {
        read_traces(&self.table, ids).await
    }

    /// Those of these traces that are there. One request per hundred; a read unit per 4 KB of each.
    pub async fn trace_heads(&self, ids: &[&TraceId]) -> Result<HashMap<TraceId, StoredTrace>> {
        let mut traces = self.trace_documents(ids).await?;
        if !traces.is_empty() {
            let kept = self.kept.since(traces.values().map(StoredTrace::experiment).collect::<Vec<_>>()).await?;
            traces.retain(|_, trace| kept.has(trace));
        }
        Ok(traces)
    }

    /// A trace with its spans. One request, one more per MB of spans.
    ///
    /// # Errors
    /// MLflow's, where its spans are in a file, and where not all have come, unless the caller
    /// accepts a part.
    pub async fn trace_get(&self, trace: &StoredTrace, allow_partial: bool) -> Result<WholeTrace> {
        let info = trace.info()?;
        if !has_spans_here(&info) {
            return Err(elsewhere());
        }
        let spans = self.trace_spans_in(trace.experiment(), trace.id(), &Turn::default()).await?;
        let whole = WholeTrace { info, spans };
        if !allow_partial && (whole.spans.is_empty() || !whole.is_complete()) {
            let id = trace.id();
            let message = format!("Trace with ID {id} is not fully exported yet, please try again later.");
            return Err(Error::not_found(message));
        }
        Ok(whole)
    }

    /// The JSON of traces with their spans, without those whose spans have not all come. One
    /// request for each. At most one answer is in memory, and the spans of some small traces or of
    /// a large one. `shown` is the part of a trace that the answer shows.
    ///
    /// # Errors
    /// MLflow's, where the spans of one are in a file;
    /// [`too_long`](mlflow_api::answer_size::too_long), as soon as they are longer than any answer.
    pub async fn trace_get_many(
        &self,
        traces: &[&StoredTrace],
        shown: impl Fn(TraceInfo) -> TraceInfo + Sync,
    ) -> Result<Vec<TraceParts>> {
        let infos: Vec<_> = traces.iter().map(|trace| trace.info()).collect::<Result<_>>()?;
        if !infos.iter().all(has_spans_here) {
            return Err(elsewhere());
        }
        let (room, turn) = (AtomicUsize::new(LONGEST), Turn::default());
        let reads = infos.into_iter().map(|info| async {
            let spans = self.trace_spans_in(info.experiment, &info.id, &turn).await?;
            let whole = WholeTrace { info: shown(info), spans };
            if whole.spans.is_empty() || !whole.is_complete() {
                return Ok(None);
            }
            // The spans go here: those of a large trace keep other large ones waiting.
            whole.parts_within(&room).map(Some)
        });
        let reads: Vec<_> = reads.collect();
        let whole: Vec<_> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
        Ok(whole.into_iter().flatten().collect())
    }
}
