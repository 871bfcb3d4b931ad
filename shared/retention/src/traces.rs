//! Removing the traces of an experiment, with their spans.

use entities::attributes::{EDITS, SHARDS};
use entities::read_traces;
use key_schema::{Ascending, Key, Ordinal, rows};
use mlflow_api::{ExperimentId, Result, TraceId};
use table::{Condition, Failure, Item, Query, number};

use crate::store::Retention;

/// Marks that are read at a time.
const PAGE: usize = 100;

impl Retention {
    /// Removes all traces of an experiment that is deleted, so that none is added: first the traces of each mark, then the mark, which names
    /// them until then. The rows of the days go with the experiment's partition, after that.
    pub(crate) async fn remove_all_traces(&self, experiment: ExperimentId) -> Result<()> {
        for day in self.table.query(Query::of(rows::TraceDay::all(&experiment))).await? {
            let Some(row) = day.key().as_ref().and_then(rows::TraceDay::parse) else { continue };
            let shards = day.number(SHARDS).and_then(|shards| u32::try_from(shards).ok()).unwrap_or(1);
            for shard in 0..shards {
                self.remove_traces_of(experiment, row.day, Ordinal(shard)).await?;
            }
        }
        Ok(())
    }

    async fn remove_traces_of(&self, experiment: ExperimentId, day: Ascending, shard: Ordinal) -> Result<()> {
        let query = Query::of(rows::TraceMark::all(&experiment, &day, &shard)).limit(PAGE);
        loop {
            let marks: Vec<Key> = self.table.query_page(&query).await?.items.iter().filter_map(Item::key).collect();
            if marks.is_empty() {
                return Ok(());
            }
            let traces: Vec<_> = marks.iter().filter_map(rows::TraceMark::parse).map(|mark| mark.trace).collect();
            let heads = read_traces(&self.table, &traces.iter().collect::<Vec<_>>()).await?;
            for trace in &traces {
                // Also where the document is missing or another experiment's: an export may have been cut off, or refused.
                self.remove_spans(experiment, trace).await?;
                let Some(head) = heads.get(trace).filter(|head| head.experiment() == experiment) else { continue };
                let is_same = Condition::Equals(EDITS.into(), number(head.edits()));
                match self.table.delete(&rows::Trace::key(trace), &is_same).await {
                    // It is gone, or was made anew elsewhere.
                    Ok(()) | Err(Failure::Refused { .. }) => {}
                    Err(failure) => return Err(failure.into()),
                }
            }
            self.table.write_many(Vec::new(), &marks).await?;
        }
    }

    /// Removes what was exported to the experiment for a trace, page after page.
    async fn remove_spans(&self, experiment: ExperimentId, trace: &TraceId) -> Result<()> {
        let mut query = Query::of(rows::TraceSpans::all(trace).experiment(&experiment)).for_removal();
        loop {
            let page = self.table.query_page(&query).await?;
            let keys: Vec<_> = page.items.iter().filter_map(Item::key).collect();
            self.table.write_many(Vec::new(), &keys).await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(()),
            }
        }
    }
}
