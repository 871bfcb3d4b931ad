//! Records of runs.

use std::collections::BTreeMap;

use entities::points::Point;
use key_schema::{halves, sha256_128};
use mlflow_api::tracking::{LifecycleStage, RunStatus};
use serde::Serialize;

/// A run of an MLflow database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RunRecord {
    /// The id. It identifies the record, and is not part of its fingerprint.
    #[serde(skip)]
    pub(super) id: String,
    /// Name of the run.
    pub(super) name: String,
    /// Name of the user who started the run.
    pub(super) user: String,
    /// Status of the run.
    pub(super) status: RunStatus,
    /// Start time, in ms since 1970. 0 if unknown.
    pub(super) start_time: i64,
    /// End time, in ms since 1970.
    pub(super) end_time: Option<i64>,
    /// The lifecycle stage.
    pub(super) stage: LifecycleStage,
    /// Deletion time, in ms since 1970, if the run is deleted.
    pub(super) deleted_time: Option<i64>,
    /// Location of its artifacts.
    pub(super) artifact_uri: String,
    /// Params, sorted by key.
    pub(super) params: Vec<(String, String)>,
    /// Tags, sorted by key.
    pub(super) tags: Vec<(String, String)>,
    /// Uses of datasets, sorted by name and digest.
    pub(super) datasets: Vec<DatasetUse>,
    /// Ids of the logged models that the run has read, sorted.
    pub(super) model_inputs: Vec<String>,
    /// Ids of the logged models that the run has produced, with their steps, sorted.
    pub(super) model_outputs: Vec<(String, i64)>,
    /// Metrics of the run, by name.
    pub(super) metrics: BTreeMap<String, MetricSummary>,
}

/// A run's use of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct DatasetUse {
    /// Name of the dataset.
    pub(super) name: String,
    /// Digest of the dataset.
    pub(super) digest: String,
    /// Tags of the use, sorted by key.
    pub(super) tags: Vec<(String, String)>,
}

/// The number of a metric's points, and a checksum of them that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct MetricSummary {
    pub(super) points: u64,
    pub(super) checksum: u64,
}

impl MetricSummary {
    /// Adds a point.
    pub(super) fn add(&mut self, point: &Point) {
        let [high, _] = halves(sha256_128(&point.pack()));
        self.points += 1;
        self.checksum = self.checksum.wrapping_add(high);
    }

    /// Returns the summary of these points, which must not contain duplicates.
    pub(super) fn of(points: &[Point]) -> Self {
        let mut summary = Self::default();
        for point in points {
            summary.add(point);
        }
        summary
    }
}
