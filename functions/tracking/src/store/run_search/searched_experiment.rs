//! Step 1: reads the experiments to search. Their lifecycle states determine which lists and copies
//! contain the runs of a view.

use access::Granted;
use entities::{ExperimentState, RunLocation};
use key_schema::{KeyRange, OwnStage, list_positions, ranges};
use mlflow_api::tracking::{LifecycleStage, ViewType};
use mlflow_api::{ExperimentId, Result, RunId};
use run_index::RunLists;
use search::RunPlan;

use crate::store::Store;

/// Maximum number of concurrent requests for different experiments.
pub(super) const CONCURRENCY: usize = 16;

/// An experiment to search.
#[derive(Clone, Debug)]
pub(super) struct SearchedExperiment {
    pub(super) id: ExperimentId,
    pub(super) state: ExperimentState,
}

impl Store {
    /// Returns those of the requested experiments that exist, with their states. Takes one request
    /// per 100 experiments for which there is no valid lease.
    pub(super) async fn searched_experiments(
        &self,
        experiments: &[Granted<ExperimentId>],
    ) -> Result<Vec<SearchedExperiment>> {
        let ids: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let states = self.experiments.states(&ids).await?;
        Ok(states.into_iter().map(|(id, state)| SearchedExperiment { id, state }).collect())
    }
}

impl SearchedExperiment {
    /// Checks whether the index by stage contains exactly the runs of a view. Once an experiment
    /// has been deleted, its stage may overrule the stages of its runs, so each candidate's items
    /// have to be checked.
    pub(super) fn index_is_exact(&self, view: ViewType) -> bool {
        view == ViewType::All || self.state.version == 0
    }

    /// Returns the stages under which the index stores copies of all runs that a view shows.
    pub(super) fn copies(&self, view: ViewType) -> &'static [OwnStage] {
        match view {
            ViewType::ActiveOnly if self.state.version == 0 => &[OwnStage::Active],
            ViewType::DeletedOnly if self.state.stage == LifecycleStage::Active => &[OwnStage::Deleted],
            // If the experiment was restored, individually deleted runs may be active again, and if
            // it is deleted, all of its runs are deleted. In these cases, the copies of all stages
            // are needed.
            _ => &OwnStage::ALL,
        }
    }

    /// Returns the lists that a plan reads in this experiment. If the plan reads only the list of
    /// all runs, this list is restricted to the stages that the view shows.
    pub(super) fn lists_of(&self, plan: &RunPlan, view: ViewType) -> RunLists {
        match view {
            _ if plan.reads_index() => RunLists::of_active(self.id, plan.started),
            ViewType::ActiveOnly if self.index_is_exact(view) => RunLists::of_active(self.id, plan.started),
            ViewType::DeletedOnly if self.state.stage == LifecycleStage::Active => {
                RunLists::of_deleted(self.id, plan.started, self.state.version)
            }
            _ => RunLists::of_every_stage(self.id, plan.started),
        }
    }

    /// Returns the key range of individually deleted runs if the view might show some of them.
    /// These runs are in no list.
    pub(super) fn deleted_keys(&self, view: ViewType) -> Option<KeyRange> {
        match (view, self.state.stage) {
            (ViewType::ActiveOnly, LifecycleStage::Active) if self.state.version == 0 => None,
            // If an experiment was deleted and restored, the runs that had been deleted
            // individually before are active again.
            (ViewType::ActiveOnly, LifecycleStage::Active) => {
                Some(ranges::runs_deleted_before(&self.id, self.state.version))
            }
            _ => Some(ranges::runs_deleted(&self.id)),
        }
    }

    /// Returns the location of a run in this experiment.
    pub(super) fn at(&self, run: RunId) -> RunLocation {
        RunLocation { experiment: self.id, run }
    }

    /// Parses the key of a mark or of a list entry into a run.
    pub(super) fn run(&self, key: &str) -> Option<RunLocation> {
        list_positions::run(key).map(|run| self.at(run))
    }

    /// Parses the key of a list entry into a run and its start time.
    pub(super) fn started_and_run(&self, key: &str) -> Option<(RunLocation, i64)> {
        list_positions::started_and_run(key).map(|(started, run)| (self.at(run), started))
    }
}
