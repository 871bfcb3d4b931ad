//! Removing the traces of an experiment, with their spans.

use entities::attributes::SHARDS;
use entities::read_traces;
use key_schema::{Ascending, Key, Ordinal, rows};
use mlflow_api::{ExperimentId, Result};
use table::{Item, Query};

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
            for (trace, head) in heads {
                if head.experiment() != experiment {
                    continue;
                }
                let spans = self.table.query(Query::of(rows::TraceSpans::all(&trace)).for_removal()).await?;
                let keys: Vec<_> = spans.iter().filter_map(Item::key).collect();
                self.table.write_many(Vec::new(), &keys).await?;
                self.table.write_many(Vec::new(), &[rows::Trace::key(&trace)]).await?;
            }
            self.table.write_many(Vec::new(), &marks).await?;
        }
    }
}
