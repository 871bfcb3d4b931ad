//! The item of a version.

use entities::entries;
use key_schema::{Key, Ordinal, rows};
use mlflow_api::Result;
use mlflow_api::registry::{ModelStage, ModelVersion};
use mlflow_api::tracking::KeyValue;
use table::Item;

use super::attributes::{
    Attribute, CREATED, DESCRIPTION, RUN, RUN_LINK, SOURCE, STORAGE, TAGS, Text, UPDATED, VERSION_STAGE,
};
use super::model_item::Model;

const READY: &str = "READY";

/// A version as it was read, with its model.
pub(super) struct VersionItem {
    pub(super) model: Model,
    pub(super) number: u32,
    pub(super) item: Item,
}

impl VersionItem {
    pub(super) fn key(&self) -> Key {
        rows::ModelVersion::key(&self.model.home(), &Ordinal(self.number))
    }

    pub(super) fn stage(&self) -> ModelStage {
        stage_of(&self.item)
    }
}

/// Returns the stage in a version's item.
pub(super) fn stage_of(item: &Item) -> ModelStage {
    item.get(VERSION_STAGE).unwrap_or(ModelStage::None)
}

/// Returns the location of a version's artifacts.
pub(super) fn storage_of(item: &Item) -> &str {
    item.get(STORAGE).or_else(|| item.get(SOURCE)).unwrap_or_default()
}

/// Builds a version from its item and its rows of tags, without its aliases. As in MLflow, the time
/// of the last change takes the renaming of the model into account.
///
/// # Errors
/// Returns an internal error if a tag is invalid.
pub(super) fn version_entity(
    name: &str,
    version: u32,
    item: &Item,
    rows: &[Item],
    renamed: i64,
) -> Result<ModelVersion> {
    let text = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
    let tags = entries(item, TAGS, rows)?.into_iter().map(|(key, value)| KeyValue { key, value });
    let created = item.get(CREATED).unwrap_or_default();
    Ok(ModelVersion {
        name: name.to_owned(),
        version: version.to_string(),
        creation_timestamp: created,
        last_updated_timestamp: item.get(UPDATED).unwrap_or(created).max(renamed),
        current_stage: stage_of(item),
        description: text(DESCRIPTION),
        source: text(SOURCE).unwrap_or_default(),
        run_id: text(RUN),
        status: READY,
        tags: tags.collect(),
        run_link: text(RUN_LINK),
        aliases: Vec::new(),
    })
}
