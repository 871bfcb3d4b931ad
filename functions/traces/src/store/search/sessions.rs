//! Sessions that assessments refer to.
//!
//! An assessment whose metadata names a session applies to all traces of the session, so a filter
//! on assessments matches all of these traces. Each trace with such an assessment has a row that is
//! written before the assessment is stored. Searches find these traces by the rows.

use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::{Error, ExperimentId, Result, TraceId};
use search::trace::{MatchingSessions, TraceFilter};
use table::Query;

use super::super::store::Store;
use super::trace_fields::SearchableTrace;

/// Number of experiments that are read concurrently.
const CONCURRENCY: usize = 16;
/// Maximum number of traces with assessments of sessions that a search reads.
const MAX_TRACES: usize = 20_000;
/// Number of traces per read.
const BATCH_SIZE: usize = 400;

impl Store {
    /// Returns the sessions with an assessment that the filter refers to. Takes one request per
    /// experiment and per MB of rows, and one per hundred traces. Takes none if the filter does not
    /// refer to assessments.
    pub(super) async fn trace_sessions(
        &self,
        experiments: &[ExperimentId],
        filter: &TraceFilter,
    ) -> Result<MatchingSessions> {
        let mut sessions = MatchingSessions::default();
        if !filter.asks_for_sessions() {
            return Ok(sessions);
        }
        let reads: Vec<_> = experiments.iter().map(|experiment| self.traces_of_sessions(*experiment)).collect();
        let mut lists = stream::iter(reads).buffered(CONCURRENCY);
        let mut traces = Vec::new();
        while let Some(listed) = lists.try_next().await? {
            traces.extend(listed);
            if traces.len() > MAX_TRACES {
                return Err(Error::invalid(format!(
                    "The experiments have more than {MAX_TRACES} traces with assessments of sessions. Search fewer experiments with a filter \
                     on assessments."
                )));
            }
        }
        for portion in traces.chunks(BATCH_SIZE) {
            let heads = self.trace_unexpired_documents(&portion.iter().collect::<Vec<_>>()).await?;
            for trace in heads.values().filter(|trace| experiments.contains(&trace.experiment())) {
                sessions.add(filter, &SearchableTrace::of(trace)?);
            }
        }
        Ok(sessions)
    }

    /// Returns the traces of an experiment that have assessments of sessions. Stops once there are
    /// more than the maximum for a search.
    async fn traces_of_sessions(&self, experiment: ExperimentId) -> Result<Vec<TraceId>> {
        let mut query = Query::of(rows::TraceOfSession::all(&experiment));
        let mut traces = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            traces.extend(page.items.iter().filter_map(|item| Some(rows::TraceOfSession::parse(&item.key()?)?.trace)));
            match page.next {
                Some(next) if traces.len() <= MAX_TRACES => query = query.starting_at(next),
                _ => return Ok(traces),
            }
        }
    }
}
