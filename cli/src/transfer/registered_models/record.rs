//! Records of registered models and their versions.

use std::collections::BTreeMap;

use mlflow_api::Workspace;
use mlflow_api::registry::ModelStage;
use serde::Serialize;

/// A registered model or prompt of an MLflow database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RegisteredModelRecord {
    /// Workspace that the model belongs to.
    pub(super) workspace: Workspace,
    /// Name of the model.
    pub(super) name: String,
    /// Creation time, in ms since 1970.
    pub(super) created: i64,
    /// Time of the last change, in ms since 1970.
    pub(super) updated: i64,
    /// The description. May be empty.
    pub(super) description: String,
    /// Tags, sorted by key.
    pub(super) tags: Vec<(String, String)>,
    /// The version of each alias.
    pub(super) aliases: BTreeMap<String, u32>,
    /// The highest version number that the model has ever had.
    pub(super) last_version: u32,
    /// Fingerprints of the versions, by version number.
    pub(super) versions: BTreeMap<u32, String>,
}

/// A version of a registered model of an MLflow database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct VersionRecord {
    pub(super) number: u32,
    /// Creation time, in ms since 1970.
    pub(super) created: i64,
    /// Time of the last change, in ms since 1970.
    pub(super) updated: i64,
    /// Stage of the version.
    #[serde(serialize_with = "name_of_stage")]
    pub(super) stage: ModelStage,
    /// Description of the version.
    pub(super) description: Option<String>,
    /// The source, as given by the client.
    pub(super) source: String,
    /// Location of its artifacts.
    pub(super) storage: String,
    /// Id of the run that produced the version.
    pub(super) run: Option<String>,
    /// A link to the run that produced the version.
    pub(super) run_link: Option<String>,
    /// Tags, sorted by key.
    pub(super) tags: Vec<(String, String)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn name_of_stage<S: serde::Serializer>(stage: &ModelStage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(stage.name())
}
