//! Deleting traces.
//!
//! The spans go first and the document after them, so that a deletion that is cut off is found again and goes on. What is left of a trace
//! whose document is gone stands for nothing: its mark, and spans that came meanwhile.

use access::Granted;
use clock::Moment;
use entities::StoredTrace;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, rows};
use mlflow_api::{ExperimentId, Result, TraceId};
use table::{Item, Query};

use super::draft::judges_a_session;
use super::mark::Mark;
use super::store::Store;

/// Traces that are deleted at a time.
const AT_ONCE: usize = 8;
/// Marks that are read at a time.
const PAGE: usize = 100;
/// How long one request deletes: a function has 29 seconds.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(20);

impl Store {
    /// Deletes those of these traces that the experiment has; returns how many there were. One request per hundred, and three for each:
    /// its spans are read and deleted, one more per 25 of their items, and its mark is taken away.
    pub async fn traces_delete(&self, experiment: &Granted<ExperimentId>, ids: &[TraceId]) -> Result<u64> {
        let mut heads = self.trace_heads(&ids.iter().collect::<Vec<_>>()).await?;
        heads.retain(|_, trace| trace.experiment() == **experiment);
        self.traces_remove(heads.into_values().collect()).await
    }

    /// Deletes traces of the experiment that began no later than a time, oldest first, and at most so many; returns how many. It deletes
    /// for 20 seconds: what is left then, the same request deletes. One request per hundred marks and one for their traces, and three for
    /// each that is deleted.
    pub async fn traces_delete_until(
        &self,
        experiment: &Granted<ExperimentId>,
        latest: i64,
        most: Option<usize>,
    ) -> Result<u64> {
        let (begun, id) = (Moment::now(), **experiment);
        let mut left = most.unwrap_or(usize::MAX);
        let mut deleted = 0;
        let mut days = self.trace_days(id).await?;
        days.retain(|day| day.day <= super::mark::day_of(latest));
        while let Some(day) = days.pop() {
            let mut after = None;
            loop {
                let marks = self.trace_marks_oldest(id, day, latest, after.as_ref(), PAGE).await?;
                let Some(last) = marks.last() else { break };
                after = Some(last.clone());
                let heads = self.trace_heads(&marks.iter().map(|mark| &mark.trace).collect::<Vec<_>>()).await?;
                let marked = marks.iter().filter_map(|mark| {
                    let head = heads.get(&mark.trace)?;
                    (head.experiment() == id && head.request_time() == mark.time).then(|| head.clone())
                });
                let traces: Vec<_> = marked.take(left).collect();
                left -= traces.len();
                deleted += self.traces_remove(traces).await?;
                if left == 0 || begun.age() > LONGEST {
                    return Ok(deleted);
                }
            }
        }
        Ok(deleted)
    }

    async fn traces_remove(&self, traces: Vec<StoredTrace>) -> Result<u64> {
        let removals: Vec<_> = traces.iter().map(|trace| self.trace_remove(trace)).collect();
        let removed: Vec<()> = stream::iter(removals).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(removed.len() as u64)
    }

    /// Removes a trace, spans and all. Three requests, one more per 25 items and per MB of spans.
    async fn trace_remove(&self, trace: &StoredTrace) -> Result<()> {
        self.known.forget_trace(trace.id());
        let query = Query::of(rows::TraceSpans::all(trace.id())).for_removal();
        let mut keys: Vec<Key> = self.table.query(query).await?.iter().filter_map(Item::key).collect();
        // Many items are deleted by several requests at once; the document has to be in the last.
        if keys.len() >= IN_ONE {
            self.table.write_many(Vec::new(), &keys).await?;
            keys.clear();
        }
        keys.push(rows::Trace::key(trace.id()));
        self.table.write_many(Vec::new(), &keys).await?;
        if judges_a_session(trace.item()) {
            let row = rows::TraceOfSession::key(&trace.experiment(), trace.id());
            self.table.write_many(Vec::new(), &[row]).await?;
        }
        let mark = Mark { time: trace.request_time(), trace: trace.id().clone() };
        self.trace_unmark(trace.experiment(), &mark).await
    }
}

/// Items that one request deletes.
const IN_ONE: usize = 25;
