//! The item of a model, and the keys under which a model is found.

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

/// A model as it was found under its name.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) name: String,
    pub(super) workspace: Workspace,
    pub(super) item: Item,
    latest: BTreeMap<ModelStage, u32>,
    aliases: BTreeMap<String, u32>,
}

/// The key of a model.
pub(super) fn model_key(key: &ModelKey) -> Key {
    rows::RegisteredModel::key(key)
}

/// MLflow's error for a model that is not there.
pub(super) fn model_not_found(name: &str) -> Error {
    Error::not_found(format!("Registered Model with name={name} not found"))
}

/// The row by which a workspace lists a model.
pub(super) fn list_key(workspace: &Workspace, name: &str, kind: ModelKind) -> Key {
    rows::ModelName::key(&workspace.as_str().into(), &kind, &Name::from(name))
}

/// The same with its place by the last change, in ms.
pub(super) fn list_row(workspace: &Workspace, name: &str, kind: ModelKind, changed: i64) -> Item {
    let by_change = ModelsByChange::key(&kind, &Descending(changed));
    Item::new(list_key(workspace, name, kind)).with(NAME, text(name)).indexed(by_change)
}

/// A part of a transaction that changes a model at this time, in ms: the list by the last change says so, too.
pub(super) fn list_changed(workspace: &Workspace, model: &Model, changed: i64) -> Write {
    let kind = model.kind();
    let update = Update::new(list_key(workspace, &model.name, kind)).only_if(Condition::item_exists());
    Write::Update(update.indexed(ModelsByChange::key(&kind, &Descending(changed))))
}

/// The kind a model is searched as; only this one value of the tag makes a prompt of it (`_update_query_to_exclude_prompts`).
pub(super) fn kind_of_tag(value: Option<&str>) -> ModelKind {
    if value == Some("true") { ModelKind::Prompt } else { ModelKind::Model }
}

/// A map of names to versions, as an attribute.
pub(super) fn versions_map<K: Into<String>>(versions: impl IntoIterator<Item = (K, u32)>) -> Value {
    map(versions.into_iter().map(|(name, version)| (name.into(), number(version))).collect())
}

impl Model {
    /// From its item.
    ///
    /// # Errors
    /// An internal one if it cannot be read.
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

    /// When it was last changed, in ms.
    pub(super) fn changed(&self) -> i64 {
        self.item.get(UPDATED).unwrap_or_default()
    }

    /// From the item under the key of this name, if there is one. Of a long name, the key has a hash: an item of another name is not the
    /// model's.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, where it is not there; an internal one if it cannot be read.
    pub(super) fn named(name: &str, item: Option<Item>) -> Result<Self> {
        let item = item.filter(|item| item.get(NAME) == Some(name));
        item.ok_or_else(|| model_not_found(name)).and_then(Self::of)
    }

    pub(super) fn id(&self) -> &str {
        self.item.get(ID).unwrap_or_default()
    }

    /// The key that it is found under.
    pub(super) fn key(&self) -> ModelKey {
        ModelKey::of(&self.workspace, &self.name)
    }

    /// The key that its other rows are kept under.
    pub(super) fn home(&self) -> ModelKey {
        self.item.get(HOME).map_or_else(|| self.key(), ModelKey::from)
    }

    pub(super) fn is_at_home(&self) -> bool {
        !self.item.has(HOME)
    }

    /// How many versions it has had.
    pub(super) fn count(&self) -> u32 {
        self.item.get(VERSIONS).unwrap_or_default()
    }

    pub(super) fn renamed(&self) -> i64 {
        self.item.get(RENAMED).unwrap_or_default()
    }

    /// The greatest version of each stage.
    pub(super) fn latest(&self) -> BTreeMap<ModelStage, u32> {
        self.latest.clone()
    }

    /// The version of each alias.
    pub(super) fn aliases(&self) -> BTreeMap<String, u32> {
        self.aliases.clone()
    }

    /// The aliases of a version.
    pub(super) fn aliases_of(&self, version: u32) -> Vec<String> {
        self.aliases().into_iter().filter(|(_, of)| *of == version).map(|(alias, _)| alias).collect()
    }

    /// The aliases of all versions that have any.
    pub(super) fn aliases_by_version(&self) -> BTreeMap<u32, Vec<String>> {
        let mut versions: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (alias, version) in &self.aliases {
            versions.entry(*version).or_default().push(alias.clone());
        }
        versions
    }

    /// Whether its tag says that it is a prompt, in any case (`RegisteredModel._is_prompt`).
    pub(super) fn is_prompt(&self) -> bool {
        self.prompt_tag().is_some_and(|tag| tag.to_lowercase() == "true")
    }

    fn prompt_tag(&self) -> Option<&str> {
        Some(self.item.map(TAGS)?.get(IS_PROMPT_TAG)?.as_s().ok()?.as_str())
    }

    pub(super) fn kind(&self) -> ModelKind {
        kind_of_tag(self.prompt_tag())
    }

    /// A change of the model, if nothing of it has changed since it was read.
    pub(super) fn unchanged(&self) -> Update {
        Update::new(model_key(&self.key())).only_if(self.is_unchanged()).add(EDITS, number(1))
    }

    pub(super) fn is_unchanged(&self) -> Condition {
        let edits = self.item.get(EDITS).unwrap_or_default();
        self.is_same().and(Condition::Equals(EDITS.into(), number(edits)))
    }

    /// A change of the model, if it is still this one.
    pub(super) fn same(&self) -> Update {
        Update::new(model_key(&self.key())).only_if(self.is_same()).add(EDITS, number(1))
    }

    pub(super) fn is_same(&self) -> Condition {
        Condition::Equals(ID.into(), text(self.id()))
    }
}

/// A model from its item, its rows of tags and its latest versions.
///
/// # Errors
/// An internal one if a tag cannot be read.
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

/// A tag of an entity.
pub(super) fn tag<'a>(tags: &'a [KeyValue], key: &str) -> Option<&'a str> {
    find(tags, key)
}
