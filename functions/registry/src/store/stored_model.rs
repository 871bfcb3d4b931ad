//! The items of a registered model and of its versions.

use std::collections::BTreeMap;

use entities::in_workspace;
use key_schema::index::{AliasedVersions, VersionsInStage};
use key_schema::{Field, Key, ModelKey, ModelKind, Ordinal, rows};
use mlflow_api::Workspace;
use mlflow_api::registry::{IS_PROMPT_TAG, ModelStage};
use table::{Item, Value, number, text};

use super::attributes::{
    ALIASES, CREATED, DESCRIPTION, EDITS, HOME, ID, LATEST, NAME, RUN, RUN_LINK, SOURCE, STORAGE, TAGS, UPDATED,
    VERSION_STAGE, VERSIONS,
};
use super::model_home::{home_key, home_row};
use super::model_item::{kind_of_tag, list_key, list_row, model_key, versions_map};

/// Maximum size, in bytes, of a tag that is stored in a version's document, as long as the document
/// is not full. The size is large for two reasons: versions are rarely written and always read as a
/// whole, and the text of a prompt is stored as a tag.
pub(super) const MAX_INLINE_VALUE_BYTES: usize = 32 << 10;

/// A registered model or prompt, as it is stored.
#[derive(Clone, Debug)]
pub struct StoredModel<'a> {
    /// Workspace.
    pub workspace: &'a Workspace,
    /// Name.
    pub name: &'a str,
    /// Id, which distinguishes the model from earlier ones of the same name.
    pub id: &'a str,
    /// Partition of the model's other rows.
    pub home: &'a ModelKey,
    /// When the model was created, in ms.
    pub created: i64,
    /// When the model was last changed, in ms.
    pub updated: i64,
    /// Description. May be empty.
    pub description: &'a str,
    /// The highest number that any of the model's versions has ever had.
    pub versions: u32,
    /// The highest version in each stage.
    pub latest: &'a BTreeMap<ModelStage, u32>,
    /// The version of each alias.
    pub aliases: &'a BTreeMap<String, u32>,
    /// Tags. If a key occurs twice, its last value is stored.
    pub tags: &'a [(String, String)],
}

/// The items of a registered model, without its versions.
#[derive(Clone, Debug)]
pub struct ModelItems {
    /// The document.
    pub document: Item,
    /// Rows of tags that are too large for the document.
    pub tags: Vec<Item>,
    /// The row with the name of the model that the home belongs to.
    pub home: Item,
    /// The row in the workspace's lists.
    pub listed: Item,
}

impl StoredModel<'_> {
    /// Returns the kind of the model for searches.
    #[must_use]
    pub fn kind(&self) -> ModelKind {
        kind_of_tag(self.tags.iter().rev().find(|(key, _)| key == IS_PROMPT_TAG).map(|(_, tag)| tag.as_str()))
    }

    /// Returns the items of the model.
    #[must_use]
    pub fn items(&self) -> ModelItems {
        let key = ModelKey::of(self.workspace, self.name);
        let item = Item::new(model_key(&key))
            .with(NAME, text(self.name))
            .with(ID, text(self.id))
            .with(CREATED, number(self.created))
            .with(UPDATED, number(self.updated))
            .with(DESCRIPTION, text(self.description))
            .with(EDITS, number(0))
            .with(VERSIONS, number(self.versions))
            .with(LATEST, versions_map(self.latest.iter().map(|(stage, version)| (stage.name(), *version))))
            .with(ALIASES, versions_map(self.aliases.iter().map(|(alias, version)| (alias.as_str(), *version))))
            .indexed(AliasedVersions::key(&Ordinal(0)));
        let item = in_workspace(item, self.workspace);
        let item = if *self.home == key { item } else { item.with(HOME, text(self.home.to_attribute())) };
        let (mut document, tags) =
            entities::documents::new_document(item, self.tags, |tag| rows::ModelTag::key(self.home, tag));
        let kind = self.kind();
        if let (ModelKind::Prompt, Some(Value::M(tags))) = (kind, document.0.get_mut(TAGS.name())) {
            // The prompt tag is always stored in the document, regardless of the number of tags,
            // because the kind of a model is read from its document.
            tags.entry(IS_PROMPT_TAG.to_owned()).or_insert_with(|| text("true"));
        }
        ModelItems {
            document,
            tags,
            home: home_row(self.workspace, self.home, self.id, self.name),
            listed: list_row(self.workspace, self.name, kind, self.updated),
        }
    }
}

/// A version of a registered model, as it is stored.
#[derive(Clone, Debug)]
pub struct StoredModelVersion<'a> {
    /// Partition of the model's rows.
    pub home: &'a ModelKey,
    /// Workspace of the model.
    pub workspace: &'a Workspace,
    /// Number.
    pub number: u32,
    /// When the version was created, in ms.
    pub created: i64,
    /// When the version was last changed, in ms. `None` if it has not been changed.
    pub updated: Option<i64>,
    /// Stage.
    pub stage: ModelStage,
    /// Description, if it has one.
    pub description: Option<&'a str>,
    /// Source, as given by the client.
    pub source: &'a str,
    /// Location of the version's artifacts.
    pub storage: &'a str,
    /// Id of the run that created the version, if any.
    pub run: Option<&'a str>,
    /// Link to the run, as given by the client.
    pub run_link: Option<&'a str>,
    /// Whether the version has aliases.
    pub is_aliased: bool,
    /// Tags. If a key occurs twice, its last value is stored.
    pub tags: &'a [(String, String)],
}

impl StoredModelVersion<'_> {
    /// Returns the version's document, and rows of tags that are too large for it.
    #[must_use]
    pub fn items(&self) -> (Item, Vec<Item>) {
        let version = Ordinal(self.number);
        let mut item = Item::new(rows::ModelVersion::key(self.home, &version))
            .with(CREATED, number(self.created))
            .with(VERSION_STAGE, text(self.stage.name()))
            .with(SOURCE, text(self.source));
        if let Some(description) = self.description {
            item = item.with(DESCRIPTION, text(description));
        }
        if let Some(run_link) = self.run_link {
            item = item.with(RUN_LINK, text(run_link));
        }
        if let Some(updated) = self.updated {
            item = item.with(UPDATED, number(updated));
        }
        if let Some(run) = self.run {
            item = item.with(RUN, text(run));
        }
        if self.storage != self.source {
            item = item.with(STORAGE, text(self.storage));
        }
        if self.stage != ModelStage::None {
            item = item.indexed(VersionsInStage::key(&Field::from(self.stage.name()), &version));
        }
        if self.is_aliased {
            item = item.indexed(AliasedVersions::key(&version));
        }
        entities::documents::new_document_with(MAX_INLINE_VALUE_BYTES, item, self.tags, |tag| {
            rows::ModelVersionTag::key(self.home, &version, tag)
        })
    }

    /// Returns the row that finds the version by its run, or `None` if the version has no run.
    #[must_use]
    pub fn run_row(&self) -> Option<Item> {
        run_row(self.workspace, self.home, self.number, self.run)
    }
}

/// Returns the key of the document of the model with this name.
#[must_use]
pub fn registered_model_key(workspace: &Workspace, name: &str) -> Key {
    model_key(&ModelKey::of(workspace, name))
}

/// Returns the key of a model's row in the workspace's lists.
#[must_use]
pub fn listed_model_key(workspace: &Workspace, name: &str, kind: ModelKind) -> Key {
    list_key(workspace, name, kind)
}

/// Returns the key of the row with the name of the model that a home belongs to.
#[must_use]
pub fn model_home_key(home: &ModelKey) -> Key {
    home_key(home)
}

/// Returns the row that finds a version by its run.
pub(super) fn run_row(workspace: &Workspace, home: &ModelKey, version: u32, run: Option<&str>) -> Option<Item> {
    let run = run.filter(|run| !run.is_empty())?;
    Some(
        Item::new(rows::VersionOfRun::key(&ModelKey::of(workspace, run), home, &Ordinal(version)))
            .with(HOME, text(home.to_attribute())),
    )
}
