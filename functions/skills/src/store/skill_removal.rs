//! Removal of the versions of deleted skills, and of their uploaded content.

use key_schema::{Digest, rows};
use mlflow_api::{Result, Workspace};
use table::{Item, Query};

use super::store::Store;
use super::version_row::StoredVersion;

/// Number of rows that are deleted together, after the content that they refer to.
const ROWS_IN_BATCH: usize = 25;

impl Store {
    /// Removes the versions of all deleted skills of a workspace, including skills whose removal
    /// was interrupted. If a removal fails, continues with the others. Takes one request to list the skills. For each skill, takes two requests
    /// per MB of versions, one per 25 versions, one to delete the record of its deletion, and those
    /// that delete the files.
    pub(super) async fn finish_removals(&self, workspace: &Workspace) -> Result<()> {
        let removals = rows::SkillRemoval::all(&workspace.as_str().into());
        let mut failure = None;
        for row in self.table.query(Query::of(removals)).await? {
            if let Err(error) = self.finish_removal(&row).await {
                tracing::warn!(%error, "the versions of a deleted skill remain");
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Removes the versions of a deleted skill, and then the row that lists it.
    async fn finish_removal(&self, row: &Item) -> Result<()> {
        let unreadable = || entities::unreadable(row, "a deleted skill");
        let key = row.key().ok_or_else(unreadable)?;
        let removal = rows::SkillRemoval::parse(&key).ok_or_else(unreadable)?;
        self.remove_versions(removal.skill).await?;
        Ok(self.table.write_many(Vec::<Item>::new(), &[key]).await?)
    }

    /// Removes all versions of a skill. The files of uploaded content are removed before the rows,
    /// because only the rows contain the paths of the files. An interrupted removal continues with the
    /// rows that are left.
    async fn remove_versions(&self, skill: Digest) -> Result<()> {
        let rows = self.table.query(Query::of(rows::SkillVersion::all(&skill))).await?;
        for rows in rows.chunks(ROWS_IN_BATCH) {
            for row in rows {
                self.content_remove(&StoredVersion::of(row.clone())?).await?;
            }
            let keys: Vec<_> = rows.iter().filter_map(Item::key).collect();
            self.table.write_many(Vec::<Item>::new(), &keys).await?;
        }
        Ok(())
    }
}
