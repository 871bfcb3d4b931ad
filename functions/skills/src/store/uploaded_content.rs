//! Storage of uploaded content.

use artifact_store::{ArtifactPath, Location};
use bytes::Bytes;
use entities::WorkspaceIdentity;
use futures::stream;
use futures::stream::StreamExt;
use mlflow_api::{Error, ErrorCode, Result, SkillName, Workspace};
use retention::skill_content::{ContentDirectory, ContentRemoval, SkillUpload};

use super::concurrent_writes::complete_writes;
use super::store::Store;
use crate::content::ContentFile;

/// Maximum number of files that are written concurrently.
const CONCURRENCY: usize = 32;

impl Store {
    /// Returns the location of the artifact root.
    ///
    /// # Errors
    /// Fails with `NOT_IMPLEMENTED` if the server does not store artifacts.
    fn content_root(&self) -> Result<Location> {
        self.artifacts.root().map_err(|_| {
            Error::new(
                ErrorCode::NotImplemented,
                "This MLflow server does not serve artifacts, so skill content cannot be stored in MLflow artifact storage. \
                 Register the skill from a git, oci, or zip source, or start the server with --serve-artifacts.",
            )
        })
    }

    /// Checks that the server stores artifacts.
    ///
    /// # Errors
    /// Fails with `NOT_IMPLEMENTED` if it does not.
    pub(crate) fn check_serves_artifacts(&self) -> Result<()> {
        self.content_root().map(drop)
    }

    /// Stores files in a new directory. Takes one request to record the upload, and one per file.
    /// Outside of the default workspace, takes one more to look up the directory of the workspace,
    /// unless the workspace has already been read to authorize the request.
    pub(super) async fn content_write(&self, name: &SkillName, files: Vec<ContentFile>) -> Result<SkillUpload> {
        let root = self.content_root()?;
        // All paths are checked before the first file is written.
        let checked = files.into_iter().map(|file| Ok((ArtifactPath::of_new_file(&file.path)?, file.content)));
        let files = checked.collect::<Result<Vec<_>>>()?;
        let directory = ContentDirectory::new(name, self.workspace_directory().await?.as_deref());
        let upload = SkillUpload::begin(&self.table, directory).await?;
        let location = &root.below(upload.directory().path());
        let writes = files.into_iter().map(|(path, content): (ArtifactPath, Vec<u8>)| async move {
            let chunk = stream::once(std::future::ready(Ok::<_, Error>(Bytes::from(content))));
            location.write(&path, chunk.boxed()).await.map(drop)
        });
        if let Err(error) = complete_writes(writes, CONCURRENCY).await {
            self.content_abandon(&upload).await;
            return Err(error);
        }
        Ok(upload)
    }

    /// Returns the directory of the request's workspace below `workspaces/`, or `None` for the
    /// default workspace.
    async fn workspace_directory(&self) -> Result<Option<String>> {
        let workspace = self.authorizer_writes.workspace();
        if workspace == Workspace::default() {
            return Ok(None);
        }
        if let Some(identity) = self.authorizer_writes.workspace_identity() {
            return Ok(Some(identity.directory().to_owned()));
        }
        let identity = WorkspaceIdentity::find(&self.table, &workspace).await?;
        Ok(Some(identity.ok_or_else(|| workspace.not_found())?.directory().to_owned()))
    }

    /// Deletes the files of an upload after an error, unless its version exists nevertheless.
    pub(super) async fn content_abandon(&self, upload: &SkillUpload) {
        ContentRemoval::new(&self.table, &self.artifacts).abandon(upload).await;
    }
}
