//! Reads entire runs: the document, the metrics, and any rows of the run.

use access::Granted;
use entities::{Moment, RunLocation, read_run_items, run_whole};
use key_schema::rows;
use mlflow_api::{Result, tracking};

use super::run_datasets::RunDatasets;
use crate::store::Store;

impl Store {
    /// Reads a run. Takes one request, and one more for each of the following that the run has:
    /// each kind of separate row, a journal (while it is being logged to), and datasets.
    pub async fn run_get(&self, at: &Granted<RunLocation>) -> Result<tracking::Run> {
        let experiment_key = rows::Experiment::key(&at.experiment);
        let since = Moment::now();
        let mut items = self.table.get_many(&[experiment_key.clone(), at.key(), at.metrics_key()]).await?;
        let (Some(experiment), Some(run)) = (items.remove(&experiment_key), items.remove(&at.key())) else {
            return Err(at.not_found());
        };
        let experiment = self.experiments.keep_lease(at.experiment, since, &experiment);
        let metrics = items.remove(&at.metrics_key());
        let items = read_run_items(&self.table, at, run, metrics).await?;
        let mut run = run_whole(at, &items, &experiment)?;
        let mut datasets = RunDatasets::new(&self.table);
        datasets.load(std::iter::once(&run)).await?;
        datasets.fill(&mut run).await?;
        Ok(run)
    }
}
