//! The path `Gather`: lists that are read in full, and the runs that are in all of them.

use mlflow_api::Result;
use search::RunList;

use crate::store::run_search::finder::RunFinder;
use crate::store::run_search::searched_experiment::SearchedExperiment;

impl RunFinder<'_> {
    /// Reads lists in full, and then the runs that are in all of them. In the default order, it
    /// reads runs only until the page is full.
    pub(super) async fn gather(&mut self, experiments: &[&SearchedExperiment], lists: &[RunList]) -> Result<()> {
        let runs = self.planned.runs_in_all(experiments, lists, usize::MAX).await?.unwrap_or_default();
        let source = self.planned.gathered_source(runs);
        self.fill_page(vec![source]).await
    }
}
