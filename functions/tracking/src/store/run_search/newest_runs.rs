//! Step 4: a shortcut for long experiments, which have a very large number of marks. Reads the
//! newest runs before the rest of the search is planned.

use entities::listing::ReadBudget;
use mlflow_api::Result;
use run_index::CandidateSource;

use crate::store::run_search::finder::{FoundRuns, RunFinder};
use crate::store::run_search::list_cursors::join_by_time;
use crate::store::run_search::planned_search::{PlannedSearch, SourceLists};

impl PlannedSearch<'_> {
    /// Reads the newest runs of all experiments. Gives up after `max` runs if fewer than one in
    /// four of them pass the filter. Returns `None` if the runs that pass do not fill the page.
    pub(crate) async fn newest_runs(self, max: usize, reading: ReadBudget) -> Result<Option<FoundRuns>> {
        let sources = self.source_lists().map(|(_, SourceLists::Copies(lists) | SourceLists::Keys(lists))| {
            CandidateSource::Joined(join_by_time(&lists, self.search, self.experiments.len()))
        });
        let sources = sources.collect();
        let mut finder = RunFinder::new(self, reading);
        let is_complete = finder.try_to_fill_page(sources, Some(max)).await?;
        Ok(is_complete.then(|| finder.finish()))
    }
}
