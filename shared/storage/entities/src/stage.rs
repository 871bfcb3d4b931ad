//! Lifecycle stages: a run's is a function of its own item and of its experiment's state.

use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{Error, ExperimentId, RunId, location};
use table::{Condition, Item};

use crate::attributes::{DELETED_TIME, EXPERIMENT, LOCATION, NAME, STAGE, STAGE_VERSION, UPDATED};

/// The state of an experiment that its runs depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentState {
    /// Its lifecycle stage.
    pub stage: LifecycleStage,
    /// How often that has changed.
    pub version: u32,
    /// Where its runs keep their artifacts.
    pub artifact_location: String,
}

impl ExperimentState {
    /// Where it keeps the artifacts of a run. That never changes, so a run's item leaves it out.
    #[must_use]
    pub fn artifacts_of(&self, run: &RunId) -> String {
        location::append(&self.artifact_location, &format!("{run}/artifacts"))
    }
}

/// The state in an experiment's item.
#[must_use]
pub fn experiment_state(item: &Item) -> ExperimentState {
    ExperimentState {
        stage: item.get(STAGE).unwrap_or_default(),
        version: item.get(STAGE_VERSION).unwrap_or_default(),
        artifact_location: item.get(LOCATION).unwrap_or_default().to_owned(),
    }
}

/// The experiment that a row of a name names, if it is the row of this name: its key may hold only a hash of a long one.
#[must_use]
pub fn experiment_of_name(row: &Item, name: &str) -> Option<ExperimentId> {
    if row.get(NAME) != Some(name) {
        return None;
    }
    row.get(EXPERIMENT)
}

/// The stage of a run, from its own item and its experiment's state.
#[must_use]
pub fn run_stage(item: &Item, experiment: &ExperimentState) -> LifecycleStage {
    // Of a later version than the experiment's, if our lease is older than the run's last change.
    if item.get(STAGE_VERSION).is_none_or(|version| version < experiment.version) {
        return experiment.stage;
    }
    item.get(STAGE).unwrap_or_default()
}

/// Since when a run is deleted, in ms, from its own item and its experiment's; `None` if it is not. Deleting an experiment deletes its
/// runs, and is the last change that it sees.
#[must_use]
pub fn run_deleted_since(run: &Item, experiment: &Item) -> Option<i64> {
    let state = experiment_state(experiment);
    if run_stage(run, &state) != LifecycleStage::Deleted {
        return None;
    }
    let by_itself = run.get(STAGE_VERSION).is_some_and(|version| version >= state.version);
    let since = if by_itself { run.get(DELETED_TIME) } else { experiment.get(UPDATED) };
    // Whose time is not known is never old.
    Some(since.unwrap_or(i64::MAX))
}

/// The condition that an item's own stage has not changed.
#[must_use]
pub fn unchanged_stage(item: &Item) -> Condition {
    Condition::unchanged(item, STAGE).and(Condition::unchanged(item, STAGE_VERSION))
}

/// The refusal to restore an entity whose removal for good has begun. Clients ask again: it is gone
/// soon, or stays after all.
#[must_use]
pub fn being_removed(what: &str) -> Error {
    Error::unavailable(format!("the {what} to be restored is being removed for good"))
}
