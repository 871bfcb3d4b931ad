//! Messages of the tracking domain: experiments, runs, metrics (`service.proto`).

pub use model::{LifecycleStage, RunStatus};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::inputs::RunInputs;
pub use crate::key_value::KeyValue;
use crate::{Workspace, enum_field, messages};

/// The tag that holds a run's name.
pub const RUN_NAME_TAG: &str = "mlflow.runName";
/// The tag that lists the models a run logged, for clients before logged models were entities.
pub const LOGGED_MODELS_TAG: &str = "mlflow.log-model.history";
/// Beginning of the tags that hold custom views of an experiment.
pub const CUSTOM_VIEW_TAG_PREFIX: &str = "mlflow.customView.view";

/// Which lifecycle stages a search shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewType {
    /// Active entities.
    ActiveOnly,
    /// Deleted entities.
    DeletedOnly,
    /// Both.
    All,
}

impl ViewType {
    /// Whether it shows entities of this stage.
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
    /// Decimal integer.
    pub experiment_id: String,
    /// Name, unique in the workspace.
    pub name: String,
    /// URI below which runs keep their artifacts.
    pub artifact_location: String,
    /// Lifecycle stage.
    pub lifecycle_stage: LifecycleStage,
    /// In ms.
    pub last_update_time: i64,
    /// In ms.
    pub creation_time: i64,
    /// Tags, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<KeyValue>,
    /// Workspace.
    pub workspace: Workspace,
}

/// A run's info.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunInfo {
    /// Id, under its old name.
    pub run_uuid: String,
    /// Id.
    pub run_id: String,
    /// Name.
    pub run_name: String,
    /// Experiment.
    pub experiment_id: String,
    /// User, as the client said; may be empty.
    pub user_id: String,
    /// Status.
    pub status: RunStatus,
    /// In ms.
    pub start_time: i64,
    /// In ms; left out while it is 0 or unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub end_time: Option<i64>,
    /// URI of the run's artifacts.
    pub artifact_uri: String,
    /// Lifecycle stage.
    pub lifecycle_stage: LifecycleStage,
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn is_zero(time: &Option<i64>) -> bool {
    time.unwrap_or_default() == 0
}

/// A point of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Name of the metric.
    pub key: String,
    /// Value.
    #[serde(serialize_with = "serialize_double")]
    pub value: f64,
    /// In ms.
    pub timestamp: i64,
    /// Step.
    pub step: i64,
    /// The run, where an answer is about several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

/// JSON has no number for these three; protobuf writes them as strings.
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

/// The data that a run logged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunData {
    /// The latest point of each metric, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Params, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<KeyValue>,
    /// Tags, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<KeyValue>,
}

messages! {
    /// A logged model that a run put out.
    #[derive(Serialize)]
    ModelOutput {
        model_id: String,
        step: i64,
    }
}

/// The outputs of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunOutputs {
    /// Logged models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_outputs: Vec<ModelOutput>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Info.
    pub info: RunInfo,
    /// Its logged data.
    pub data: RunData,
    /// Its inputs.
    pub inputs: RunInputs,
    /// Its outputs; left out of the answer to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<RunOutputs>,
}

impl Run {
    /// Leaves out the logged models that it read and put out.
    pub fn hide_models(&mut self) {
        self.inputs.model_inputs.clear();
        if let Some(outputs) = &mut self.outputs {
            outputs.model_outputs.clear();
        }
    }
}

/// Empty answer.
#[derive(Serialize)]
pub struct Empty {}

/// `experiments/create`
#[derive(Serialize)]
pub struct CreatedExperiment {
    /// Its id.
    pub experiment_id: String,
}

/// `experiments/get`, `get-by-name`
#[derive(Serialize)]
pub struct OneExperiment {
    /// The experiment.
    pub experiment: Experiment,
}

/// `experiments/search`
#[derive(Serialize)]
pub struct Experiments {
    /// The page, each an [`Experiment`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// `runs/create`, `runs/get`
#[derive(Serialize)]
pub struct OneRun {
    /// The run.
    pub run: Run,
}

/// `runs/update`
#[derive(Serialize)]
pub struct UpdatedRun {
    /// Its info.
    pub run_info: RunInfo,
}

/// `runs/search`
#[derive(Serialize)]
pub struct Runs {
    /// The page, each a [`Run`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// `metrics/get-history`, `get-history-bulk-interval`
#[derive(Serialize)]
pub struct Metrics {
    /// The points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// `metrics/get-history-bulk`, which no protobuf message describes: the list is there even when it is empty.
#[derive(Serialize)]
pub struct BulkMetrics {
    /// The points.
    pub metrics: Vec<Metric>,
}
