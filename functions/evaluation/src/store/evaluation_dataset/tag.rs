//! Tags of evaluation datasets.

use entities::documents::{Document, DocumentChange};
use key_schema::{Key, Name, rows};
use mlflow_api::{Error, ErrorCode, EvaluationDatasetId, Json, Result};
use table::{Condition, Item};

use super::dataset_item::DatasetReference;
use crate::store::Store;

/// An evaluation dataset's document.
struct DatasetDocument<'a>(&'a EvaluationDatasetId);

impl Document for DatasetDocument<'_> {
    fn key(&self) -> Key {
        rows::EvaluationDataset::key(self.0)
    }

    fn tag_row(&self, tag: &Name) -> Key {
        rows::EvaluationDatasetTag::key(self.0, tag)
    }

    fn writable(&self) -> Condition {
        Condition::item_exists()
    }

    fn check(&self, item: Option<&Item>) -> Result<()> {
        item.map(|_| ()).ok_or_else(|| no_dataset(self.0.as_str()))
    }
}

/// Returns MLflow's error about tags of a dataset that does not exist.
fn no_dataset(id: &str) -> Error {
    Error::not_found(format!("Could not find evaluation dataset with ID {id}"))
}

impl Store {
    /// Sets tags of an evaluation dataset from a JSON object. Nulls are ignored, and values other
    /// than strings are formatted like in Python. Takes one request, or more if some values are
    /// large.
    pub async fn dataset_set_tags(&self, id: &DatasetReference, tags: Json) -> Result<()> {
        let missing = || no_dataset(&id.text);
        let dataset = id.dataset.as_deref().cloned().ok_or_else(missing)?;
        let Json::Object(tags) = tags else {
            self.dataset_item(id).await?.ok_or_else(missing)?;
            return Err(Error::invalid(format!("The tags must be a JSON object, got {}.", tags.type_name())));
        };
        let set = tags.into_iter().filter(|(_, value)| *value != Json::Null);
        let tags: Vec<_> = set.map(|(key, value)| (key, value.to_text())).collect();
        if tags.is_empty() {
            self.dataset_item(id).await?.ok_or_else(missing)?;
            return Ok(());
        }
        entities::documents::check_sizes(&tags)?;
        entities::documents::change(
            &self.table,
            &DatasetDocument(&dataset),
            DocumentChange { tags, ..DocumentChange::default() },
        )
        .await?;
        Ok(())
    }

    /// Deletes a tag of an evaluation dataset. A no-op if the dataset or the tag does not exist.
    /// Takes one request if no tag is large.
    pub async fn dataset_delete_tag(&self, id: &DatasetReference, key: &str) -> Result<()> {
        let Some(id) = id.dataset.as_deref().cloned() else { return Ok(()) };
        match entities::documents::remove_tag(&self.table, &DatasetDocument(&id), key).await {
            Err(error) if error.code != ErrorCode::ResourceDoesNotExist => Err(error),
            _ => Ok(()),
        }
    }
}
