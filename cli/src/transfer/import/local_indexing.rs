//! Indexing of imported runs by this process, if the table is in the embedded engine.

use std::time::Duration;

use artifact_store::Archive;
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
/// Maximum time to wait while the same run is the first one that waits to be indexed. Such a run
/// apparently cannot be indexed, so searches read its document instead.
const MAX_STALL: Duration = Duration::from_mins(2);

/// The indexer that runs during an import. It is idle if a server over the same data has an
/// indexer.
pub(super) struct LocalIndexing {
    feed: Option<StreamFeed>,
    table: Table,
}

impl LocalIndexing {
    /// Starts indexing what is written to a table of the embedded engine. Does nothing without an
    /// engine, because the indexer of the stack processes the table then.
    ///
    /// # Errors
    /// The layout of the table cannot be read.
    pub(super) async fn start(engine: Option<Engine>, table: &Table, archive: &Archive) -> Result<Self, Failure> {
        let layout = entities::layout::of(table).await?;
        let feed = engine.map(|engine| {
            let source = feed::table_to_index(&engine, table.name());
            let indexer = Indexer::new(source).with_layout(layout).with_archive(archive.clone());
            let consumer = LocalIndexer(indexer.as_only_indexer());
            StreamFeed::start(engine, table.name().to_owned(), consumer, Duration::ZERO, TICK_INTERVAL)
        });
        Ok(Self { feed, table: table.clone() })
    }

    /// Waits until the runs of an experiment are indexed, so that searches are fast once the
    /// experiment is visible. Returns immediately if the table is not in the embedded engine.
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
