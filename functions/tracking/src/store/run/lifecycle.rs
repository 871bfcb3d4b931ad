//! Deleting and restoring runs.

use access::Granted;
use entities::attributes::{DELETED_TIME, STAGE, STAGE_VERSION, START_TIME};
use entities::{MarkUpdate, Moment, RunLocation, being_removed, now_ms, run_stage, unchanged_stage};
use key_schema::index::RunsByStage;
use key_schema::{Descending, Stage, rows};
use mlflow_api::Result;
use mlflow_api::tracking::LifecycleStage;
use table::{ChangePlan, Condition, Update, Write, number, text};

use crate::store::Store;

/// Index, in the transaction that restores a run, of the write that checks that the run is not
/// being deleted permanently.
const REMOVAL_CHECK_INDEX: usize = 1;

impl Store {
    /// Deletes a run. Takes two requests, regardless of how much was logged to the run. Returns
    /// once no process relies on a lease from before the deletion. Deleting a deleted run changes
    /// nothing.
    pub async fn run_delete(&self, at: &Granted<RunLocation>) -> Result<()> {
        self.run_set_stage(at, LifecycleStage::Deleted).await?;
        self.logged_runs.wait_out(at).await;
        Ok(())
    }

    /// Restores a run, even if its experiment is deleted, unless the run is being deleted
    /// permanently. Takes two requests.
    pub async fn run_restore(&self, at: &Granted<RunLocation>) -> Result<()> {
        self.run_set_stage(at, LifecycleStage::Active).await
    }

    /// Sets the lifecycle stage of a run itself, as opposed to that of its experiment.
    async fn run_set_stage(&self, at: &Granted<RunLocation>, stage: LifecycleStage) -> Result<()> {
        self.table
            .change("a run", |refusal| async move {
                if refusal.is_of(REMOVAL_CHECK_INDEX) {
                    return Err(being_removed("run"));
                }
                let experiment_key = rows::Experiment::key(&at.experiment);
                let since = Moment::now();
                let items = self.table.get_many(&[experiment_key.clone(), at.key()]).await?;
                let (Some(experiment), Some(run)) = (items.get(&experiment_key), items.get(&at.key())) else {
                    return Err(at.not_found());
                };
                let experiment = self.experiments.keep_lease(at.experiment, since, experiment);
                if run.get(STAGE_VERSION).is_some_and(|version| version > experiment.version) {
                    // The run and its experiment were not read at the same moment, and the
                    // experiment has changed in between.
                    return Ok(ChangePlan::Again);
                }
                if run_stage(run, &experiment) == stage {
                    return Ok(ChangePlan::Done(()));
                }
                let key_stage = match stage {
                    LifecycleStage::Active => Stage::Active,
                    LifecycleStage::Deleted => Stage::Deleted { version: experiment.version },
                };
                let started = run.get(START_TIME).unwrap_or_default();
                let run = Update::new(at.key())
                    .set(STAGE, text(stage.name()))
                    .set(STAGE_VERSION, number(experiment.version))
                    .indexed(RunsByStage::key(&key_stage, &Descending(started), &at.run))
                    .marked(&at.run)
                    .only_if(unchanged_stage(run));
                let run = match stage {
                    LifecycleStage::Deleted => run.set(DELETED_TIME, number(now_ms())),
                    LifecycleStage::Active => run.remove(DELETED_TIME),
                };
                let mut writes = vec![Write::Update(run)];
                if stage == LifecycleStage::Active {
                    let removal = rows::RunRemoval::key(&at.experiment, &at.run);
                    writes.push(Write::Check(removal, Condition::item_missing()));
                }
                Ok(ChangePlan::Write(writes, ()))
            })
            .await
    }
}
