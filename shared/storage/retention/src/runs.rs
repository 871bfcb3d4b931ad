//! Permanently deletes runs.

use std::collections::HashMap;

use entities::attributes::{STAGE_VERSION, START_TIME};
use entities::{RunLocation, experiment_state, run_deleted_since, run_info, unchanged_stage};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::{ExperimentId, Result, RunId};
use table::{Condition, Failure, Item, Write, number};

use crate::deletion_condition::DeletionCondition;
use crate::report::{RemovalReport, RemovedEntity};
use crate::store::Retention;

/// Batch size. The rows in `REMOVAL` of this many runs are written in one request, and their
/// documents are read in one request.
const BATCH_SIZE: usize = 25;
/// Number of runs whose artifacts and rows are deleted concurrently.
const CONCURRENCY: usize = 8;

/// Runs of one experiment, in their current state.
#[derive(Default)]
struct RunsByState {
    experiment: Option<Item>,
    /// Runs to delete: they are still deleted, and old enough.
    deleted: Vec<(RunLocation, Item)>,
    /// Runs whose document is missing, because an earlier removal or another process has already
    /// deleted it.
    gone: Vec<RunLocation>,
    restored: Vec<RunLocation>,
}

impl Retention {
    /// Deletes runs of an experiment. Returns the number of runs that are kept.
    pub(crate) async fn remove_runs(
        &self,
        experiment: ExperimentId,
        runs: &[RunId],
        which: DeletionCondition,
        report: &dyn RemovalReport,
    ) -> Result<usize> {
        let mut kept = 0;
        for runs in runs.chunks(BATCH_SIZE) {
            let places = runs.iter().map(|run| RunLocation { experiment, run: run.clone() }).collect();
            kept += self.remove_portion(places, which, report).await?;
        }
        Ok(kept)
    }

    async fn remove_portion(
        &self,
        runs: Vec<RunLocation>,
        which: DeletionCondition,
        report: &dyn RemovalReport,
    ) -> Result<usize> {
        let row = |at: &RunLocation| rows::RunRemoval::key(&at.experiment, &at.run);
        let started = self.started(&runs).await?;
        let claims = runs.iter().map(|at| match started.get(at) {
            Some(started) => Item::new(row(at)).with(START_TIME, number(*started)),
            None => Item::new(row(at)),
        });
        let claim = self.claim_with(claims.collect()).await?;
        // The runs are read after the claim was written. A run that was restored before the claim
        // is therefore found to be restored here. A run cannot be restored after the claim, because
        // restoring is rejected while the claim exists.
        let RunsByState { experiment, deleted, mut gone, restored } = self.sort(runs, which).await?;
        let mut kept: Vec<_> =
            restored.into_iter().map(|at| (at, "it was restored, or deleted again".to_owned())).collect();
        let experiment = experiment.as_ref();
        let artifacts = deleted.into_iter().map(|(at, run)| async move {
            let info = experiment.map(|item| run_info(at.experiment, &at.run, &run, &experiment_state(item)));
            let outcome = match info {
                Some(info) => self.remove_artifacts(&info.artifact_uri, at.run.as_str()).await,
                // The experiment's item is missing, because it was deleted manually. Without it,
                // the location of the run's artifacts is unknown, so they are left in place.
                None => Ok(()),
            };
            (at, outcome)
        });
        let mut ready = Vec::new();
        let mut artifacts = std::pin::pin!(stream::iter(artifacts.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY));
        while let Some((at, outcome)) = artifacts.next().await {
            match outcome {
                Ok(()) => ready.push(at),
                Err(why) => kept.push((at, why)),
            }
        }
        let (removed, restored) = self.remove_documents(ready, which).await?;
        gone.extend(removed);
        // These runs were active again because their experiment was deleted and then restored while
        // their artifacts were being deleted.
        kept.extend(restored.into_iter().map(|at| (at, "it was restored while its artifacts were deleted".to_owned())));

        let cleared = gone.iter().map(|at| self.index.clear_up_run(at, started.get(at).copied()));
        stream::iter(cleared.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
        self.finish(&gone.iter().map(row).collect::<Vec<_>>()).await?;
        for at in gone {
            report.removed(RemovedEntity::Run(at.run));
        }
        let count = kept.len();
        for (at, why) in kept {
            self.release(&claim, row(&at)).await?;
            report.kept(RemovedEntity::Run(at.run), &why);
        }
        Ok(count)
    }

    /// Returns the start times of runs in ms, which are part of the keys of their copies and index
    /// entries. If the document of a run has already been deleted, its start time is taken from the
    /// run's row in `REMOVAL`. Sends one request.
    async fn started(&self, runs: &[RunLocation]) -> Result<HashMap<RunLocation, i64>> {
        let keys = |at: &RunLocation| [at.key(), rows::RunRemoval::key(&at.experiment, &at.run)];
        let items = self.table.get_many(&runs.iter().flat_map(keys).collect::<Vec<_>>()).await?;
        let started = |at: &RunLocation| keys(at).iter().find_map(|key| items.get(key)?.get(START_TIME));
        Ok(runs.iter().filter_map(|at| Some((at.clone(), started(at)?))).collect())
    }

    /// Reads the documents of runs and of their experiment. Sends one request.
    async fn sort(&self, runs: Vec<RunLocation>, which: DeletionCondition) -> Result<RunsByState> {
        let Some(first) = runs.first() else { return Ok(RunsByState::default()) };
        let experiment = rows::Experiment::key(&first.experiment);
        let keys: Vec<_> = runs.iter().map(RunLocation::key).chain([experiment.clone()]).collect();
        let mut items = self.table.get_many(&keys).await?;
        let mut sorted = RunsByState { experiment: items.remove(&experiment), ..RunsByState::default() };
        for at in runs {
            let Some(run) = items.remove(&at.key()) else {
                sorted.gone.push(at);
                continue;
            };
            let experiment = sorted.experiment.as_ref();
            if experiment.is_none_or(|experiment| which.contains(run_deleted_since(&run, experiment))) {
                sorted.deleted.push((at, run));
            } else {
                sorted.restored.push(at);
            }
        }
        Ok(sorted)
    }

    /// Deletes the documents of runs that are still deleted, all in one transaction. Returns the
    /// runs whose documents no longer exist, and the runs that have been restored.
    async fn remove_documents(
        &self,
        runs: Vec<RunLocation>,
        which: DeletionCondition,
    ) -> Result<(Vec<RunLocation>, Vec<RunLocation>)> {
        let (mut left, mut gone, mut restored) = (runs, Vec::new(), Vec::new());
        let mut attempts = self.table.attempts("a deleted run");
        while !left.is_empty() {
            attempts.next().await?;
            let sorted = self.sort(left, which).await?;
            gone.extend(sorted.gone);
            restored.extend(sorted.restored);
            let mut writes = Vec::new();
            if let Some((key, version)) =
                sorted.experiment.and_then(|item| Some((item.key()?, item.value(STAGE_VERSION)?.clone())))
            {
                // Restoring the experiment restores its runs without writing to them, so the
                // experiment's version has to be checked as well.
                writes.push(Write::Check(key, Condition::Equals(STAGE_VERSION.into(), version)));
            }
            writes.extend(sorted.deleted.iter().map(|(at, run)| Write::Delete(at.key(), unchanged_stage(run))));
            left = sorted.deleted.into_iter().map(|(at, _)| at).collect();
            if left.is_empty() {
                break;
            }
            match self.table.transact(&writes).await {
                Ok(()) => gone.append(&mut left),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok((gone, restored))
    }
}
