//! The access path `Ids`: reads the runs that the filter names by id.

use entities::RunLocation;
use mlflow_api::{Result, RunId};

use crate::store::run_search::finder::{RunFinder, RunToRead};

impl RunFinder<'_> {
    /// Reads the runs with these ids from their documents.
    pub(super) async fn read_ids(&mut self, ids: &[String]) -> Result<()> {
        let ids: Vec<_> = ids.iter().filter_map(|id| RunId::parse(id)).collect();
        let runs = self.planned.experiments.iter().flat_map(|experiment| {
            let here = ids.iter().filter(|run| run.experiment().is_none_or(|of_run| of_run == experiment.id));
            here.map(|run| RunToRead::from_documents(RunLocation { experiment: experiment.id, run: run.clone() }))
        });
        let runs = runs.collect();
        self.examine(runs).await
    }
}
