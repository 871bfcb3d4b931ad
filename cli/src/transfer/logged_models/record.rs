//! Records of logged models.

use mlflow_api::tracking::LifecycleStage;
use serde::Serialize;

/// A logged model of an MLflow database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ModelRecord {
    /// The id. It identifies the record, and is not part of its fingerprint.
    #[serde(skip)]
    pub(super) id: String,
    /// Name of the model.
    pub(super) name: String,
    /// The type, as given by the client.
    pub(super) model_type: String,
    /// Id of the run that created the model, or empty.
    pub(super) source_run: String,
    /// The status, as MLflow's number.
    pub(super) status: i64,
    /// The lifecycle stage.
    pub(super) stage: LifecycleStage,
    /// Creation time, in ms since 1970.
    pub(super) created: i64,
    /// Time of the last change, in ms since 1970.
    pub(super) updated: i64,
    /// Location of its artifacts.
    pub(super) artifact_uri: String,
    /// Params, sorted by key.
    pub(super) params: Vec<(String, String)>,
    /// Tags, sorted by key.
    pub(super) tags: Vec<(String, String)>,
    /// Points of its metrics, sorted.
    pub(super) points: Vec<ModelPointRecord>,
}

/// A point of a metric of a logged model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct ModelPointRecord {
    pub(super) metric: String,
    /// Time, in ms.
    pub(super) timestamp: i64,
    pub(super) step: i64,
    /// The bits of the value, which is finite.
    pub(super) value_bits: u64,
    /// The run that logged the point.
    pub(super) run: String,
    /// Name of the dataset that the value was measured on, or empty.
    pub(super) dataset_name: String,
    /// Digest of that dataset, or empty.
    pub(super) dataset_digest: String,
}
