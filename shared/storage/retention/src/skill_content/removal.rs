//! Deletion of uploaded content.

use artifact_store::{ArtifactPath, ArtifactStore};
use entities::attributes::{ABANDONED, CONTENT_PATH, CREATED, EXPIRES, SOURCE_TYPE, SUBPATH};
use entities::{now_ms, unreadable};
use key_schema::{Digest, Key, rows};
use mlflow_api::Result;
use mlflow_api::skills::SourceType;
use table::{Condition, Failure, Item, Query, Table, Update, number};

use super::directory::content_path;
use super::upload::{MAX_UPLOAD_AGE, SkillUpload};

/// Number of rows that are deleted together, after the content that they refer to.
const ROWS_IN_BATCH: usize = 25;

/// Deletes uploaded content that no version needs: the content of deleted skills, and the files of
/// uploads whose version was never registered. Every method is idempotent, and several processes may
/// call it concurrently.
#[derive(Clone, Copy, Debug)]
pub struct ContentRemoval<'a> {
    table: &'a Table,
    artifacts: &'a ArtifactStore,
    leaves_files: bool,
}

impl<'a> ContentRemoval<'a> {
    /// Creates a removal for a table, and for the artifacts that this server stores.
    #[must_use]
    pub fn new(table: &'a Table, artifacts: &'a ArtifactStore) -> Self {
        Self { table, artifacts, leaves_files: false }
    }

    /// Sets whether rows are also deleted if this server cannot access the files that they refer to.
    /// The files are left in place. Otherwise, the rows are kept, and the methods fail.
    #[must_use]
    pub fn leaving_files(self, leaves_files: bool) -> Self {
        Self { leaves_files, ..self }
    }

    /// Deletes the versions of a deleted skill with their content, and then the row that lists the
    /// skill. Takes one request per MB of versions, one per 25 versions, one to delete the row, and
    /// those that delete the files.
    ///
    /// # Errors
    /// Returns failures of the table and of the artifact store.
    pub async fn finish_skill(self, skill: Digest) -> Result<()> {
        let versions = self.table.query(Query::of(rows::SkillVersion::all(&skill))).await?;
        for versions in versions.chunks(ROWS_IN_BATCH) {
            // The files are deleted before the rows, because only the rows contain their paths.
            self.delete_content_of(versions).await?;
            let keys: Vec<_> = versions.iter().filter_map(Item::key).collect();
            self.table.write_many(Vec::new(), &keys).await?;
        }
        Ok(self.table.write_many(Vec::new(), &[rows::SkillRemoval::key(&skill)]).await?)
    }

    /// Deletes the content of all versions of a skill, but not their rows. Takes one request per MB
    /// of versions, and those that delete the files.
    ///
    /// # Errors
    /// Returns failures of the table and of the artifact store.
    pub async fn delete_content(self, skill: Digest) -> Result<()> {
        let versions = self.table.query(Query::of(rows::SkillVersion::all(&skill))).await?;
        self.delete_content_of(&versions).await
    }

    async fn delete_content_of(self, versions: &[Item]) -> Result<()> {
        for version in versions {
            let is_uploaded = version.get(SOURCE_TYPE) == Some(SourceType::Mlflow.name());
            let path = version.get(CONTENT_PATH).filter(|_| is_uploaded && version.get(SUBPATH).is_none());
            if let Some(path) = path.and_then(content_path) {
                self.delete_files(&path).await?;
            }
        }
        Ok(())
    }

    /// Deletes the files of an upload after an error, unless its version has been registered
    /// nevertheless: the outcome of the registration may be unknown. If this fails, only logs the
    /// error. The row of the upload remains, so that its directory is deleted again later. Until
    /// then, writes that have failed for the server may still take effect.
    pub async fn abandon(self, upload: &SkillUpload) {
        let path = upload.directory().path();
        let abandoned = async {
            if self.claim(&upload.key).await? {
                self.delete_files(path).await?;
            }
            Ok::<_, mlflow_api::Error>(())
        };
        if let Err(error) = abandoned.await {
            tracing::warn!(%error, %path, "content of a skill that was not registered is deleted later");
        }
    }

    /// Returns the rows of uploads that have not been completed within [`MAX_UPLOAD_AGE`]. Takes one
    /// request.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn abandoned_uploads(self) -> Result<Vec<Item>> {
        let before = now_ms().saturating_sub(i64::try_from(MAX_UPLOAD_AGE.as_millis()).unwrap_or(i64::MAX));
        let mut uploads = self.table.query(Query::of(rows::SkillUpload::all())).await?;
        let is_abandoned = |upload: &Item| upload.get(CREATED).is_none_or(|created| created < before);
        uploads.retain(|upload| upload.get(EXPIRES).is_none() && is_abandoned(upload));
        Ok(uploads)
    }

    /// Deletes the files of an upload and then its row, unless its version has been registered in
    /// the meantime. Takes two requests, in addition to those that delete the files.
    ///
    /// # Errors
    /// Returns failures of the table and of the artifact store.
    pub async fn finish_upload(self, row: &Item) -> Result<()> {
        let unreadable = || unreadable(row, "an upload of a skill");
        let key = row.key().ok_or_else(unreadable)?;
        let path = row.get(CONTENT_PATH).and_then(content_path).ok_or_else(unreadable)?;
        if !self.claim(&key).await? {
            return Ok(());
        }
        self.delete_files(&path).await?;
        Ok(self.table.write_many(Vec::new(), &[key]).await?)
    }

    /// Prevents the registration of an upload's version. Returns `false` if the version has already
    /// been registered, or if the row has been deleted with the files. Takes one request.
    async fn claim(self, upload: &Key) -> Result<bool> {
        let is_not_completed = Condition::Missing(EXPIRES.into());
        let claim = Update::new(upload.clone()).only_if(is_not_completed).set(ABANDONED, number(now_ms()));
        match self.table.apply(&claim).await {
            Ok(()) => Ok(true),
            Err(Failure::Refused { .. }) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn delete_files(self, path: &ArtifactPath) -> Result<()> {
        match self.artifacts.root() {
            Ok(root) => root.delete(path).await,
            Err(_) if self.leaves_files => Ok(()),
            Err(error) => Err(error),
        }
    }
}
