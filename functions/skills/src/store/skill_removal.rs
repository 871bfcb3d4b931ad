//! Removal of the versions of deleted skills, and of their uploaded content.

use key_schema::{Digest, rows};
use mlflow_api::{Result, Workspace};
use table::{Item, Query};

use super::store::Store;
use super::version_row::StoredVersion;

impl Store {
    /// Removes the versions of all deleted skills of a workspace, including skills whose removal
    /// was interrupted. Takes one request to list the skills. For each skill, takes two requests
    /// per MB of versions, one per 25 versions, one to delete the record of its deletion, and those
    /// that delete the files.
    pub(super) async fn finish_removals(&self, workspace: &Workspace) -> Result<()> {
        let removals = rows::SkillRemoval::all(&workspace.as_str().into());
        for row in self.table.query(Query::of(removals)).await? {
            let Some(key) = row.key() else { continue };
            let parsed = rows::SkillRemoval::parse(&key);
            let removal = parsed.ok_or_else(|| entities::unreadable(&row, "a deleted skill"))?;
            self.remove_versions(removal.skill).await?;
            self.table.write_many(Vec::<Item>::new(), &[key]).await?;
        }
        Ok(())
    }

    /// Removes all versions of a skill. The files of uploaded content are removed before the rows,
    /// because only the rows contain the paths of the files.
    async fn remove_versions(&self, skill: Digest) -> Result<()> {
        for row in self.table.query(Query::of(rows::SkillVersion::all(&skill))).await? {
            self.content_remove(&StoredVersion::of(row)?).await?;
        }
        self.table.delete_range(rows::SkillVersion::partition(&skill)).await?;
        Ok(())
    }
}
