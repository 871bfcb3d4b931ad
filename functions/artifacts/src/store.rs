//! The store of the artifacts function, which looks up artifact locations.

use access::{Granted, Scope};
use artifact_store::{ArtifactPath, ArtifactStore, Chunks, too_large};
use entities::attributes::{ARTIFACT_URI, CONTENT_PATH, ID, LOCATION, STAGE};
use entities::{ModelLocation, RunLocation, WorkspaceIdentity, run_artifact_uri};
use key_schema::{Digest, Segment as _, rows};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{Error, ExperimentId, Result, RunId, SkillName, Workspace};
use service::BodyStream;
use table::{Item, Query, Table};

/// The store of this function. Cheap to clone. Each process has one.
#[derive(Clone)]
pub struct Store {
    table: Table,
    artifacts: ArtifactStore,
    max_upload_bytes: Option<u64>,
}

impl Store {
    /// Returns a store over the table and the server's artifacts, without a limit for uploads.
    #[must_use]
    pub fn new(table: Table, artifacts: ArtifactStore) -> Self {
        Self { table, artifacts, max_upload_bytes: None }
    }

    /// Sets the maximum size of uploads in bytes.
    #[must_use]
    pub fn with_max_upload_bytes(self, bytes: Option<u64>) -> Self {
        Self { max_upload_bytes: bytes, ..self }
    }

    /// Returns the server's artifacts.
    #[must_use]
    pub fn artifacts(&self) -> &ArtifactStore {
        &self.artifacts
    }

    /// Returns the artifact location of a run, even if it is deleted. Takes one request of two read
    /// units.
    pub async fn run_artifact_uri(&self, at: &Granted<RunLocation>) -> Result<String> {
        run_artifact_uri(&self.table, at).await?.ok_or_else(|| RunId::not_found(at.run.as_str()))
    }

    /// Returns the artifact location of a logged model that is not deleted. Takes one request.
    pub async fn logged_model_artifact_uri(&self, at: &Granted<ModelLocation>) -> Result<String> {
        let is_active = |model: &Item| model.get(STAGE).unwrap_or_default() == LifecycleStage::Active;
        let model = self.table.get(&at.key()).await?.filter(is_active);
        let model = model.ok_or_else(|| at.not_found())?;
        Ok(model.get(ARTIFACT_URI).unwrap_or_default().to_owned())
    }

    /// Returns the directory of the request's workspace below `workspaces/`. Takes one request, or
    /// none if the workspace's item was read during authorization.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the workspace does not exist.
    pub(crate) async fn directory(&self, scope: &Scope) -> Result<String> {
        let workspace = scope.workspace();
        if *workspace == Workspace::default() {
            return Ok(workspace.to_string());
        }
        if let Some(identity) = scope.authorizer_writes().workspace_identity() {
            return Ok(identity.directory().to_owned());
        }
        let identity = WorkspaceIdentity::find(&self.table, workspace).await?;
        Ok(identity.ok_or_else(|| workspace.not_found())?.directory().to_owned())
    }

    /// Checks whether the artifacts of an experiment are in the experiment's subdirectory of this
    /// directory. Takes one request.
    pub(crate) async fn keeps_artifacts_below(
        &self,
        experiment: &Granted<ExperimentId>,
        directory: &str,
    ) -> Result<bool> {
        let item = self.table.get(&rows::Experiment::key(experiment)).await?;
        let location = item.as_ref().and_then(|item| item.get(LOCATION));
        Ok(location == Some(&format!("mlflow-artifacts:/{directory}/{}", **experiment)))
    }

    /// Checks whether a path is in the uploaded content of a skill, as one of its versions records
    /// it. Takes one request to read the skill and, if the skill exists, one per MB of versions.
    pub(crate) async fn keeps_skill_content(
        &self,
        workspace: &Workspace,
        skill: &Granted<SkillName>,
        path: &ArtifactPath,
    ) -> Result<bool> {
        let item = self.table.get(&rows::Skill::key(&workspace.as_str().into(), skill)).await?;
        let Some(id) = item.as_ref().and_then(|item| item.get(ID)).and_then(Digest::read) else { return Ok(false) };
        let path = path.to_string();
        let is_in = |version: &Item| {
            let below = version.get(CONTENT_PATH).and_then(|directory| path.strip_prefix(directory));
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        Ok(self.table.query(Query::of(rows::SkillVersion::all(&id))).await?.iter().any(is_in))
    }

    /// Returns the maximum size of an artifact in bytes, if there is a limit.
    pub(crate) fn max_upload_bytes(&self) -> Option<u64> {
        self.max_upload_bytes
    }

    /// Returns the body of an upload, limited to the server's maximum size.
    pub(crate) fn upload_body(&self, body: BodyStream) -> Result<Chunks> {
        match self.max_upload_bytes {
            None => Ok(body.chunks),
            Some(longest) => {
                let refused = too_large(longest);
                limit_body(body, longest, refused)
            }
        }
    }
}

/// Limits the body of an upload to a number of bytes. If the client announces a longer body, the
/// upload is rejected immediately.
pub(crate) fn limit_body(body: BodyStream, longest: u64, refused: Error) -> Result<Chunks> {
    if body.length.is_some_and(|length| length > longest) {
        return Err(refused);
    }
    Ok(artifact_store::at_most(body.chunks, longest, refused))
}

impl service::DomainStore for Store {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }
}
