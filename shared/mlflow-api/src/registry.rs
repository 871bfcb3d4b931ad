//! Messages of the model registry: registered models, their versions, aliases, stages (`model_registry.proto`).

pub use model::ModelStage;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Error;
use crate::tracking::KeyValue;

/// The tag that makes a registered model a prompt, and a version a prompt's.
pub const IS_PROMPT_TAG: &str = "mlflow.prompt.is_prompt";
/// The tag that holds a prompt's text.
pub const PROMPT_TEXT_TAG: &str = "mlflow.prompt.text";
/// The source that clients send for a prompt's version, since it has none
/// (`_PROMPT_SOURCE_PLACEHOLDERS`).
pub const PROMPT_SOURCES: [&str; 2] = ["dummy-source", "prompt-template"];
/// The alias of the greatest version, in any case.
pub const LATEST_ALIAS: &str = "latest";

/// The number of a version that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionNumber {
    /// The number; `None` for an integer that no version has.
    pub number: Option<u32>,
    /// The integer as MLflow prints it.
    pub printed: String,
}

impl VersionNumber {
    /// The error for a version of `model` that is not there.
    #[must_use]
    pub fn not_found(&self, model: &str) -> Error {
        Error::not_found(format!("Model Version (name={model}, version={}) not found", self.printed))
    }
}

impl From<u32> for VersionNumber {
    fn from(number: u32) -> Self {
        Self { number: Some(number), printed: number.to_string() }
    }
}

/// A registered model, or a prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegisteredModel {
    /// Name.
    pub name: String,
    /// In ms.
    pub creation_timestamp: i64,
    /// In ms.
    pub last_updated_timestamp: i64,
    /// Left out where it is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The greatest version of each stage, the least first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latest_versions: Vec<ModelVersion>,
    /// Tags, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<KeyValue>,
    /// Aliases, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<ModelAlias>,
}

/// An alias of a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ModelAlias {
    /// Its name.
    pub alias: String,
    /// The version that it names.
    pub version: String,
}

/// A version of a registered model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelVersion {
    /// Name of the model.
    pub name: String,
    /// Decimal integer.
    pub version: String,
    /// In ms.
    pub creation_timestamp: i64,
    /// In ms.
    pub last_updated_timestamp: i64,
    /// Stage.
    pub current_stage: ModelStage,
    /// Left out where there is none; an empty one is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where the model is.
    pub source: String,
    /// The run that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Always `READY`.
    pub status: &'static str,
    /// Tags, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<KeyValue>,
    /// Link to the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_link: Option<String>,
    /// Aliases, by name. The latest versions of a model do not show them, as in MLflow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

impl RegisteredModel {
    /// Leaves out which runs made its versions.
    pub fn hide_runs(&mut self) {
        self.latest_versions.iter_mut().for_each(ModelVersion::hide_run);
    }
}

impl ModelVersion {
    /// Leaves out which run made it.
    pub fn hide_run(&mut self) {
        (self.run_id, self.run_link) = (None, None);
    }
}

/// `registered-models/create`, `get`, `update`, `rename`
#[derive(Serialize)]
pub struct OneModel {
    /// The model.
    pub registered_model: RegisteredModel,
}

/// `registered-models/search`
#[derive(Debug, Serialize)]
pub struct Models {
    /// The page, each a [`RegisteredModel`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registered_models: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// `model-versions/create`, `get`, `update`, `transition-stage`, `GET registered-models/alias`
#[derive(Serialize)]
pub struct OneVersion {
    /// The version.
    pub model_version: ModelVersion,
}

/// `model-versions/search`
#[derive(Debug, Serialize)]
pub struct FoundVersions {
    /// The page, each a [`ModelVersion`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_versions: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// `registered-models/get-latest-versions`
#[derive(Debug, Serialize)]
pub struct Versions {
    /// The versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_versions: Vec<ModelVersion>,
}

/// `model-versions/get-download-uri`
#[derive(Serialize)]
pub struct DownloadUri {
    /// Where the model is.
    pub artifact_uri: String,
}
