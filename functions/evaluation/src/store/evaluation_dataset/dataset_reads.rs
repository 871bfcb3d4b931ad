//! Reading evaluation datasets.

use entities::attributes::{
    Attribute, CONTENT_SIZE, CREATED_BY, DIGEST, NAME, RECORDS, SCHEMA_VERSION, TAG_ROWS, TAGS, Text, UPDATED,
    UPDATED_BY,
};
use entities::documents::content;
use entities::{entries, unreadable};
use key_schema::rows;
use mlflow_api::evaluation_datasets as wire;
use mlflow_api::{EvaluationDatasetId, Json, Result};
use table::{Item, Query};

use super::dataset_item::{DatasetReference, created, part_key};
use crate::store::Store;

impl Store {
    /// Reads an evaluation dataset. Takes one request. Takes one more if some tags are too large
    /// for the dataset's document, and one more if the schema is too large.
    pub async fn dataset_get(&self, id: &DatasetReference) -> Result<wire::EvaluationDataset> {
        let (id, item) = self.dataset_item(id).await?.ok_or_else(|| EvaluationDatasetId::not_found(&id.text))?;
        self.dataset_with_tags(&id, &item).await
    }

    /// Reads the item of a dataset, if the dataset exists. Takes one request.
    pub(super) async fn dataset_item(&self, id: &DatasetReference) -> Result<Option<(EvaluationDatasetId, Item)>> {
        let Some(id) = id.dataset.as_deref().cloned() else { return Ok(None) };
        let item = self.table.get(&rows::EvaluationDataset::key(&id)).await?;
        Ok(item.map(|item| (id, item)))
    }

    /// Builds a dataset from its item. Takes one more request if the dataset has rows of tags.
    pub(super) async fn dataset_with_tags(
        &self,
        id: &EvaluationDatasetId,
        item: &Item,
    ) -> Result<wire::EvaluationDataset> {
        let tags = self.dataset_tags(id, item).await?;
        self.dataset_from_item(id, item, &tags).await
    }

    /// Returns a dataset's tags, ordered by key. Takes no request unless some tags are too large
    /// for its document.
    pub(super) async fn dataset_tags(&self, id: &EvaluationDatasetId, item: &Item) -> Result<Vec<(String, String)>> {
        let rows = if item.has(TAG_ROWS) {
            self.table.query(Query::of(rows::EvaluationDatasetTag::all(id))).await?
        } else {
            Vec::new()
        };
        entries(item, TAGS, &rows)
    }

    /// Builds a dataset from its item and its tags. Takes no request unless its schema is large.
    pub(super) async fn dataset_from_item(
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
            created_time: created(id, item),
            last_update_time: item.get(UPDATED).unwrap_or_default(),
            created_by: owned(CREATED_BY),
            last_updated_by: owned(UPDATED_BY),
            experiment_ids: Vec::new(),
        })
    }

    /// Returns the schema of a dataset, if it has one, and the item that the schema belongs to.
    /// This is the given item, or a newer version of the dataset's item if the parts of the schema
    /// have been replaced since the given one was read. Takes no request unless the schema is
    /// large.
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

/// Returns a dataset's profile. As in MLflow, the profile is the JSON value `null` once the last
/// record has been deleted.
fn profile(records: u32) -> String {
    if records > 0 { format!("{{\"num_records\": {records}}}") } else { "null".to_owned() }
}
