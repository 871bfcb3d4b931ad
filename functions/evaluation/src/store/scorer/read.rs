//! Reading scorers and their versions.

use entities::attributes::{CREATED, NAME, SCORER, VERSION};
use entities::documents::content;
use futures::future::try_join_all;
use futures::stream::TryStreamExt;
use key_schema::{Ordinal, rows};
use mlflow_api::scorers as wire;
use mlflow_api::{Json, Result};
use table::{Item, Query};

use super::list_size::ListSize;
use super::scorer_row::{ScorerName, StoredScorer, header_key, part_key};
use crate::store::Store;

impl Store {
    /// Reads a scorer's row. Takes one request, and one more if the lease on the experiment has
    /// expired.
    pub(super) async fn scorer_row(&self, scorer: &ScorerName) -> Result<StoredScorer> {
        let experiment = self.active_experiment(*scorer.experiment).await?;
        let item = self.table.get(&header_key(experiment, &scorer.name)).await?;
        StoredScorer::named(scorer, item)?.ok_or_else(|| scorer.not_found(None))
    }

    /// Reads the latest version of a scorer, or a given version. Takes one request, or two for a
    /// given version. Takes one more if the lease on the experiment has expired, and one more for a
    /// large scorer.
    pub async fn scorer_get(&self, scorer: &ScorerName, version: Option<i64>) -> Result<wire::Scorer> {
        let found = self.scorer_row(scorer).await?;
        let not_found = || scorer.not_found(version);
        let version_row = match version {
            None => found.latest().map(|_| found.item.clone()),
            Some(version) => self.scorer_version(&found, version).await?,
        };
        let version_row = version_row.ok_or_else(not_found)?;
        self.scorer_from_row(&found, &version_row).await?.ok_or_else(not_found)
    }

    /// Reads the row of a version, if the version exists. Takes one request.
    pub(super) async fn scorer_version(&self, found: &StoredScorer, version: i64) -> Result<Option<Item>> {
        let Ok(version) = u32::try_from(version) else { return Ok(None) };
        Ok(self.table.get(&rows::ScorerVersion::key(&found.experiment, &found.id, &Ordinal(version))).await?)
    }

    /// Builds the response about a version from the row of the version or, for the latest version,
    /// from the scorer's row. Takes no request unless the version is large.
    pub(super) async fn scorer_from_row(&self, found: &StoredScorer, row: &Item) -> Result<Option<wire::Scorer>> {
        let whole = content::read_with_item(&self.table, row.clone(), part_key(found.experiment)).await?;
        let Some((row, serialized_scorer)) = whole else { return Ok(None) };
        // The row contains the scorer's id, which may differ from the one that was read before,
        // because the scorer may have been replaced by another one with the same name.
        let id = row.get(SCORER).unwrap_or_else(|| found.id.clone()).to_string();
        Ok(Some(wire::Scorer {
            experiment_id: found.experiment.number(),
            scorer_name: found.item.get(NAME).unwrap_or_default().to_owned(),
            scorer_version: row.get(VERSION).unwrap_or_default(),
            serialized_scorer,
            creation_time: row.get(CREATED).unwrap_or_default(),
            scorer_id: id,
        }))
    }

    /// Builds a version for a response with a list. MLflow formats the JSON differently in lists.
    pub(super) async fn scorer_in_list(&self, found: &StoredScorer, row: &Item) -> Result<Option<wire::Scorer>> {
        let scorer = self.scorer_from_row(found, row).await?;
        Ok(scorer.map(|scorer| {
            let printed = Json::parse(&scorer.serialized_scorer).map(|json| json.print());
            wire::Scorer { serialized_scorer: printed.unwrap_or(scorer.serialized_scorer.clone()), ..scorer }
        }))
    }

    /// Returns all versions of a scorer, oldest first. Takes two requests, or more if the versions
    /// exceed one MB, and one more if the lease on the experiment has expired.
    ///
    /// # Errors
    /// Returns an error if the list exceeds the maximum size of a response.
    pub async fn scorer_versions(&self, scorer: &ScorerName) -> Result<Vec<wire::Scorer>> {
        let found = self.scorer_row(scorer).await?;
        let mut pages = std::pin::pin!(entities::listing::pages(&self.table, Query::of(found.versions())));
        let (mut versions, size) = (Vec::new(), ListSize::default());
        while let Some(rows) = pages.try_next().await? {
            rows.iter().try_for_each(|row| size.add(row))?;
            let of_page = try_join_all(rows.iter().map(|row| self.scorer_in_list(&found, row))).await?;
            versions.extend(of_page.into_iter().flatten());
        }
        if versions.is_empty() { Err(scorer.not_found(None)) } else { Ok(versions) }
    }
}
