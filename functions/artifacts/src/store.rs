//! Where artifacts are.

use access::{Granted, Scope};
use artifact_store::{Artifacts, Chunks, too_large};
use entities::attributes::{ARTIFACT_URI, LOCATION, STAGE};
use entities::{ModelLocation, RunLocation, WorkspaceIdentity, run_artifact_uri};
use key_schema::rows;
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{Error, ExperimentId, Result, RunId, Workspace};
use service::BodyStream;
use table::{Item, Table};

/// The store of this function. Cheap to clone; one a process.
#[derive(Clone)]
pub struct Store {
    table: Table,
    artifacts: Artifacts,
    longest: Option<u64>,
}

impl Store {
    /// A store over the table and the artifacts of the server. Uploads have no limit.
    #[must_use]
    pub fn new(table: Table, artifacts: Artifacts) -> Self {
        Self { table, artifacts, longest: None }
    }

    /// The same store, which takes uploads of at most so many bytes.
    #[must_use]
    pub fn taking_at_most(self, bytes: Option<u64>) -> Self {
        Self { longest: bytes, ..self }
    }

    /// The artifacts of the server.
    #[must_use]
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    /// Where a run keeps its artifacts, a deleted one too. One request of two read units.
    pub async fn run_artifact_uri(&self, at: &Granted<RunLocation>) -> Result<String> {
        run_artifact_uri(&self.table, at).await?.ok_or_else(|| RunId::not_found(at.run.as_str()))
    }

    /// Where a logged model that is not deleted keeps its artifacts. One request.
    pub async fn logged_model_artifact_uri(&self, at: &Granted<ModelLocation>) -> Result<String> {
        let is_active = |model: &Item| model.get(STAGE).unwrap_or_default() == LifecycleStage::Active;
        let model = self.table.get(&at.key()).await?.filter(is_active);
        let model = model.ok_or_else(|| at.not_found())?;
        Ok(model.get(ARTIFACT_URI).unwrap_or_default().to_owned())
    }

    /// The directory of the request's workspace below `workspaces/`. One request, or none if its item
    /// was read with the guards.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, where there is no such workspace.
    pub(crate) async fn directory(&self, scope: &Scope) -> Result<String> {
        let workspace = scope.workspace();
        if *workspace == Workspace::default() {
            return Ok(workspace.to_string());
        }
        if let Some(identity) = scope.along().within() {
            return Ok(identity.directory().to_owned());
        }
        let identity = WorkspaceIdentity::find(&self.table, workspace).await?;
        Ok(identity.ok_or_else(|| workspace.not_found())?.directory().to_owned())
    }

    /// Whether an experiment keeps its artifacts in its directory below this one. One request.
    pub(crate) async fn keeps_artifacts_below(
        &self,
        experiment: &Granted<ExperimentId>,
        directory: &str,
    ) -> Result<bool> {
        let item = self.table.get(&rows::Experiment::key(experiment)).await?;
        let location = item.as_ref().and_then(|item| item.get(LOCATION));
        Ok(location == Some(&format!("mlflow-artifacts:/{directory}/{}", **experiment)))
    }

    /// Bytes of the longest artifact that this server takes, where there is a limit.
    pub(crate) fn longest(&self) -> Option<u64> {
        self.longest
    }

    /// The bytes of an upload, no more than this server takes.
    pub(crate) fn taken(&self, body: BodyStream) -> Result<Chunks> {
        match self.longest {
            None => Ok(body.chunks),
            Some(longest) => {
                let refused = too_large(longest);
                limited(body, longest, refused)
            }
        }
    }
}

/// The bytes of an upload, refused at once where the client says that there are too many.
pub(crate) fn limited(body: BodyStream, longest: u64, refused: Error) -> Result<Chunks> {
    if body.length.is_some_and(|length| length > longest) {
        return Err(refused);
    }
    Ok(artifact_store::at_most(body.chunks, longest, refused))
}

impl service::Store for Store {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }
}
