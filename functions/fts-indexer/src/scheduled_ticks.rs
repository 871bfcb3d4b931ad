//! Checks once per minute, independently of the stream, which postponed runs, partitions of traces
//! and queues of events are due.
//!
//! A tick does not index or pack anything. It marks a run again and requests immediate indexing
//! ([`MarkUpdate::marked_overdue`]). The stream delivers this change to its consumer, so that the
//! consumer remains the only process that indexes an experiment's runs. The run's row is deleted
//! only after the run has been marked.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::trace_packing::{PackingScope, packing_request, partition_of_row};
use entities::{IndexingState, MarkUpdate, Moment, RunLocation};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Ascending, Key, Segment, Shard, rows};
use table::{Failure, Item, Query, Result, Update};

use crate::Indexer;
use crate::schedule::{row_of, run_of_row};

/// Number of rows that are processed together. The documents of their runs are read in one request.
const BATCH_SIZE: usize = 50;
/// Number of concurrent requests.
const CONCURRENCY: usize = 16;
/// Pause after each group of runs, so that clients do not notice the load. The runs of a group may
/// all be in one experiment, whose partition handles 1,000 write units per second.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum duration of a tick. The next tick continues with the remaining rows.
const MAX_DURATION: Duration = Duration::from_mins(1);

/// When a postponed run is due.
enum DueTime {
    /// The run has been indexed in the meantime, and is due again at this time.
    Later(i64),
    /// The run has changed, and has not been indexed since.
    Now,
    /// Nothing is left to do.
    Never,
}

impl Indexer {
    /// Processes all runs, partitions of traces and queues of events that are due. Runs that still
    /// have to be indexed are marked, packing of the partitions is requested, and the delivery of
    /// the events is invoked.
    ///
    /// Takes one request for each of a few shards of postponed runs and partitions, and one for
    /// each of as many shards of webhook queues. For every 50 due runs, takes one request to read
    /// them, one for each run to be indexed, and two to four to write and delete rows. Like other
    /// functions do for each request, logs a line with the requests and units.
    pub async fn tick(&self) -> Result<()> {
        Box::pin(service::log_work("tick", self.process_all_due())).await
    }

    async fn process_all_due(&self) -> Result<()> {
        if let Some(counting) = &self.usage_counter
            && let Err(error) = counting.enforce_quotas().await
        {
            tracing::warn!(?error, "the quotas of workspaces could not be enforced");
        }
        // Both may take long, so neither waits for the other.
        let (delivered, processed) =
            futures::join!(self.webhooks.deliver_due(self.schedule.now()), self.process_postponed());
        if let Err(error) = delivered {
            tracing::warn!(?error, "pending deliveries to webhooks could not be checked");
        }
        processed
    }

    async fn process_postponed(&self) -> Result<()> {
        let begin = Moment::now();
        let due = Ascending(self.schedule.now().saturating_sub(self.schedule.grace_ms())).text();
        for shard in Shard::all() {
            let range = rows::Postponed::all(&shard).range().until_beginning(&due);
            let mut query = Query::of(range).limit(BATCH_SIZE);
            while begin.age() < MAX_DURATION {
                let page = self.table.query_page(&query).await?;
                self.process_due(&page.items.iter().filter_map(Item::key).collect::<Vec<_>>()).await?;
                match page.next {
                    Some(next) => query = query.starting_at(next),
                    None => break,
                }
            }
        }
        Ok(())
    }

    async fn process_due(&self, rows: &[Key]) -> Result<()> {
        let is_known = |row: &Key| run_of_row(row).is_some() || partition_of_row(row).is_some();
        let (known, unknown): (Vec<_>, Vec<_>) = rows.iter().cloned().partition(is_known);
        if !unknown.is_empty() {
            tracing::error!(?unknown, "rows of postponed entities cannot be read");
        }
        // The set removes duplicates, because a run may have two rows, and a batch must not write
        // an item twice.
        let runs: BTreeSet<_> = known.iter().filter_map(run_of_row).collect();
        let documents = self.table.get_many(&runs.iter().map(RunLocation::key).collect::<Vec<_>>()).await?;
        let (mut later, mut now) = (Vec::new(), Vec::new());
        for at in runs {
            match self.due(documents.get(&at.key())) {
                DueTime::Later(due) => later.push(Item::new(row_of(&at, due))),
                DueTime::Now => now.push(at),
                DueTime::Never => {}
            }
        }
        let partitions: BTreeSet<_> = known.iter().filter_map(partition_of_row).collect();
        later.extend(partitions.iter().map(|partition| packing_request(partition, &PackingScope::default())));
        self.table.write_many(later, &[]).await?;
        let asked: Vec<_> = now.iter().map(|at| self.request_indexing(at)).collect();
        let asks = !asked.is_empty();
        stream::iter(asked).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
        if asks {
            runtime::clock::sleep(PAUSE).await;
        }
        // Rows are deleted last, so that they are processed again after a crash before this point.
        self.table.write_many(Vec::new(), &known).await
    }

    fn due(&self, run: Option<&Item>) -> DueTime {
        let Some(run) = run else { return DueTime::Never };
        let run = IndexingState::of(run);
        let due = run.due.map(|due| due.saturating_sub(self.schedule.early_ms(&run)));
        let later = due.max(run.reliance.closing());
        match later.filter(|due| *due > self.schedule.now()) {
            // A process may rely on the row that is about to be deleted, so the run gets a new row
            // for its next due time.
            Some(due) => DueTime::Later(due),
            None if run.is_marked => DueTime::Now,
            None => DueTime::Never,
        }
    }

    /// Marks a run to be indexed immediately.
    async fn request_indexing(&self, at: &RunLocation) -> Result<()> {
        let update = Update::new(at.key()).marked_overdue(&at.run);
        match self.table.apply(&update).await {
            // The run has been deleted in the meantime.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}
