//! Runs: delete and restore.

use access::Granted;
use entities::attributes::{STAGE, STAGE_VERSION, START_TIME};
use entities::{Marked, Moment, RunLocation, run_stage};
use key_schema::index::RunsByStage;
use key_schema::{Descending, Stage, rows};
use mlflow_api::Result;
use mlflow_api::tracking::LifecycleStage;
use table::{Condition, Item, Plan, Update, Write, number, text};

use crate::store::Store;

impl Store {
    /// Deletes a run. Two requests, however much it logged. Deleting it again changes nothing.
    pub async fn run_delete(&self, at: &Granted<RunLocation>) -> Result<()> {
        self.run_set_stage(at, LifecycleStage::Deleted).await
    }

    /// Restores a run, even one whose experiment is deleted. Two requests.
    pub async fn run_restore(&self, at: &Granted<RunLocation>) -> Result<()> {
        self.run_set_stage(at, LifecycleStage::Active).await
    }

    /// Sets a run's own stage, on its item and on its metrics document: metrics are logged without looking at the run.
    async fn run_set_stage(&self, at: &Granted<RunLocation>, stage: LifecycleStage) -> Result<()> {
        self.table
            .change("a run", |_| async move {
                let experiment_key = rows::Experiment::key(&at.experiment);
                let since = Moment::now();
                let items = self.table.get_many(&[experiment_key.clone(), at.key(), at.metrics_key()]).await?;
                let (Some(experiment), Some(run)) = (items.get(&experiment_key), items.get(&at.key())) else {
                    return Err(at.not_found());
                };
                let experiment = self.experiments.keep_lease(at.experiment, since, experiment);
                if run.number(STAGE_VERSION).is_some_and(|version| version > i64::from(experiment.version)) {
                    // The three were not read at one moment: the experiment has changed since.
                    return Ok(Plan::Again);
                }
                if run_stage(run, &experiment) == stage {
                    return Ok(Plan::Done(()));
                }
                let key_stage = match stage {
                    LifecycleStage::Active => Stage::Active,
                    LifecycleStage::Deleted => Stage::Deleted { version: experiment.version },
                };
                let started = run.number(START_TIME).unwrap_or_default();
                let own = |update: Update| {
                    update.set(STAGE, text(stage.name())).set(STAGE_VERSION, number(experiment.version))
                };
                let run = own(Update::new(at.key()))
                    .indexed(RunsByStage::key(&key_stage, &Descending(started), &at.run))
                    .marked(&at.run)
                    .only_if(unchanged_stage(run));
                let metrics = if items.contains_key(&at.metrics_key()) {
                    Write::Update(own(Update::new(at.metrics_key())))
                } else {
                    // A metric logged right now makes the document: then both have to be changed.
                    Write::Check(at.metrics_key(), Condition::item_missing())
                };
                Ok(Plan::Write(vec![Write::Update(run), metrics], ()))
            })
            .await
    }
}

/// The condition that an item's own stage is what it was.
pub(crate) fn unchanged_stage(item: &Item) -> Condition {
    let attributes = [STAGE, STAGE_VERSION].map(|attribute| match item.0.get(attribute) {
        Some(value) => Condition::Equals(attribute.into(), value.clone()),
        None => Condition::Missing(attribute.into()),
    });
    Condition::All(attributes.into())
}
