//! Reading evaluation datasets.

use documents::content;
use entities::attributes::{
    Attribute, CONTENT_SIZE, CREATED_BY, DIGEST, NAME, RECORDS, SCHEMA_VERSION, TAG_ROWS, TAGS, Text, UPDATED,
    UPDATED_BY,
};
use entities::{entries, unreadable};
use key_schema::rows;
use mlflow_api::evaluation_datasets as wire;
use mlflow_api::{EvaluationDatasetId, Json, Result};
use table::{Item, Query};

use super::item::{AskedDataset, part_key};
use crate::store::Store;

impl Store {
    /// Reads an evaluation dataset. One request; one more if it has tags too big for its document, one if its schema is.
    pub async fn dataset_get(&self, id: &AskedDataset) -> Result<wire::EvaluationDataset> {
        let (id, item) = self.dataset_item(id).await?.ok_or_else(|| EvaluationDatasetId::not_found(&id.text))?;
        self.dataset_with_tags(&id, &item).await
    }

    /// The item of a dataset, if there is one. One request.
    pub(super) async fn dataset_item(&self, id: &AskedDataset) -> Result<Option<(EvaluationDatasetId, Item)>> {
        let Some(id) = id.dataset.as_deref().cloned() else { return Ok(None) };
        let item = self.table.get(&rows::EvaluationDataset::key(&id)).await?;
        Ok(item.map(|item| (id, item)))
    }

    /// A dataset from its item, its rows of tags read where it has any.
    pub(super) async fn dataset_with_tags(
        &self,
        id: &EvaluationDatasetId,
        item: &Item,
    ) -> Result<wire::EvaluationDataset> {
        let tags = self.dataset_tags(id, item).await?;
        self.dataset_whole(id, item, &tags).await
    }

    /// A dataset's tags, by key. No request unless some are too big for its document.
    pub(super) async fn dataset_tags(&self, id: &EvaluationDatasetId, item: &Item) -> Result<Vec<(String, String)>> {
        let rows = if item.has(TAG_ROWS) {
            self.table.query(Query::of(rows::EvaluationDatasetTag::all(id))).await?
        } else {
            Vec::new()
        };
        entries(item, TAGS, &rows)
    }

    /// A dataset from its item and its tags. No request unless its schema is big.
    pub(super) async fn dataset_whole(
        &self,
        id: &EvaluationDatasetId,
        item: &Item,
        tags: &[(String, String)],
    ) -> Result<wire::EvaluationDataset> {
        let tags = tags.iter().map(|(key, value)| (key.clone(), Json::Text(value.clone())));
        let found = self.dataset_schema(id, item).await?;
        let (item, schema) = found.as_ref().map_or((item, None), |(item, schema)| (item, Some(schema.clone())));
        let owned = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        Ok(wire::EvaluationDataset {
            dataset_id: id.to_string(),
            name: owned(NAME).unwrap_or_default(),
            tags: Json::Object(tags.collect()).print(),
            schema,
            profile: item.get(RECORDS).map(profile),
            digest: owned(DIGEST).unwrap_or_default(),
            created_time: id.created(),
            last_update_time: item.get(UPDATED).unwrap_or_default(),
            created_by: owned(CREATED_BY),
            last_updated_by: owned(UPDATED_BY),
            experiment_ids: Vec::new(),
        })
    }

    /// The schema in a dataset's item, if it has one, with the item it is of: the one given, or as it is now. No request unless it
    /// is big.
    pub(super) async fn dataset_schema(&self, id: &EvaluationDatasetId, item: &Item) -> Result<Option<(Item, String)>> {
        if !item.has(SCHEMA_VERSION) {
            return Ok(None);
        }
        if !item.has(CONTENT_SIZE) {
            return Err(unreadable(item, "a schema"));
        }
        content::read_with_item(&self.table, item.clone(), part_key(id)).await
    }
}

/// A dataset's profile. Where the last record was deleted, MLflow keeps JSON's null.
fn profile(records: u32) -> String {
    if records > 0 { format!("{{\"num_records\": {records}}}") } else { "null".to_owned() }
}
