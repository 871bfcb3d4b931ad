//! The access path `Whole`: reads all runs of an experiment.

use std::sync::Arc;

use entities::{RunCopy, read_all_runs, unreadable};
use futures::stream::TryStreamExt;
use key_schema::OwnStage;
use mlflow_api::Result;
use mlflow_api::tracking::ViewType;
use run_index::RunLists;
use search::RunList;
use table::Query;

use crate::store::run_search::finder::{RunFinder, RunSource, RunToRead};
use crate::store::run_search::searched_experiment::SearchedExperiment;

impl RunFinder<'_> {
    /// Reads all runs of these experiments that the view might show, and keeps those that pass.
    /// Runs are read from their copies in the index. Runs that changed after their copies were
    /// written are read from their documents instead. If too many runs have changed, all runs are
    /// read from their documents. Takes one request and 130 read units per MB. Uses a few MB of
    /// memory, plus twice the size of the page.
    pub(super) async fn read_whole(
        &mut self,
        experiments: impl IntoIterator<Item = &SearchedExperiment>,
    ) -> Result<()> {
        let planned = self.planned;
        for experiment in experiments {
            if let Some(uncovered) = planned.known_uncovered(experiment.id) {
                let changed = uncovered.changed.iter().cloned().map(RunToRead::from_documents);
                self.examine(changed.collect()).await?;
                for stage in experiment.copies(planned.search.view) {
                    self.read_copies(experiment, *stage).await?;
                }
            } else if planned.search.view == ViewType::DeletedOnly {
                self.gather(&[experiment], &[RunList::All]).await?;
            } else {
                self.read_documents(experiment).await?;
            }
        }
        Ok(())
    }

    async fn read_copies(&mut self, experiment: &SearchedExperiment, stage: OwnStage) -> Result<()> {
        let copies = RunLists::copies(experiment.id, self.planned.plan.started, stage);
        let mut query = Query::of(copies.range(&RunList::All));
        loop {
            let page = self.planned.table.query_page(&query).await?;
            let mut runs = Vec::with_capacity(page.items.len());
            for copy in page.items.into_iter().map(RunCopy) {
                let (at, ..) = copy.place().ok_or_else(|| unreadable(&copy.0, "the key of a copy"))?;
                if !self.is_examined(&at) {
                    runs.push(RunToRead { at, source: RunSource::LoadedCopy(Arc::new(copy.0)) });
                }
            }
            self.examine(runs).await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(()),
            }
        }
    }

    async fn read_documents(&mut self, experiment: &SearchedExperiment) -> Result<()> {
        let mut runs = std::pin::pin!(read_all_runs(self.planned.table, experiment.id));
        while let Some((at, items)) = runs.try_next().await? {
            self.examine_items(&at, &items).await?;
        }
        Ok(())
    }
}
