//! Messages of the tracking domain, which are about experiments, runs and metrics
//! (`service.proto`).

pub use model::{LifecycleStage, RunStatus};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::inputs::RunInputs;
pub use crate::key_value::KeyValue;
use crate::{Workspace, enum_field, messages};

/// The tag that contains the name of a run.
pub const RUN_NAME_TAG: &str = "mlflow.runName";
/// The tag that lists the models that a run has logged, for clients from the time before logged
/// models were entities.
pub const LOGGED_MODELS_TAG: &str = "mlflow.log-model.history";
/// Prefix of the tags that contain the custom views of an experiment.
pub const CUSTOM_VIEW_TAG_PREFIX: &str = "mlflow.customView.view";

/// The lifecycle stages that a search returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewType {
    /// Active entities.
    ActiveOnly,
    /// Deleted entities.
    DeletedOnly,
    /// Both active and deleted entities.
    All,
}

impl ViewType {
    /// Checks whether entities in this stage are returned.
    #[must_use]
    pub fn shows(self, stage: LifecycleStage) -> bool {
        match self {
            Self::ActiveOnly => stage == LifecycleStage::Active,
            Self::DeletedOnly => stage == LifecycleStage::Deleted,
            Self::All => true,
        }
    }
}

enum_field!(ViewType {
    "ACTIVE_ONLY" = 1 => Self::ActiveOnly,
    "DELETED_ONLY" = 2 => Self::DeletedOnly,
    "ALL" = 3 => Self::All,
});

enum_field!(RunStatus {
    "RUNNING" = 1 => RunStatus::Running,
    "SCHEDULED" = 2 => RunStatus::Scheduled,
    "FINISHED" = 3 => RunStatus::Finished,
    "FAILED" = 4 => RunStatus::Failed,
    "KILLED" = 5 => RunStatus::Killed,
});

/// An experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Experiment {
    /// The id, as a decimal integer.
    pub experiment_id: String,
    /// The name, which is unique in the workspace.
    pub name: String,
    /// The URI under which runs store their artifacts.
    pub artifact_location: String,
    /// The lifecycle stage.
    pub lifecycle_stage: LifecycleStage,
    /// The time of the last change, in ms.
    pub last_update_time: i64,
    /// The creation time, in ms.
    pub creation_time: i64,
    /// The tags, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<KeyValue>,
    /// The age at which the experiment's traces are archived to files. `None` if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_trace_archival_retention: Option<String>,
    /// The workspace.
    pub workspace: Workspace,
}

/// The attributes of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunInfo {
    /// The id, under its old name.
    pub run_uuid: String,
    /// The id.
    pub run_id: String,
    /// The name.
    pub run_name: String,
    /// The id of the experiment.
    pub experiment_id: String,
    /// The user, as reported by the client. May be empty.
    pub user_id: String,
    /// The status.
    pub status: RunStatus,
    /// The start time, in ms.
    pub start_time: i64,
    /// The end time, in ms. Omitted if it is 0 or unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub end_time: Option<i64>,
    /// The URI of the run's artifacts.
    pub artifact_uri: String,
    /// The lifecycle stage.
    pub lifecycle_stage: LifecycleStage,
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn is_zero(time: &Option<i64>) -> bool {
    time.unwrap_or_default() == 0
}

/// A point of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// The name of the metric.
    pub key: String,
    /// The value.
    #[serde(serialize_with = "serialize_double")]
    pub value: f64,
    /// The time of the point, in ms.
    pub timestamp: i64,
    /// The step.
    pub step: i64,
    /// The id of the run, in responses about several runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

/// Serializes a float. NaN and the infinities, which JSON numbers cannot represent, are written as
/// strings, as in protobuf.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
pub(crate) fn serialize_double<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_nan() {
        serializer.serialize_str("NaN")
    } else if value.is_infinite() {
        serializer.serialize_str(if *value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        serializer.serialize_f64(*value)
    }
}

/// The data that a run has logged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunData {
    /// The latest point of each metric, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// The params, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<KeyValue>,
    /// The tags, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<KeyValue>,
}

messages! {
    /// A logged model that is an output of a run.
    #[derive(Serialize)]
    ModelOutput {
        model_id: String,
        step: i64,
    }
}

/// The outputs of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunOutputs {
    /// The logged models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_outputs: Vec<ModelOutput>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// The attributes.
    pub info: RunInfo,
    /// The logged data.
    pub data: RunData,
    /// The inputs.
    pub inputs: RunInputs,
    /// The outputs. Omitted in the response to the creation of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<RunOutputs>,
}

impl Run {
    /// Removes the logged models from the inputs and outputs.
    pub fn hide_models(&mut self) {
        self.inputs.model_inputs.clear();
        if let Some(outputs) = &mut self.outputs {
            outputs.model_outputs.clear();
        }
    }
}

/// An empty response.
#[derive(Serialize)]
pub struct EmptyResponse {}

/// The response of `experiments/create`.
#[derive(Serialize)]
pub struct CreateExperimentResponse {
    /// The id of the experiment.
    pub experiment_id: String,
}

/// The response of `experiments/get` and `get-by-name`.
#[derive(Serialize)]
pub struct ExperimentResponse {
    /// The experiment.
    pub experiment: Experiment,
}

/// The response of `experiments/search`.
#[derive(Serialize)]
pub struct SearchExperimentsResponse {
    /// The items of the page. Each is an [`Experiment`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Box<RawValue>>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// The response of `runs/create` and `runs/get`.
#[derive(Serialize)]
pub struct RunResponse {
    /// The run.
    pub run: Run,
}

/// The response of `runs/update`.
#[derive(Serialize)]
pub struct UpdateRunResponse {
    /// The attributes of the run.
    pub run_info: RunInfo,
}

/// The response of `runs/search`.
#[derive(Serialize)]
pub struct SearchRunsResponse {
    /// The items of the page. Each is a [`Run`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Box<RawValue>>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// The response of `metrics/get-history` and `get-history-bulk-interval`.
#[derive(Serialize)]
pub struct MetricHistoryResponse {
    /// The points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// The response of `metrics/get-history-bulk`, which no protobuf message describes. The list is
/// present even if it is empty.
#[derive(Serialize)]
pub struct BulkMetricHistoryResponse {
    /// The points.
    pub metrics: Vec<Metric>,
}
