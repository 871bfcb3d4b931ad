//! Storage of uploaded content. The files of each upload are in a directory of their own below the
//! artifact root.

use artifact_store::{ArtifactPath, Location};
use bytes::Bytes;
use entities::WorkspaceIdentity;
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::skills::SourceType;
use mlflow_api::{Error, ErrorCode, Result, SkillName, Workspace};
use rand::RngExt;

use super::store::Store;
use super::version_row::StoredVersion;
use crate::content::ContentFile;

/// Maximum number of files that are written concurrently.
const CONCURRENCY: usize = 32;
/// Directory that contains all uploaded content of a workspace.
const SKILLS_DIRECTORY: &str = "skills";
/// Directory that contains the directories of workspaces.
const WORKSPACES_DIRECTORY: &str = "workspaces";

/// The location of the files of an upload.
pub(super) struct StoredContent {
    /// Directory below the artifact root.
    pub(super) path: ArtifactPath,
    /// URI for clients. In contrast to `path`, it does not contain the directory of the workspace.
    pub(super) uri: String,
}

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

    /// Stores files in a new directory. Takes one request per file. Outside of the default
    /// workspace, takes one more to look up the directory of the workspace, unless the workspace
    /// has already been read to authorize the request.
    pub(super) async fn content_write(&self, name: &SkillName, files: Vec<ContentFile>) -> Result<StoredContent> {
        let root = self.content_root()?;
        // All paths are checked before the first file is written.
        let checked = files.into_iter().map(|file| Ok((ArtifactPath::of_new_file(&file.path)?, file.content)));
        let files = checked.collect::<Result<Vec<_>>>()?;
        let token = format!("{:032x}", rand::rng().random::<u128>());
        let relative = [&[SKILLS_DIRECTORY.to_owned()], parts_of(name).as_slice(), &[token]].concat();
        let uri = format!("mlflow-artifacts:/{}", relative.join("/"));
        let relative: Vec<_> = relative.iter().map(String::as_str).collect();
        let path = match self.workspace_directory().await? {
            None => ArtifactPath::default().below(&relative),
            Some(directory) => ArtifactPath::default().below(&relative).below(&[WORKSPACES_DIRECTORY, &directory]),
        };
        let stored = StoredContent { path, uri };
        let directory = &root.below(&stored.path);
        let write = |(path, content): (ArtifactPath, Vec<u8>)| async move {
            let chunk = stream::once(std::future::ready(Ok::<_, Error>(Bytes::from(content))));
            directory.write(&path, chunk.boxed()).await.map(drop)
        };
        let written = stream::iter(files.into_iter().map(write)).buffer_unordered(CONCURRENCY);
        if let Err(error) = written.try_collect::<()>().await {
            self.content_remove_unused(&stored).await;
            return Err(error);
        }
        Ok(stored)
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

    /// Deletes content that no version refers to. If this fails, only logs the error, because files
    /// that are left behind do no harm.
    pub(super) async fn content_remove_unused(&self, content: &StoredContent) {
        let removed = async { self.content_root()?.delete(&content.path).await };
        if let Err(error) = removed.await {
            tracing::warn!(%error, path = %content.path, "content of a skill that was not registered remains");
        }
    }

    /// Deletes the content of a version if it was uploaded. Takes no request for other versions. If
    /// the server no longer stores artifacts, logs that the content remains.
    pub(super) async fn content_remove(&self, version: &StoredVersion) -> Result<()> {
        let is_stored = version.source.kind == SourceType::Mlflow && version.source.subpath.is_none();
        let Some(path) = version.content_path.as_deref().filter(|_| is_stored).and_then(owned_path) else {
            return Ok(());
        };
        match self.content_root() {
            Ok(root) => root.delete(&path).await,
            Err(error) => {
                tracing::warn!(%error, %path, "content of a deleted skill remains");
                Ok(())
            }
        }
    }
}

/// Returns the names of the directories of a skill: that of the organization, if the skill has one,
/// and that of the skill within it.
fn parts_of(name: &SkillName) -> Vec<String> {
    let organization = Some(name.organization()).filter(|organization| !organization.is_empty());
    organization.map(|organization| format!("@{organization}")).into_iter().chain([name.name().to_owned()]).collect()
}

/// Parses the stored path of uploaded content. Returns `None` unless it has the form of the paths
/// that the server writes, which is a directory named by a token in the directory of a skill, so
/// that no other files are ever deleted.
fn owned_path(stored: &str) -> Option<ArtifactPath> {
    let path = ArtifactPath::parse(stored).ok()?;
    let parts: Vec<_> = path.parts().iter().map(String::as_str).collect();
    let below = match parts.as_slice() {
        [WORKSPACES_DIRECTORY, _, rest @ ..] => rest,
        all => all,
    };
    let is_token = |token: &str| token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_owned = match below {
        [SKILLS_DIRECTORY, name, token] => SkillName::parse(name).is_ok() && is_token(token),
        [SKILLS_DIRECTORY, organization, name, token] => {
            SkillName::parse(&format!("{organization}/{name}")).is_ok() && is_token(token)
        }
        _ => false,
    };
    is_owned.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_tokens_are_deleted() {
        let token = "0123456789abcdef".repeat(2);
        for path in ["skills/a", "skills/@acme/a", "workspaces/team/skills/a", "workspaces/team.1/skills/@acme/a"] {
            assert!(owned_path(&format!("{path}/{token}")).is_some(), "{path}");
            assert!(owned_path(path).is_none(), "{path}");
            assert!(owned_path(&format!("{path}/{token}/x")).is_none(), "{path}");
        }
        for path in ["", "skills", "1/skills/a", "skills/A", "skills/../1"] {
            assert!(owned_path(&format!("{path}/{token}")).is_none(), "{path}");
        }
    }
}
