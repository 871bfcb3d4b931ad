//! Lifecycle stages. The stage of a run depends on its own item and on the state of its experiment.

use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{Error, ExperimentId, RunId, location};
use table::{Condition, Item};

use crate::attributes::{DELETED_TIME, EXPERIMENT, LOCATION, NAME, STAGE, STAGE_VERSION, UPDATED};

/// The state of an experiment that affects its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentState {
    /// Lifecycle stage of the experiment.
    pub stage: LifecycleStage,
    /// Stage version: the number of times that the stage has changed.
    pub version: u32,
    /// Where runs of the experiment store their artifacts.
    pub artifact_location: String,
}

impl ExperimentState {
    /// Returns the location at which the experiment stores a run's artifacts. A run's item does not
    /// contain the location, because the location never changes.
    #[must_use]
    pub fn artifacts_of(&self, run: &RunId) -> String {
        location::append(&self.artifact_location, &format!("{run}/artifacts"))
    }
}

/// Reads the state from an experiment's item.
#[must_use]
pub fn experiment_state(item: &Item) -> ExperimentState {
    ExperimentState {
        stage: item.get(STAGE).unwrap_or_default(),
        version: item.get(STAGE_VERSION).unwrap_or_default(),
        artifact_location: item.get(LOCATION).unwrap_or_default().to_owned(),
    }
}

/// Returns the experiment that a row of an experiment name refers to. Returns `None` if the row
/// belongs to another name, which is possible because long names are hashed in keys.
#[must_use]
pub fn experiment_of_name(row: &Item, name: &str) -> Option<ExperimentId> {
    if row.get(NAME) != Some(name) {
        return None;
    }
    row.get(EXPERIMENT)
}

/// Returns the stage of a run, given its item and the state of its experiment.
#[must_use]
pub fn run_stage(item: &Item, experiment: &ExperimentState) -> LifecycleStage {
    // The run's version is later than the experiment's if the leased state is older than the run's
    // last change.
    if item.get(STAGE_VERSION).is_none_or(|version| version < experiment.version) {
        return experiment.stage;
    }
    item.get(STAGE).unwrap_or_default()
}

/// Returns the time in ms since which a run has been deleted, given the items of the run and of its
/// experiment. Returns `None` if the run is not deleted. If the run is deleted because its
/// experiment is, the time is that of the experiment's last change: the deletion is the last change
/// of a deleted experiment.
#[must_use]
pub fn run_deleted_since(run: &Item, experiment: &Item) -> Option<i64> {
    let state = experiment_state(experiment);
    if run_stage(run, &state) != LifecycleStage::Deleted {
        return None;
    }
    let by_itself = run.get(STAGE_VERSION).is_some_and(|version| version >= state.version);
    let since = if by_itself { run.get(DELETED_TIME) } else { experiment.get(UPDATED) };
    // A run whose time of deletion is unknown never counts as deleted long ago.
    Some(since.unwrap_or(i64::MAX))
}

/// Returns the condition that an item's own stage has not changed.
#[must_use]
pub fn unchanged_stage(item: &Item) -> Condition {
    Condition::unchanged(item, STAGE).and(Condition::unchanged(item, STAGE_VERSION))
}

/// Returns the error for restoring an entity whose permanent deletion has begun. Clients retry the
/// request after this error. By then, the deletion has been completed or abandoned.
#[must_use]
pub fn being_removed(what: &str) -> Error {
    Error::unavailable(format!("the {what} is being permanently deleted"))
}
