//! Messages of the model registry: registered models, their versions, aliases and stages
//! (`model_registry.proto`).

pub use model::ModelStage;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Error;
use crate::tracking::KeyValue;

/// The tag that marks a registered model as a prompt, and a version as a version of a prompt.
pub const IS_PROMPT_TAG: &str = "mlflow.prompt.is_prompt";
/// The tag that contains the text of a prompt.
pub const PROMPT_TEXT_TAG: &str = "mlflow.prompt.text";
/// The tag that contains the type of a prompt.
pub const PROMPT_TYPE_TAG: &str = "_mlflow_prompt_type";
/// The sources that clients send for versions of prompts, which have no source
/// (`_PROMPT_SOURCE_PLACEHOLDERS`).
pub const PROMPT_SOURCES: [&str; 2] = ["dummy-source", "prompt-template"];
/// The alias of the highest version. It is case-insensitive.
pub const LATEST_ALIAS: &str = "latest";

/// The version number in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionNumber {
    /// The number, or `None` for an integer that cannot be a version number.
    pub number: Option<u32>,
    /// The integer, as MLflow prints it.
    pub printed: String,
}

impl VersionNumber {
    /// Returns the error for a version of `model` that does not exist.
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
    /// The name.
    pub name: String,
    /// The creation time, in ms.
    pub creation_timestamp: i64,
    /// The time of the last change, in ms.
    pub last_updated_timestamp: i64,
    /// The description. Omitted if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The highest version of each stage, in ascending order of their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latest_versions: Vec<ModelVersion>,
    /// The tags, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<KeyValue>,
    /// The aliases, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<ModelAlias>,
}

/// An alias of a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ModelAlias {
    /// The alias.
    pub alias: String,
    /// The version that it refers to.
    pub version: String,
}

/// A version of a registered model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelVersion {
    /// The name of the model.
    pub name: String,
    /// The version number, as a decimal integer.
    pub version: String,
    /// The creation time, in ms.
    pub creation_timestamp: i64,
    /// The time of the last change, in ms.
    pub last_updated_timestamp: i64,
    /// The stage.
    pub current_stage: ModelStage,
    /// The description. Omitted if it is not set, but not if it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The location of the model. Empty, and omitted, if the caller may not see it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The run that created the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The status, which is always `READY`.
    pub status: &'static str,
    /// The tags, by key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<KeyValue>,
    /// A link to the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_link: Option<String>,
    /// Aliases, by name. The latest versions of a model do not show them, as in MLflow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

impl RegisteredModel {
    /// Removes the ids of the runs that created the versions, for callers who may not read runs.
    pub fn hide_runs(&mut self) {
        self.latest_versions.iter_mut().for_each(ModelVersion::hide_run);
    }
}

impl ModelVersion {
    /// Removes the id of the run that created the version, for callers who may not read runs. Also
    /// removes the source if it contains this id, or has a part that looks like the id of a run.
    pub fn hide_run(&mut self) {
        let run = self.run_id.take().filter(|run| !run.is_empty());
        if run.is_some_and(|run| self.source.contains(&run)) || self.source.split('/').any(is_run) {
            self.source.clear();
        }
        self.run_link = None;
    }
}

/// Checks whether a text looks like the id of a run, as MLflow creates them.
fn is_run(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The response of `registered-models/create`, `get`, `update` and `rename`.
#[derive(Serialize)]
pub struct RegisteredModelResponse {
    /// The model.
    pub registered_model: RegisteredModel,
}

/// The response of `registered-models/search`.
#[derive(Debug, Serialize)]
pub struct SearchModelsResponse {
    /// The items of the page. Each is a [`RegisteredModel`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registered_models: Vec<Box<RawValue>>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// The response of `model-versions/create`, `get`, `update` and `transition-stage`, and of
/// `GET registered-models/alias`.
#[derive(Serialize)]
pub struct ModelVersionResponse {
    /// The version.
    pub model_version: ModelVersion,
}

/// The response of `model-versions/search`.
#[derive(Debug, Serialize)]
pub struct SearchVersionsResponse {
    /// The items of the page. Each is a [`ModelVersion`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_versions: Vec<Box<RawValue>>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// The response of `registered-models/get-latest-versions`.
#[derive(Debug, Serialize)]
pub struct LatestVersionsResponse {
    /// The versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_versions: Vec<ModelVersion>,
}

/// The response of `model-versions/get-download-uri`.
#[derive(Serialize)]
pub struct DownloadUriResponse {
    /// The location of the model.
    pub artifact_uri: String,
}
