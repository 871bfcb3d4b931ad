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
        stage: stage_from(item.text(STAGE).unwrap_or_default()),
        version: item.number(STAGE_VERSION).and_then(|version| version.try_into().ok()).unwrap_or_default(),
        artifact_location: item.text(LOCATION).unwrap_or_default().to_owned(),
    }
}

/// The experiment that a row of a name names, if it is the row of this name: its key may hold only a hash of a long one.
#[must_use]
pub fn experiment_of_name(row: &Item, name: &str) -> Option<ExperimentId> {
    if row.text(NAME) != Some(name) {
        return None;
    }
    row.text(EXPERIMENT)?.parse().ok().and_then(ExperimentId::from_number)
}

/// A stage from its name.
#[must_use]
pub fn stage_from(name: &str) -> LifecycleStage {
    if name == LifecycleStage::Deleted.name() { LifecycleStage::Deleted } else { LifecycleStage::Active }
}

/// The stage of a run, from its own item and its experiment's state.
#[must_use]
pub fn run_stage(item: &Item, experiment: &ExperimentState) -> LifecycleStage {
    // Of a later version than the experiment's, if our lease is older than the run's last change.
    if item.number(STAGE_VERSION).is_none_or(|version| version < i64::from(experiment.version)) {
        return experiment.stage;
    }
    stage_from(item.text(STAGE).unwrap_or_default())
}

/// Since when a run is deleted, in ms, from its own item and its experiment's; `None` if it is not. Deleting an experiment deletes its
/// runs, and is the last change that it sees.
#[must_use]
pub fn run_deleted_since(run: &Item, experiment: &Item) -> Option<i64> {
    let state = experiment_state(experiment);
    if run_stage(run, &state) != LifecycleStage::Deleted {
        return None;
    }
    let by_itself = run.number(STAGE_VERSION).is_some_and(|version| version >= i64::from(state.version));
    let since = if by_itself { run.number(DELETED_TIME) } else { experiment.number(UPDATED) };
    // Whose time is not known is never old.
    Some(since.unwrap_or(i64::MAX))
}

/// The condition that an item's own stage has not changed.
#[must_use]
pub fn unchanged_stage(item: &Item) -> Condition {
    let attributes = [STAGE, STAGE_VERSION].map(|attribute| match item.0.get(attribute) {
        Some(value) => Condition::Equals(attribute.into(), value.clone()),
        None => Condition::Missing(attribute.into()),
    });
    Condition::All(attributes.into())
}

/// The refusal to restore an entity whose removal for good has begun. Clients ask again: it is gone
/// soon, or stays after all.
#[must_use]
pub fn being_removed(what: &str) -> Error {
    Error::unavailable(format!("the {what} to be restored is being removed for good"))
}
