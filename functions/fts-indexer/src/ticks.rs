//! Looks after runs that were put off: once a minute, whatever the stream brings.
//!
//! A tick indexes nothing, and packs nothing. It marks a run again and asks for it to be indexed at
//! once ([`Marked::marked_overdue`]). The stream brings that to its consumer. So the consumer stays
//! the only one that indexes the runs of an experiment. A row is deleted only after that write.

use std::collections::BTreeSet;
use std::time::Duration;

use entities::{IndexingState, Marked, Moment, RunLocation};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Ascending, Key, Segment, Shard, rows};
use table::{Failure, Item, Query, Result, Update};
use trace_packing::{asking, partition_of_row};

use crate::Indexer;
use crate::schedule::{row_of, run_of_row};

/// Rows looked at together: their runs' documents are one request.
const AT_A_TIME: usize = 50;
/// Requests under way at a time.
const AT_ONCE: usize = 16;
/// Pause after as many runs were asked for: they may be of one experiment, whose partition takes
/// 1,000 write units a second, and its clients should not notice.
const REST: Duration = Duration::from_millis(100);
/// How long a tick lasts; the next goes on.
const LONGEST: Duration = Duration::from_mins(1);

/// When a postponed run is due.
enum Due {
    /// It was indexed meanwhile, and is due again then.
    Later(i64),
    /// It changed, and nobody has indexed it since.
    Now,
    /// There is nothing left to do.
    Never,
}

impl Indexer {
    /// Looks at the runs that are due by now, and has those indexed that still are to be; has
    /// partitions of traces packed that are due. A request for each of a few shards; and for 50
    /// runs that are due one, one for each that is to be indexed, and two to four to write and
    /// delete rows. It logs a line with the requests and units, as functions do for a request.
    pub async fn tick(&self) -> Result<()> {
        Box::pin(service::told_work("tick", self.look_at_all_due())).await
    }

    async fn look_at_all_due(&self) -> Result<()> {
        let begin = Moment::now();
        if let Some(counting) = &self.counting
            && let Err(error) = counting.hold().await
        {
            tracing::warn!(?error, "workspaces could not be held to their quotas");
        }
        let due = Ascending(self.schedule.now().saturating_sub(self.schedule.grace_ms())).text();
        for shard in Shard::all() {
            let range = rows::Postponed::all(&shard).range().until_beginning(&due);
            let mut query = Query::of(range).limit(AT_A_TIME);
            while begin.age() < LONGEST {
                let page = self.table.query_page(&query).await?;
                self.look_at_due(&page.items.iter().filter_map(Item::key).collect::<Vec<_>>()).await?;
                match page.next {
                    Some(next) => query = query.starting_at(next),
                    None => break,
                }
            }
        }
        Ok(())
    }

    async fn look_at_due(&self, rows: &[Key]) -> Result<()> {
        let is_known = |row: &Key| run_of_row(row).is_some() || partition_of_row(row).is_some();
        let (known, unknown): (Vec<_>, Vec<_>) = rows.iter().cloned().partition(is_known);
        if !unknown.is_empty() {
            tracing::error!(?unknown, "rows of what was put off cannot be read");
        }
        // A run may have two rows, and no batch may write an item twice.
        let runs: BTreeSet<_> = known.iter().filter_map(run_of_row).collect();
        let documents = self.table.get_many(&runs.iter().map(RunLocation::key).collect::<Vec<_>>()).await?;
        let (mut later, mut now) = (Vec::new(), Vec::new());
        for at in runs {
            match self.due(documents.get(&at.key())) {
                Due::Later(due) => later.push(Item::new(row_of(&at, due))),
                Due::Now => now.push(at),
                Due::Never => {}
            }
        }
        let partitions: BTreeSet<_> = known.iter().filter_map(partition_of_row).collect();
        later.extend(partitions.iter().map(|partition| asking(partition, None)));
        self.table.write_many(later, &[]).await?;
        let asked: Vec<_> = now.iter().map(|at| self.ask_for(at)).collect();
        let asks = !asked.is_empty();
        stream::iter(asked).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
        if asks {
            clock::sleep(REST).await;
        }
        // Delete last, so that these rows are looked at again after a crash before this.
        self.table.write_many(Vec::new(), &known).await
    }

    fn due(&self, run: Option<&Item>) -> Due {
        let Some(run) = run else { return Due::Never };
        let run = IndexingState::of(run);
        let due = run.due.map(|due| due.saturating_sub(self.schedule.early_ms(&run)));
        let later = due.max(run.reliance.closing());
        match later.filter(|due| *due > self.schedule.now()) {
            // A process that relies on this row has it looked at again at that time.
            Some(due) => Due::Later(due),
            None if run.is_marked => Due::Now,
            None => Due::Never,
        }
    }

    /// Marks a run so that it is indexed at once.
    async fn ask_for(&self, at: &RunLocation) -> Result<()> {
        let update = Update::new(at.key()).marked_overdue(&at.run);
        match self.table.apply(&update).await {
            // Gone by now.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}
