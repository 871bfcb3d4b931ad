//! Messages of logged models (`service.proto`).

use serde::Serialize;
use serde_json::value::RawValue;

use crate::enum_field;
use crate::python::repr;
use crate::tracking::{KeyValue, serialize_double};
use crate::{Error, Result};

/// The characters that no name of a logged model may hold.
const NOT_IN_NAMES: [char; 6] = ['/', ':', '.', '%', '"', '\''];

/// Checks the name a client gives a logged model (`_validate_logged_model_name`).
pub fn check_name(name: &str) -> Result<()> {
    if !name.contains(NOT_IN_NAMES) {
        return Ok(());
    }
    let printed: Vec<_> = NOT_IN_NAMES.iter().map(|character| repr(&character.to_string())).collect();
    Err(Error::invalid(format!(
        "Invalid model name ({}) provided. Model name must be a non-empty string and cannot contain the following \
         characters: ({})",
        repr(name),
        printed.join(", ")
    )))
}

/// Whether a logged model is ready for use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum ModelStatus {
    /// Nobody said.
    #[default]
    #[serde(rename = "LOGGED_MODEL_STATUS_UNSPECIFIED")]
    Unspecified,
    /// Its artifacts are being written.
    #[serde(rename = "LOGGED_MODEL_PENDING")]
    Pending,
    /// Ready.
    #[serde(rename = "LOGGED_MODEL_READY")]
    Ready,
    /// Its artifacts could not be written.
    #[serde(rename = "LOGGED_MODEL_UPLOAD_FAILED")]
    UploadFailed,
}

impl ModelStatus {
    /// Its number in `service.proto`, by which MLflow's store keeps and compares it.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::Unspecified => 0,
            Self::Pending => 1,
            Self::Ready => 2,
            Self::UploadFailed => 3,
        }
    }

    /// The status with this number; unspecified for any other.
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

/// A logged model's info.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelInfo {
    /// Id.
    pub model_id: String,
    /// Experiment.
    pub experiment_id: String,
    /// Name, not unique.
    pub name: String,
    /// In ms.
    pub creation_timestamp_ms: i64,
    /// When it was created, finalized or deleted, in ms.
    pub last_updated_timestamp_ms: i64,
    /// URI of its artifacts.
    pub artifact_uri: String,
    /// Status.
    pub status: ModelStatus,
    /// The type of the model, from the client; may be empty.
    pub model_type: String,
    /// The run that made it, as the client said; may be empty.
    pub source_run_id: String,
    /// Tags, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<KeyValue>,
}

/// A point of a logged model's metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelMetric {
    /// Name of the metric.
    pub key: String,
    /// Value.
    #[serde(serialize_with = "serialize_double")]
    pub value: f64,
    /// In ms.
    pub timestamp: i64,
    /// Step.
    pub step: i64,
    /// Name of the dataset it was measured on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub dataset_name: String,
    /// Digest of that dataset.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub dataset_digest: String,
    /// The model.
    pub model_id: String,
    /// The run that logged it.
    pub run_id: String,
}

/// A logged model's params and metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelData {
    /// Params, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<KeyValue>,
    /// All points of all metrics, by metric and time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<ModelMetric>,
}

/// A logged model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoggedModel {
    /// Info.
    pub info: ModelInfo,
    /// Params and metrics.
    pub data: ModelData,
}

impl LoggedModel {
    /// Leaves out which runs made it and logged its metrics.
    pub fn hide_runs(&mut self) {
        self.info.source_run_id.clear();
        self.data.metrics.iter_mut().for_each(|metric| metric.run_id.clear());
    }
}

/// `POST logged-models`, `GET` and `PATCH logged-models/{model_id}`
#[derive(Serialize)]
pub struct OneModel {
    /// The model.
    pub model: LoggedModel,
}

/// `logged-models/search`
#[derive(Serialize)]
pub struct LoggedModels {
    /// The page, each a [`LoggedModel`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// A file or directory below an artifact location.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileInfo {
    /// Path below the location.
    pub path: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// In bytes; of files only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
}

/// `logged-models/{model_id}/artifacts/directories`
#[derive(Serialize)]
pub struct Artifacts {
    /// The location they are in.
    pub root_uri: String,
    /// The entries of the directory that was asked for, by path.
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
