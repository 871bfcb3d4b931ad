//! Indexing of imported runs by this process, if the table is in the embedded engine.

use std::time::Duration;

use embedded_engine::Engine;
use fts_indexer::Indexer;
use key_schema::index::RunsChanged;
use mlflow_api::ExperimentId;
use runtime::clock::sleep;
use table::{Query, Table};

use crate::Failure;
use crate::feed::{self, LocalIndexer, StreamFeed, TICK_INTERVAL};

/// Pause between two checks whether all runs of an experiment are indexed.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum time for which the first run that waits stays the same. Such a run cannot be indexed, and
/// searches read its documents.
const MAX_STALL: Duration = Duration::from_mins(2);

/// The indexer that runs next to an import. Idle if a server on the same data has one.
pub(super) struct LocalIndexing {
    feed: Option<StreamFeed>,
    table: Table,
}

impl LocalIndexing {
    /// Starts indexing what is written to a table of the embedded engine. Without an engine, the
    /// stack has an indexer.
    pub(super) fn start(engine: Option<Engine>, table: &Table) -> Self {
        let feed = engine.map(|engine| {
            let indexed = feed::table_to_index(&engine, table.name());
            let consumer = LocalIndexer(Indexer::new(indexed).as_only_indexer());
            StreamFeed::start(engine, table.name().to_owned(), consumer, Duration::ZERO, TICK_INTERVAL)
        });
        Self { feed, table: table.clone() }
    }

    /// Waits until the runs of an experiment are indexed, so that searches are fast once it is
    /// visible. Returns at once without an engine.
    ///
    /// # Errors
    /// The table cannot be read.
    pub(super) async fn wait_for(&self, experiment: ExperimentId) -> Result<(), Failure> {
        if self.feed.is_none() {
            return Ok(());
        }
        let (mut first, mut stall) = (None, Duration::ZERO);
        while stall < MAX_STALL {
            let page = self.table.query_page(&Query::of(RunsChanged::all(&experiment)).limit(1)).await;
            let page = page.map_err(|failure| format!("cannot read the table: {failure:?}"))?;
            let Some(waiting) = page.items.into_iter().next() else { return Ok(()) };
            let waiting = waiting.key();
            stall = if waiting == first { stall + PAUSE } else { Duration::ZERO };
            first = waiting;
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Stops after the batch in flight.
    pub(super) async fn stop(self) {
        if let Some(feed) = self.feed {
            feed.stop().await;
        }
    }
}
