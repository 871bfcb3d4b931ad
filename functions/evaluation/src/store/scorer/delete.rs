//! Deleting scorers and their versions.

use access::Guard;
use entities::attributes::VERSION;
use entities::documents::content;
use key_schema::{Key, rows};
use mlflow_api::{Error, Result, Workspace};
use table::{ChangePlan, Condition, Item, Query, Write};

use super::scorer_row::{ScorerName, StoredScorer, header, header_key, part_key, same_version, with_version};
use crate::store::Store;

/// Maximum number of versions that are deleted in the transaction that deletes their scorer. A
/// transaction has up to 100 writes.
const MAX_VERSIONS_IN_TRANSACTION: usize = 90;

impl Store {
    /// Deletes a version of a scorer, or the whole scorer with all versions and its online
    /// configuration. Takes two or three requests, and one more if the lease on the experiment has
    /// expired.
    pub async fn scorer_delete(&self, workspace: &Workspace, scorer: &ScorerName, version: Option<i64>) -> Result<()> {
        let rest = self
            .table
            .change("a scorer", |_| async move {
                let found = self.scorer_row(scorer).await?;
                let (writes, rest) = match version {
                    None => self.scorer_deletion(workspace, scorer, &found).await?,
                    Some(version) => self.scorer_version_deletion(scorer, &found, version).await?,
                };
                Ok::<_, Error>(ChangePlan::Write(writes, rest))
            })
            .await?;
        Ok(self.table.write_many(Vec::new(), &rest).await?)
    }

    /// Returns the writes of the transaction that deletes a scorer, and the keys to delete
    /// afterwards.
    async fn scorer_deletion(
        &self,
        workspace: &Workspace,
        scorer: &ScorerName,
        found: &StoredScorer,
    ) -> Result<(Vec<Write>, Vec<Key>)> {
        let versions = self.table.query(Query::of(found.versions())).await?;
        if versions.is_empty() {
            return Err(scorer.not_found(None));
        }
        let listed =
            rows::WorkspaceScorer::key(&workspace.as_str().into(), &found.experiment, &scorer.name.as_str().into());
        let mut writes = vec![
            Write::Delete(header_key(found.experiment, &scorer.name), found.unchanged()),
            Write::Delete(rows::ScorerOnlineConfig::key(&found.experiment, &found.id), Condition::Always),
            Write::Delete(listed, Condition::Always),
        ];
        writes.extend(self.authorizer_writes.writes_of_deletion(&Guard::Scorer(found.experiment, scorer.name.clone())));
        // Most versions may be deleted after the transaction, because versions cannot be found
        // without their scorer.
        let mut keys: Vec<_> = versions.iter().filter_map(Item::key).collect();
        let mut rest = keys.split_off(keys.len().min(MAX_VERSIONS_IN_TRANSACTION));
        writes.extend(keys.into_iter().map(|key| Write::Delete(key, Condition::Always)));
        rest.extend(versions.iter().flat_map(|version| content::part_keys(version, part_key(found.experiment))));
        Ok((writes, rest))
    }

    /// Returns the writes of the transaction that deletes a version, and the keys to delete
    /// afterwards. If it is the latest version, the previous one becomes the latest.
    async fn scorer_version_deletion(
        &self,
        scorer: &ScorerName,
        found: &StoredScorer,
        version: i64,
    ) -> Result<(Vec<Write>, Vec<Key>)> {
        let row = self.scorer_version(found, version).await?.ok_or_else(|| scorer.not_found(Some(version)))?;
        let rest = content::part_keys(&row, part_key(found.experiment));
        let key = row.key().unwrap_or_else(|| header_key(found.experiment, &scorer.name));
        let delete = Write::Delete(key, same_version(&row));
        let header_writes = if found.latest().map(i64::from) == Some(version) {
            let query = Query::of(found.versions()).backwards().limit(2);
            let rows = self.table.query_page(&query).await?.items;
            let before = rows.iter().find(|row| row.get(VERSION).map(i64::from) != Some(version));
            let header = found.keep_import(header(found.experiment, &scorer.name, &found.id));
            let header = before.into_iter().fold(header, with_version);
            // The transaction also checks that the previous version has not been deleted in the
            // meantime.
            let is_there = before.and_then(|row| Some(Write::Check(row.key()?, same_version(row))));
            [Some(Write::Put(header, found.unchanged())), is_there]
        } else {
            [Some(Write::Check(header_key(found.experiment, &scorer.name), found.unchanged())), None]
        };
        Ok((header_writes.into_iter().flatten().chain([delete]).collect(), rest))
    }
}
