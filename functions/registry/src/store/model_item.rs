//! The item of a model, and the keys of the rows that refer to a model.

use std::collections::BTreeMap;

use entities::{entries, find, unreadable, workspace_named};
use key_schema::index::ModelsByChange;
use key_schema::{Descending, Key, ModelKey, ModelKind, Name, rows};
use mlflow_api::registry::{IS_PROMPT_TAG, ModelAlias, ModelStage, ModelVersion, RegisteredModel};
use mlflow_api::tracking::KeyValue;
use mlflow_api::{Error, Result, Workspace};
use table::{Condition, Item, Update, Value, Write, map, number, text};

use super::attributes::{
    ALIASES, Attribute, CREATED, Counts, DESCRIPTION, EDITS, HOME, ID, LATEST, NAME, RENAMED, TAGS, UPDATED, VERSIONS,
    WORKSPACE,
};

/// A model that was read by its name.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) name: String,
    pub(super) workspace: Workspace,
    pub(super) item: Item,
    latest: BTreeMap<ModelStage, u32>,
    aliases: BTreeMap<String, u32>,
}

/// Returns the key of a model.
pub(super) fn model_key(key: &ModelKey) -> Key {
    rows::RegisteredModel::key(key)
}

/// Returns MLflow's error about a model that does not exist.
pub(super) fn model_not_found(name: &str) -> Error {
    Error::not_found(format!("Registered Model with name={name} not found"))
}

/// Returns the key of a model's row in the workspace's list.
pub(super) fn list_key(workspace: &Workspace, name: &str, kind: ModelKind) -> Key {
    rows::ModelName::key(&workspace.as_str().into(), &kind, &Name::from(name))
}

/// Creates a model's row in the workspace's lists by name and by last change. `changed` is in ms.
pub(super) fn list_row(workspace: &Workspace, name: &str, kind: ModelKind, changed: i64) -> Item {
    let by_change = ModelsByChange::key(&kind, &Descending(changed));
    Item::new(list_key(workspace, name, kind)).with(NAME, text(name)).indexed(by_change)
}

/// Returns the write that updates the list by last change, for a transaction that changes a model.
/// `changed` is in ms.
pub(super) fn list_changed(workspace: &Workspace, model: &Model, changed: i64) -> Write {
    let kind = model.kind();
    let update = Update::new(list_key(workspace, &model.name, kind)).only_if(Condition::item_exists());
    Write::Update(update.indexed(ModelsByChange::key(&kind, &Descending(changed))))
}

/// Returns the kind of a model for searches, given the value of its prompt tag. Only the exact
/// value `true` makes it a prompt (`_update_query_to_exclude_prompts`).
pub(super) fn kind_of_tag(value: Option<&str>) -> ModelKind {
    if value == Some("true") { ModelKind::Prompt } else { ModelKind::Model }
}

/// Converts a map of names to versions to an attribute value.
pub(super) fn versions_map<K: Into<String>>(versions: impl IntoIterator<Item = (K, u32)>) -> Value {
    map(versions.into_iter().map(|(name, version)| (name.into(), number(version))).collect())
}

impl Model {
    /// Reads a model from its item.
    ///
    /// # Errors
    /// Returns an internal error if the item is invalid.
    pub(super) fn of(item: Item) -> Result<Self> {
        let versions = |attribute: Attribute<Counts>| {
            let versions = item.map(attribute)?.iter();
            let version = |(name, version): (&String, &Value)| Some((name.clone(), version.as_n().ok()?.parse().ok()?));
            versions.map(version).collect::<Option<BTreeMap<String, u32>>>()
        };
        let read = || {
            let latest = versions(LATEST)?.into_iter();
            let latest = latest.map(|(stage, version)| Some((ModelStage::from_name(&stage)?, version)));
            Some((item.get(NAME)?.to_owned(), latest.collect::<Option<_>>()?, versions(ALIASES)?))
        };
        let (name, latest, aliases) = read().ok_or_else(|| unreadable(&item, "a registered model"))?;
        let workspace = workspace_named(item.get(WORKSPACE)).map_err(Error::internal)?;
        Ok(Self { name, workspace, item, latest, aliases })
    }

    /// Returns the time of the last change, in ms.
    pub(super) fn changed(&self) -> i64 {
        self.item.get(UPDATED).unwrap_or_default()
    }

    /// Reads a model from the item under the key of this name, if there is one. An item that
    /// contains another name is ignored, because the key of a long name contains a hash, which may
    /// collide.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if there is no such item, and an internal error if the
    /// item is invalid.
    pub(super) fn named(name: &str, item: Option<Item>) -> Result<Self> {
        let item = item.filter(|item| item.get(NAME) == Some(name));
        item.ok_or_else(|| model_not_found(name)).and_then(Self::of)
    }

    pub(super) fn id(&self) -> &str {
        self.item.get(ID).unwrap_or_default()
    }

    /// Returns the key under which the model is found by its name.
    pub(super) fn key(&self) -> ModelKey {
        ModelKey::of(&self.workspace, &self.name)
    }

    /// Returns the key of the model's other rows.
    pub(super) fn home(&self) -> ModelKey {
        self.item.get(HOME).map_or_else(|| self.key(), ModelKey::from)
    }

    pub(super) fn is_at_home(&self) -> bool {
        !self.item.has(HOME)
    }

    /// Returns the number of versions that the model has ever had.
    pub(super) fn count(&self) -> u32 {
        self.item.get(VERSIONS).unwrap_or_default()
    }

    pub(super) fn renamed(&self) -> i64 {
        self.item.get(RENAMED).unwrap_or_default()
    }

    /// Returns the highest version in each stage.
    pub(super) fn latest(&self) -> BTreeMap<ModelStage, u32> {
        self.latest.clone()
    }

    /// Returns the version of each alias.
    pub(super) fn aliases(&self) -> BTreeMap<String, u32> {
        self.aliases.clone()
    }

    /// Returns the aliases of a version.
    pub(super) fn aliases_of(&self, version: u32) -> Vec<String> {
        self.aliases().into_iter().filter(|(_, of)| *of == version).map(|(alias, _)| alias).collect()
    }

    /// Returns the aliases of all versions that have any.
    pub(super) fn aliases_by_version(&self) -> BTreeMap<u32, Vec<String>> {
        let mut versions: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (alias, version) in &self.aliases {
            versions.entry(*version).or_default().push(alias.clone());
        }
        versions
    }

    /// Checks whether the model's tag marks it as a prompt, ignoring the case of the value
    /// (`RegisteredModel._is_prompt`).
    pub(super) fn is_prompt(&self) -> bool {
        self.prompt_tag().is_some_and(|tag| tag.to_lowercase() == "true")
    }

    fn prompt_tag(&self) -> Option<&str> {
        Some(self.item.map(TAGS)?.get(IS_PROMPT_TAG)?.as_s().ok()?.as_str())
    }

    pub(super) fn kind(&self) -> ModelKind {
        kind_of_tag(self.prompt_tag())
    }

    /// Returns an update of the model, on condition that the model has not changed since it was
    /// read.
    pub(super) fn unchanged(&self) -> Update {
        Update::new(model_key(&self.key())).only_if(self.is_unchanged()).add(EDITS, number(1))
    }

    pub(super) fn is_unchanged(&self) -> Condition {
        let edits = self.item.get(EDITS).unwrap_or_default();
        self.is_same().and(Condition::Equals(EDITS.into(), number(edits)))
    }

    /// Returns an update of the model, on condition that its name has not been reused by another
    /// model.
    pub(super) fn same(&self) -> Update {
        Update::new(model_key(&self.key())).only_if(self.is_same()).add(EDITS, number(1))
    }

    pub(super) fn is_same(&self) -> Condition {
        Condition::Equals(ID.into(), text(self.id()))
    }
}

/// Builds a model from its item, its rows of tags and its latest versions.
///
/// # Errors
/// Returns an internal error if a tag is invalid.
pub(super) fn model_entity(
    model: &Model,
    rows: &[Item],
    latest_versions: Vec<ModelVersion>,
) -> Result<RegisteredModel> {
    let tags = entries(&model.item, TAGS, rows)?.into_iter().map(|(key, value)| KeyValue { key, value });
    let aliases = model.aliases().into_iter();
    Ok(RegisteredModel {
        name: model.name.clone(),
        creation_timestamp: model.item.get(CREATED).unwrap_or_default(),
        last_updated_timestamp: model.changed(),
        description: model.item.get(DESCRIPTION).unwrap_or_default().to_owned(),
        latest_versions,
        tags: tags.collect(),
        aliases: aliases.map(|(alias, version)| ModelAlias { alias, version: version.to_string() }).collect(),
    })
}

/// Returns the value of a tag.
pub(super) fn tag<'a>(tags: &'a [KeyValue], key: &str) -> Option<&'a str> {
    find(tags, key)
}
