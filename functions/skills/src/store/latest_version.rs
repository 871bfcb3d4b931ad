//! Determination of the latest version of a skill. It is the greatest active version or, if none is
//! active, the greatest version that is not deleted.

use futures::stream::TryStreamExt;
use key_schema::{Digest, rows};
use mlflow_api::Result;
use mlflow_api::skills::SkillStatus;
use table::Query;

use super::skill_document::{LatestVersion, StoredSkill};
use super::store::Store;
use super::version_row::StoredVersion;

/// Returns a sort key of a version that is not deleted. Among these versions, the latest one has
/// the greatest key.
const fn rank(latest: LatestVersion) -> (bool, u32) {
    (matches!(latest.status, SkillStatus::Active), latest.version)
}

impl LatestVersion {
    /// Returns the latest of some versions, or `None` if all of them are deleted.
    #[must_use]
    pub fn of_versions<'a>(versions: impl IntoIterator<Item = &'a StoredVersion>) -> Option<Self> {
        let candidates = versions.into_iter().map(StoredVersion::as_latest);
        candidates.filter(|latest| latest.status != SkillStatus::Deleted).max_by_key(|latest| rank(*latest))
    }
}

impl Store {
    /// Updates the latest version in a document, which is then to be written together with
    /// `changed`, a version that is new or has a new status. Takes no request, unless `changed` was
    /// the latest version and is not active. In this case, takes one request per MB of versions.
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

    /// Finds the latest of all versions of a skill. Uses `changed` instead of the row of that
    /// version, which still contains the previous status.
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
