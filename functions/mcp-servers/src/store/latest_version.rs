//! Determination of the latest version of a server. It is the greatest active version or, if none
//! is active, the greatest version that is not deleted.

use std::cmp::Ordering;

use futures::stream::TryStreamExt;
use key_schema::{Digest, rows};
use mlflow_api::mcp_servers::McpStatus;
use mlflow_api::{McpVersion as Version, Result};
use table::Query;

use super::server_document::{LATEST_ALIAS, LatestVersion, StoredServer};
use super::store::Store;
use super::version_row::StoredVersion;

/// The values that decide which version is the latest one. Versions that differ only in build
/// metadata have the same precedence. Among these, the newest one is the latest.
#[derive(Clone, Debug)]
pub(super) struct LatestCandidate<'a> {
    pub(super) version: &'a Version,
    pub(super) status: McpStatus,
    pub(super) created: i64,
}

impl<'a> From<&'a StoredVersion> for LatestCandidate<'a> {
    fn from(stored: &'a StoredVersion) -> Self {
        Self { version: &stored.version, status: stored.status, created: stored.created }
    }
}

impl<'a> From<&'a LatestVersion> for LatestCandidate<'a> {
    fn from(latest: &'a LatestVersion) -> Self {
        Self { version: &latest.version, status: latest.status, created: latest.created }
    }
}

impl LatestCandidate<'_> {
    /// Compares two versions that are not deleted. The latest one is the greatest.
    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        let is_active = |candidate: &Self| candidate.status == McpStatus::Active;
        is_active(self)
            .cmp(&is_active(other))
            .then_with(|| self.version.cmp_precedence(other.version))
            .then_with(|| self.created.cmp(&other.created))
            .then_with(|| self.version.as_str().cmp(other.version.as_str()))
    }
}

impl StoredVersion {
    /// Returns whether this version takes precedence over `other` as the latest version of their
    /// server. Any version that is not deleted takes precedence over `None`. A deleted version
    /// never takes precedence.
    #[must_use]
    pub fn is_later_than(&self, other: Option<&Self>) -> bool {
        let is_later = |other: &Self| LatestCandidate::from(self).cmp(&LatestCandidate::from(other)).is_gt();
        self.status != McpStatus::Deleted && other.is_none_or(is_later)
    }
}

impl Store {
    /// Updates the latest version in a document after a version was created or its status was
    /// changed. If the version was the latest one and is not active, any version may be the latest
    /// one now, which takes one request per MB of versions. Otherwise, takes no request. In both
    /// cases, takes one more if the content of the new latest version is large.
    pub(super) async fn update_latest(&self, server: &mut StoredServer, changed: &StoredVersion) -> Result<()> {
        let is_live = changed.status != McpStatus::Deleted;
        let is_same = server.latest.as_ref().is_some_and(|latest| latest.version == changed.version);
        if is_same && changed.status != McpStatus::Active {
            server.latest = self.latest_of(server.id, changed).await?;
        } else if is_same {
            // An active version remains the latest one.
            if let Some(latest) = &mut server.latest {
                latest.status = changed.status;
            }
        } else if is_live {
            let candidate = LatestCandidate::from(changed);
            let is_later = |latest: &LatestVersion| candidate.cmp(&latest.into()).is_gt();
            if server.latest.as_ref().is_none_or(is_later) {
                server.latest = Some(self.version_as_latest(changed).await?);
            }
        }
        if server.latest.is_none() {
            server.endpoints.retain(|_, endpoint| endpoint.alias.as_deref() != Some(LATEST_ALIAS));
        }
        Ok(())
    }

    /// Finds the latest of all versions of a server. `changed` is used instead of its row in the
    /// table, which has not been written yet.
    async fn latest_of(&self, server: u64, changed: &StoredVersion) -> Result<Option<LatestVersion>> {
        let mut latest = Some(changed.clone()).filter(|version| version.status != McpStatus::Deleted);
        let versions = Query::of(rows::McpServerVersion::all(&Digest(server)));
        let mut pages = std::pin::pin!(entities::listing::pages(&self.table, versions));
        while let Some(items) = pages.try_next().await? {
            for item in items {
                let version = StoredVersion::of(item)?;
                if version.version != changed.version && version.is_later_than(latest.as_ref()) {
                    latest = Some(version);
                }
            }
        }
        match latest {
            Some(latest) => self.version_as_latest(&latest).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the values of a version that are copied to the server's document. Takes no request,
    /// unless the content of the version is large.
    async fn version_as_latest(&self, version: &StoredVersion) -> Result<LatestVersion> {
        let content = self.version_content(version).await?;
        version.as_latest(&content.server_json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_versions_come_before_others() {
        let candidates = [
            ("1.0.0", McpStatus::Active, 1),
            ("2.0.0-rc.1", McpStatus::Active, 1),
            ("1.0.0+b", McpStatus::Active, 2),
            ("9.0.0", McpStatus::Draft, 3),
            ("1.0.0+a", McpStatus::Active, 2),
            ("8.0.0", McpStatus::Deprecated, 3),
        ];
        let versions: Vec<_> = candidates.iter().map(|(version, ..)| Version::of(version).unwrap()).collect();
        let mut sorted: Vec<_> = candidates
            .iter()
            .zip(&versions)
            .map(|((_, status, created), version)| LatestCandidate { version, status: *status, created: *created })
            .collect();
        sorted.sort_by(LatestCandidate::cmp);
        let sorted: Vec<_> = sorted.iter().map(|candidate| candidate.version.as_str()).collect();
        assert_eq!(sorted, ["8.0.0", "9.0.0", "1.0.0", "1.0.0+a", "1.0.0+b", "2.0.0-rc.1"]);
    }
}
