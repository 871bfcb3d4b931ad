//! Reads the spans of traces.

use entities::StoredTrace;
use mlflow_api::{Error, ErrorCode, Result};
use spans::TraceUsage;
use trace_blocks::{LargeTraceTurn, TraceSpans, read_trace_spans};

use super::store::Store;

impl Store {
    /// Returns all spans of a trace that have arrived: roots first, then by start time. A large
    /// trace waits until the process has no other spans in memory. Takes one request, and one more
    /// per MB, two for a packed trace, one if the trace's mark has spans, and one for a trace that may
    /// have been packed since it was read. Costs a read unit per 4 KB.
    ///
    /// # Errors
    /// Returns `BAD_REQUEST` if the spans exceed the maximum size of a response, and
    /// `RESOURCE_EXHAUSTED` if the trace would have to wait for too long.
    pub async fn trace_spans(&self, trace: &StoredTrace, turn: &LargeTraceTurn) -> Result<TraceSpans> {
        read_trace_spans(&self.table, &self.archive, trace, turn).await
    }

    /// Returns the tokens and cost of all spans of a trace that have arrived, or `None` if there
    /// are too many spans to read. Takes as many requests as [`Store::trace_spans`].
    pub(super) async fn trace_usage(&self, trace: &StoredTrace, turn: &LargeTraceTurn) -> Result<Option<TraceUsage>> {
        match self.trace_spans(trace, turn).await {
            Err(error) if error.code == ErrorCode::BadRequest => Ok(None),
            Err(error) => Err(error),
            Ok(all) => {
                let bytes = spans::size(&all);
                let usage = move || Ok(Some(spans::summarize(&all)?.usage));
                runtime::clock::aside_from(bytes, usage).await.map_err(Error::internal)?
            }
        }
    }
}
