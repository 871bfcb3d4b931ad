//! The access path `Gather`: reads lists in full, and then reads the runs that are in all of the
//! lists.

use mlflow_api::Result;
use search::RunList;

use crate::store::run_search::finder::RunFinder;
use crate::store::run_search::searched_experiment::SearchedExperiment;

impl RunFinder<'_> {
    /// Reads these lists in full, and then reads the runs that are in all of the lists. If the
    /// search is in the default order, runs are read only until the page is full.
    pub(super) async fn gather(&mut self, experiments: &[&SearchedExperiment], lists: &[RunList]) -> Result<()> {
        let runs = self.planned.runs_in_all(experiments, lists, usize::MAX).await?.unwrap_or_default();
        let source = self.planned.gathered_source(runs);
        self.fill_page(vec![source]).await
    }
}
