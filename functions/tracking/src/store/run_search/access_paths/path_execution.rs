//! Runs the access path that the plan names.

use entities::listing::ReadBudget;
use mlflow_api::Result;
use search::AccessPath;

use crate::store::run_search::finder::{FoundRuns, RunFinder};
use crate::store::run_search::planned_search::PlannedSearch;
use crate::store::run_search::probed_lists::ProbedLists;

impl PlannedSearch<'_> {
    /// Finds the runs of the page along the plan's access path. If the plan uses lists of the
    /// indexer, runs that the index does not cover are examined too: either individually, before
    /// the access path is followed, or by reading their entire experiments afterwards.
    pub(crate) async fn carry_out(self, probed: ProbedLists, reading: ReadBudget) -> Result<FoundRuns> {
        let mut finder = RunFinder::new(self, reading);
        let reads_index = self.plan.reads_index();
        if reads_index {
            finder.examine_uncovered().await?;
        }
        match &self.plan.path {
            AccessPath::Ids(ids) => finder.read_ids(ids).await?,
            AccessPath::AllRuns => finder.read_whole(self.experiments).await?,
            AccessPath::Newest { lists } => finder.read_newest(lists, probed).await?,
            AccessPath::Walk(walk) => finder.walk(walk).await?,
            AccessPath::Gather { lists } => finder.gather(&self.listed_experiments(), lists).await?,
        }
        if reads_index {
            finder.read_whole(self.unlisted_experiments()).await?;
        }
        Ok(finder.finish())
    }
}
