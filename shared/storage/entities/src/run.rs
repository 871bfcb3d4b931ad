//! Runs, built from their items.

use key_schema::attributes::{Attribute, Text};
use key_schema::rows;
use mlflow_api::tracking::{self, KeyValue, LifecycleStage, Metric, RunData, RunInfo, RunStatus};
use mlflow_api::{Error, ExperimentId, Result, RunId};
use table::{Item, Table};

use crate::attributes::{ARTIFACT_URI, END_TIME, NAME, PARAMS, START_TIME, STATUS, TAGS, USER};
use crate::param_and_tag_maps::entries;
use crate::points::Point;
use crate::run_items::RunItems;
use crate::run_links::{run_inputs, run_outputs};
use crate::run_location::RunLocation;
use crate::stage::{ExperimentState, experiment_state, run_stage};

/// Builds a run's info from its item.
#[must_use]
pub fn run_info(experiment: ExperimentId, run: &RunId, item: &Item, state: &ExperimentState) -> RunInfo {
    let text = |attribute: Attribute<Text>| item.get(attribute).unwrap_or_default().to_owned();
    let lifecycle_stage: LifecycleStage = run_stage(item, state);
    RunInfo {
        run_uuid: run.to_string(),
        run_id: run.to_string(),
        run_name: text(NAME),
        experiment_id: experiment.to_string(),
        user_id: text(USER),
        status: item.get(STATUS).unwrap_or(RunStatus::Running),
        start_time: item.get(START_TIME).unwrap_or_default(),
        end_time: item.get(END_TIME),
        artifact_uri: item.get(ARTIFACT_URI).map_or_else(|| state.artifacts_of(run), str::to_owned),
        lifecycle_stage,
    }
}

/// Returns the artifact location of a run, even if the run is deleted. Returns `None` if the run
/// does not exist. The location is stored in the run's own item, or follows from that of its
/// experiment. Takes one request of two read units.
pub async fn run_artifact_uri(table: &Table, at: &RunLocation) -> Result<Option<String>> {
    let experiment = rows::Experiment::key(&at.experiment);
    let items = table.get_many(&[at.key(), experiment.clone()]).await?;
    let found = items.get(&at.key()).zip(items.get(&experiment));
    Ok(found.map(|(run, experiment)| run_info(at.experiment, &at.run, run, &experiment_state(experiment)).artifact_uri))
}

/// Builds a run from its items. Datasets have only their name and digest.
///
/// # Errors
/// Returns an internal error if a part of the run cannot be read.
pub fn run_whole(at: &RunLocation, items: &RunItems, state: &ExperimentState) -> Result<tracking::Run> {
    let key_values = |attribute, rows| {
        let entries = entries(&items.run, attribute, rows)?.into_iter();
        Ok::<_, Error>(entries.map(|(key, value)| KeyValue { key, value }).collect::<Vec<_>>())
    };
    let metrics = items.latest_metrics()?.into_iter().map(|(key, Point { value, timestamp, step })| Metric {
        key: key.to_owned(),
        value,
        timestamp,
        step,
        run_id: None,
    });
    let metrics = metrics.collect();
    let data = RunData { metrics, params: key_values(PARAMS, &items.params)?, tags: key_values(TAGS, &items.tags)? };
    let info = run_info(at.experiment, &at.run, &items.run, state);
    Ok(tracking::Run { info, data, inputs: run_inputs(&items.links)?, outputs: Some(run_outputs(&items.links)?) })
}
