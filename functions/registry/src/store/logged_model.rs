//! Logged models that versions of registered models are made from. Their items are the tracking function's.

use access::Granted;
use documents::{LoggedModelDocument, appended_to_tag};
use entities::ModelLocation;
use entities::attributes::{ARTIFACT_URI, SOURCE_RUN, STAGE};
use mlflow_api::Result;
use mlflow_api::tracking::LifecycleStage;
use serde_json::json;
use table::{Item, Write};

use super::Store;

/// The tag that lists the versions that were made from a logged model (`MLFLOW_MODEL_VERSIONS`).
const MODEL_VERSIONS_TAG: &str = "mlflow.modelVersions";

/// The fields of its logged model that a version needs.
pub(super) struct LoggedModel {
    pub(super) artifact_location: String,
    pub(super) source_run: Option<String>,
}

impl Store {
    /// A logged model, if there is one here that is not deleted. One request.
    pub(super) async fn logged_model(&self, at: Option<&Granted<ModelLocation>>) -> Result<Option<LoggedModel>> {
        let Some(at) = at else { return Ok(None) };
        let item = self.table.get(&at.key()).await?;
        let is_active = |item: &Item| item.get(STAGE).unwrap_or_default() == LifecycleStage::Active;
        Ok(item.filter(is_active).map(|item| LoggedModel {
            artifact_location: item.get(ARTIFACT_URI).unwrap_or_default().to_owned(),
            source_run: item.get(SOURCE_RUN).filter(|run| !run.is_empty()).map(str::to_owned),
        }))
    }

    /// The writes that add a version to the list in a logged model's tag, for the transaction that makes the version. One request, or
    /// two.
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
