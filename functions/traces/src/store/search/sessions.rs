//! The sessions that assessments are about.
//!
//! An assessment whose metadata name a session is about all traces of that session, so that a filter on assessments lets all of them pass.
//! A row names each trace that has such an assessment; it was put before the trace got it.

use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::{Error, ExperimentId, Result, TraceId};
use search::trace::{Sessions, TraceFilter};
use table::Query;

use super::super::store::Store;
use super::seen::Seen;

/// Experiments that are looked at at a time.
const AT_ONCE: usize = 16;
/// Traces with assessments of sessions that a search takes into account.
const MOST: usize = 20_000;
/// Traces that are read at a time.
const PORTION: usize = 400;

impl Store {
    /// The sessions of the traces that a filter asks for. One request per experiment and per 1 MB
    /// of rows, and one per hundred traces; none where the filter does not ask for assessments.
    pub(super) async fn trace_sessions(&self, experiments: &[ExperimentId], filter: &TraceFilter) -> Result<Sessions> {
        let mut sessions = Sessions::default();
        if !filter.asks_for_sessions() {
            return Ok(sessions);
        }
        let reads: Vec<_> = experiments.iter().map(|experiment| self.traces_of_sessions(*experiment)).collect();
        let mut lists = stream::iter(reads).buffered(AT_ONCE);
        let mut traces = Vec::new();
        while let Some(listed) = lists.try_next().await? {
            traces.extend(listed);
            if traces.len() > MOST {
                return Err(Error::invalid(format!(
                    "The experiments have more than {MOST} traces with assessments of sessions: a filter on assessments has to be asked of \
                     fewer experiments."
                )));
            }
        }
        for portion in traces.chunks(PORTION) {
            let heads = self.trace_heads(&portion.iter().collect::<Vec<_>>()).await?;
            for trace in heads.values().filter(|trace| experiments.contains(&trace.experiment())) {
                sessions.add(filter, &Seen::of(trace)?);
            }
        }
        Ok(sessions)
    }

    /// At most one more than a search takes into account.
    async fn traces_of_sessions(&self, experiment: ExperimentId) -> Result<Vec<TraceId>> {
        let mut query = Query::of(rows::TraceOfSession::all(&experiment));
        let mut traces = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            traces.extend(page.items.iter().filter_map(|item| Some(rows::TraceOfSession::parse(&item.key()?)?.trace)));
            match page.next {
                Some(next) if traces.len() <= MOST => query = query.starting_at(next),
                _ => return Ok(traces),
            }
        }
    }
}
