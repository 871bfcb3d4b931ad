//! Messages about logged models (`service.proto`).

use serde::Serialize;
use serde_json::value::RawValue;

use crate::enum_field;
use crate::python::repr;
use crate::tracking::{KeyValue, serialize_double};
use crate::{Error, Result};

/// The characters that must not occur in the name of a logged model.
const FORBIDDEN_NAME_CHARACTERS: [char; 6] = ['/', ':', '.', '%', '"', '\''];

/// Checks the name that a client assigns to a logged model (`_validate_logged_model_name`).
pub fn check_name(name: &str) -> Result<()> {
    if !name.contains(FORBIDDEN_NAME_CHARACTERS) {
        return Ok(());
    }
    let printed: Vec<_> = FORBIDDEN_NAME_CHARACTERS.iter().map(|character| repr(&character.to_string())).collect();
    Err(Error::invalid(format!(
        "Invalid model name ({}) provided. Model name must be a non-empty string and cannot contain the following \
         characters: ({})",
        repr(name),
        printed.join(", ")
    )))
}

/// The status of a logged model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum ModelStatus {
    /// The client has not set a status.
    #[default]
    #[serde(rename = "LOGGED_MODEL_STATUS_UNSPECIFIED")]
    Unspecified,
    /// The artifacts of the model are being written.
    #[serde(rename = "LOGGED_MODEL_PENDING")]
    Pending,
    /// The model is ready for use.
    #[serde(rename = "LOGGED_MODEL_READY")]
    Ready,
    /// The artifacts of the model could not be written.
    #[serde(rename = "LOGGED_MODEL_UPLOAD_FAILED")]
    UploadFailed,
}

impl ModelStatus {
    /// Returns the number of the status in `service.proto`, which MLflow's store uses to store and
    /// compare it.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::Unspecified => 0,
            Self::Pending => 1,
            Self::Ready => 2,
            Self::UploadFailed => 3,
        }
    }

    /// Returns the status with this number. Unknown numbers are mapped to
    /// [`ModelStatus::Unspecified`].
    #[must_use]
    pub const fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Pending,
            2 => Self::Ready,
            3 => Self::UploadFailed,
            _ => Self::Unspecified,
        }
    }
}

enum_field!(ModelStatus {
    "LOGGED_MODEL_STATUS_UNSPECIFIED" = 0 => Self::Unspecified,
    "LOGGED_MODEL_PENDING" = 1 => Self::Pending,
    "LOGGED_MODEL_READY" = 2 => Self::Ready,
    "LOGGED_MODEL_UPLOAD_FAILED" = 3 => Self::UploadFailed,
});

/// The attributes of a logged model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelInfo {
    /// The id.
    pub model_id: String,
    /// The id of the experiment.
    pub experiment_id: String,
    /// The name, which is not unique.
    pub name: String,
    /// The creation time, in ms.
    pub creation_timestamp_ms: i64,
    /// The time when the model was last created, finalized or deleted, in ms.
    pub last_updated_timestamp_ms: i64,
    /// The URI of the model's artifacts.
    pub artifact_uri: String,
    /// The status.
    pub status: ModelStatus,
    /// The type of the model, as set by the client. May be empty.
    pub model_type: String,
    /// The run that created the model, as reported by the client. May be empty.
    pub source_run_id: String,
    /// The tags, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<KeyValue>,
}

/// A point of a metric of a logged model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelMetric {
    /// The name of the metric.
    pub key: String,
    /// The value.
    #[serde(serialize_with = "serialize_double")]
    pub value: f64,
    /// The time of the point, in ms.
    pub timestamp: i64,
    /// The step.
    pub step: i64,
    /// The name of the dataset that the metric was measured on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub dataset_name: String,
    /// The digest of that dataset.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub dataset_digest: String,
    /// The id of the model.
    pub model_id: String,
    /// The run that logged the point.
    pub run_id: String,
}

/// The params and metrics of a logged model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelData {
    /// The params, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<KeyValue>,
    /// All points of all metrics, by metric and time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<ModelMetric>,
}

/// A logged model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoggedModel {
    /// The attributes.
    pub info: ModelInfo,
    /// The params and metrics.
    pub data: ModelData,
}

impl LoggedModel {
    /// Removes the ids of the runs that created the model and logged its metrics, for callers who
    /// may not read runs.
    pub fn hide_runs(&mut self) {
        self.info.source_run_id.clear();
        self.data.metrics.iter_mut().for_each(|metric| metric.run_id.clear());
    }
}

/// The response of `POST logged-models`, and of `GET` and `PATCH logged-models/{model_id}`.
#[derive(Serialize)]
pub struct LoggedModelResponse {
    /// The model.
    pub model: LoggedModel,
}

/// The response of `logged-models/search`.
#[derive(Serialize)]
pub struct SearchLoggedModelsResponse {
    /// The items of the page. Each is a [`LoggedModel`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Box<RawValue>>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// A file or directory in an artifact location.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileInfo {
    /// The path, relative to the location.
    pub path: String,
    /// Whether this is a directory.
    pub is_dir: bool,
    /// The size in bytes. Only set for files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
}

/// The response of `logged-models/{model_id}/artifacts/directories`.
#[derive(Serialize)]
pub struct ModelArtifactsResponse {
    /// The location of the artifacts.
    pub root_uri: String,
    /// The entries of the requested directory, by path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileInfo>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Scalar;
    use crate::message::{Content, Kind};

    #[test]
    fn names_are_checked_as_in_mlflow() {
        for name in ["n", "a b", "é#", "", "a\\b"] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
        for name in ["a/b", "a:b", "a.b", "a%b", "a\"b", "a'b"] {
            let message = check_name(name).unwrap_err().message;
            let end = r#"cannot contain the following characters: ('/', ':', '.', '%', '"', "'")"#;
            assert!(message.starts_with(&format!("Invalid model name ({})", repr(name))) && message.ends_with(end));
        }
    }

    #[test]
    fn every_status_has_its_number() {
        let Kind::Enum(statuses) = <ModelStatus as Scalar>::KIND else { panic!("no enum") };
        for (name, number) in statuses {
            let status = ModelStatus::from_number(*number);
            assert_eq!((status.number(), serde_json::to_value(status).unwrap()), (*number, (*name).into()));
            assert_eq!(ModelStatus::of(Content::Int(*number)).unwrap(), status);
        }
        assert_eq!(ModelStatus::from_number(9), ModelStatus::Unspecified);
    }
}
