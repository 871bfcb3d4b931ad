//! The latest version of a skill: the greatest active one, or else the greatest one that is not
//! deleted.

use futures::stream::TryStreamExt;
use key_schema::{Digest, rows};
use mlflow_api::Result;
use mlflow_api::skills::SkillStatus;
use table::Query;

use super::skill_document::{LatestVersion, StoredSkill};
use super::store::Store;
use super::version_row::StoredVersion;

/// Returns a key by which the latest version is the greatest one.
const fn rank(latest: LatestVersion) -> (bool, u32) {
    (matches!(latest.status, SkillStatus::Active), latest.version)
}

impl Store {
    /// Updates the latest version in a document after a version was created, or its status was
    /// changed. Takes no request, unless the version was the latest one and may no longer be. Then
    /// it takes one request per MB of versions.
    pub(super) async fn update_latest(&self, skill: &mut StoredSkill, changed: &StoredVersion) -> Result<()> {
        let candidate = changed.as_latest();
        let is_same = skill.latest.as_ref().is_some_and(|latest| latest.version == changed.version);
        if is_same && changed.status != SkillStatus::Active {
            skill.latest = self.latest_of(skill.id, changed).await?;
        } else if changed.status != SkillStatus::Deleted
            && (is_same || skill.latest.is_none_or(|latest| rank(candidate) > rank(latest)))
        {
            skill.latest = Some(candidate);
        }
        Ok(())
    }

    /// Finds the latest of all versions of a skill. `changed` replaces the version in the table.
    async fn latest_of(&self, skill: u64, changed: &StoredVersion) -> Result<Option<LatestVersion>> {
        let mut latest = Some(changed.as_latest()).filter(|latest| latest.status != SkillStatus::Deleted);
        let versions = Query::of(rows::SkillVersion::all(&Digest(skill)));
        let mut pages = std::pin::pin!(entities::listing::pages(&self.table, versions));
        while let Some(items) = pages.try_next().await? {
            for item in items {
                let version = StoredVersion::of(item)?.as_latest();
                if version.status == SkillStatus::Deleted || version.version == changed.version {
                    continue;
                }
                if latest.is_none_or(|latest| rank(version) > rank(latest)) {
                    latest = Some(version);
                }
            }
        }
        Ok(latest)
    }
}
