//! Searches of runs: carries out a plan of the `search` crate. `docs/design/run-index.md` describes
//! the index, and `docs/design/search.md` what each kind of search costs.
//!
//! A search takes these steps ([`Store::find_runs`]):
//!
//! | step | file |
//! |---|---|
//! | 0. parse the request | [`request`] |
//! | 1. read the experiments | [`searched_experiment`] |
//! | 2. determine the lists that the index offers | [`run_options`] |
//! | 3. read the marks of runs that the index does not cover | [`uncovered_runs`], [`run_marks`], [`mark_budget`] |
//! | 4. if an experiment has a very large number of marks: read the newest runs, which may fill the page | [`newest_runs`] |
//! | 5. read the first entries of promising lists | [`probed_lists`], [`list_cursors`] |
//! | 6. choose the plan | [`search::choose`] |
//! | 7. carry out the plan along its access path | [`planned_search`], [`access_paths`], [`finder`] |
//! | 8. write the response page | [`response_page`] |
//!
//! A plan names lists of the index, whose keys [`RunLists`](run_index::RunLists) provides. The
//! entries of the lists are candidates, in one [`CandidateSource`](run_index::CandidateSource) per
//! experiment. [`finder`] merges the candidates of all experiments and examines them until the page
//! is full. Runs that changed since they were indexed may be in no list, so they are always read.

mod access_paths;
mod finder;
mod list_cursors;
mod mark_budget;
mod newest_runs;
mod planned_search;
mod probed_lists;
mod request;
mod response_page;
mod run_marks;
mod run_options;
mod search_bounds;
mod searched_experiment;
mod uncovered_runs;

use access::Granted;
use entities::listing::ReadBudget;
use mlflow_api::tracking::SearchRunsResponse;
use mlflow_api::{ExperimentId, Result};
use search::choose;

use crate::store::Store;
use finder::FoundRuns;
use planned_search::PlannedSearch;
use uncovered_runs::long_experiments;

pub use request::RunSearch;
pub(crate) use request::known_experiments;
pub use search_bounds::SearchBounds;

impl Store {
    /// Searches the runs of these experiments. `docs/design/search.md` lists the cost of each kind of
    /// search.
    pub async fn run_search(
        &self,
        experiments: &[Granted<ExperimentId>],
        search: RunSearch,
    ) -> Result<SearchRunsResponse> {
        let reading = ReadBudget::default();
        let store = Self { table: reading.of(&self.table), ..self.clone() };
        let found = store.find_runs(experiments, &search, reading).await?;
        store.run_page(found, &search).await
    }

    /// Finds the runs of the page.
    async fn find_runs(
        &self,
        experiments: &[Granted<ExperimentId>],
        search: &RunSearch,
        reading: ReadBudget,
    ) -> Result<FoundRuns> {
        let (table, view) = (&self.table, search.view);
        let experiments = &self.searched_experiments(experiments).await?;
        let options = self.run_options(experiments, search).await?;
        // Marks are read before lists and copies. This order guarantees that the lists contain
        // every run without a mark, and that the copy of such a run is up to date.
        let bound = search.is_newest_first().then_some(self.search_bounds.marks);
        let mut uncovered = self.uncovered_runs(experiments, &options, view, bound).await?;
        // Long experiments have a very large number of marks. If the newest runs fill the page,
        // these marks do not have to be read.
        let long = long_experiments(experiments, &uncovered);
        if !long.is_empty() {
            let plan = &search::by_time(&options, search.page_size);
            let planned = PlannedSearch { table, search, experiments, uncovered: &uncovered, plan };
            if let Some(found) = planned.newest_runs(self.search_bounds.newest, reading.clone()).await? {
                return Ok(found);
            }
            uncovered.extend(self.uncovered_runs(&long, &options, view, None).await?);
        }
        let probed = self.probed_lists(experiments, &options, search).await?;
        let plan = &choose(&options, &probed.heads(&options), search.page_size);
        tracing::debug!(%plan, filter = %search.filter, order = %search.order, ?view, "a search of runs");
        let planned = PlannedSearch { table, search, experiments, uncovered: &uncovered, plan };
        planned.carry_out(probed, reading).await
    }
}
