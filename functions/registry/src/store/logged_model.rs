//! Logged models that versions of registered models are created from. The tracking function owns
//! their items.

use access::Granted;
use entities::ModelLocation;
use entities::attributes::{ARTIFACT_URI, SOURCE_RUN, STAGE};
use entities::documents::{LoggedModelDocument, appended_to_tag};
use mlflow_api::Result;
use mlflow_api::tracking::LifecycleStage;
use serde_json::json;
use table::{Item, Write};

use super::Store;

/// The tag that lists the versions that were created from a logged model (`MLFLOW_MODEL_VERSIONS`).
const MODEL_VERSIONS_TAG: &str = "mlflow.modelVersions";

/// The fields of a logged model that its version needs.
pub(super) struct LoggedModel {
    pub(super) artifact_location: String,
    pub(super) source_run: Option<String>,
}

impl Store {
    /// Reads a logged model. Returns `None` if no location is given, or if the model does not exist
    /// or is deleted. Takes one request.
    pub(super) async fn logged_model(&self, at: Option<&Granted<ModelLocation>>) -> Result<Option<LoggedModel>> {
        let Some(at) = at else { return Ok(None) };
        let item = self.table.get(&at.key()).await?;
        let is_active = |item: &Item| item.get(STAGE).unwrap_or_default() == LifecycleStage::Active;
        Ok(item.filter(is_active).map(|item| LoggedModel {
            artifact_location: item.get(ARTIFACT_URI).unwrap_or_default().to_owned(),
            source_run: item.get(SOURCE_RUN).filter(|run| !run.is_empty()).map(str::to_owned),
        }))
    }

    /// Returns the writes that add a version to the list in a logged model's tag, as part of the
    /// transaction that creates the version. Takes one or two requests.
    pub(super) async fn logged_model_with_version(
        &self,
        at: &Granted<ModelLocation>,
        name: &str,
        version: u32,
    ) -> Result<Vec<Write>> {
        let added = json!({ "name": name, "version": version });
        appended_to_tag(&self.table, &LoggedModelDocument { at }, MODEL_VERSIONS_TAG, &added).await
    }
}
