//! Creating, reading, updating and renaming registered models.

use std::collections::BTreeMap;

use access::{Granted, Guard, Resource};
use entities::{if_closed, now_ms};
use key_schema::{ModelKey, ModelKind, Ordinal, rows};
use mlflow_api::registry::{IS_PROMPT_TAG, ModelStage, ModelVersion, RegisteredModel};
use mlflow_api::webhooks::{EventData, WebhookEvent as Event};
use mlflow_api::{Error, ErrorCode, RegisteredModelName, Result, Workspace, limits_registry as limits, python};
use table::{ChangePlan, Condition, Failure, Item, Query, RefusedWrites, Update, Write, WriteRefusal, number, text};

use super::Store;
use super::attributes::{DESCRIPTION, HOME, ID, NAME, RENAMED, TAG_ROWS, TAGS, UPDATED};
use super::call_event::take_rows_and_event;
use super::model_home::home_key;
use super::model_item::{
    Model, kind_of_tag, list_changed, list_key, list_row, model_entity, model_key, model_not_found,
};
use super::stored_model::{ModelItems, StoredModel};
use super::version_item::version_entity;

/// A registered model to create.
#[derive(Clone, Debug, Default)]
pub struct NewModel {
    /// Description. May be empty.
    pub description: String,
    /// Tags. If a key occurs twice, its last value is used.
    pub tags: Vec<(String, String)>,
}

impl NewModel {
    /// Checks whether the model's tags make it a prompt. The case of the tag's value is ignored.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        let tag = self.tags.iter().rev().find(|(key, _)| key == IS_PROMPT_TAG);
        tag.is_some_and(|(_, value)| value.to_lowercase() == "true")
    }
}

impl Store {
    /// Registers a model. Takes one request. Costs six write units for the table and two for
    /// indexes. If another model had the name before and its rows still exist, one more request is
    /// needed.
    pub async fn model_create(
        &self,
        workspace: &Workspace,
        name: &Granted<RegisteredModelName>,
        new: &NewModel,
    ) -> Result<RegisteredModel> {
        let guarded = Guard::RegisteredModel(RegisteredModelName::clone(name));
        let name = name.as_str();
        limits::model_name(name)?;
        for (key, value) in &new.tags {
            limits::model_tag(key, value)?;
        }
        let id = ulid::Ulid::generate().to_string();
        let key = ModelKey::of(workspace, name);
        let created = now_ms();
        let kind =
            kind_of_tag(new.tags.iter().rev().find(|(key, _)| key == IS_PROMPT_TAG).map(|(_, tag)| tag.as_str()));
        let resource = if kind == ModelKind::Prompt { Resource::Prompt } else { Resource::RegisteredModel };
        let possible = if new.is_prompt() { Event::PromptCreated } else { Event::RegisteredModelCreated };
        let events = self.call_events(&[possible]).await?;
        for home in [key.clone(), key.beside(&id)] {
            let stored = StoredModel {
                workspace,
                name,
                id: &id,
                home: &home,
                created,
                updated: created,
                description: &new.description,
                versions: 0,
                latest: &BTreeMap::new(),
                aliases: &BTreeMap::new(),
                tags: &new.tags,
            };
            let ModelItems { document, tags: tag_rows, home: home_row, listed } = stored.items();
            let item = self.authorizer_writes.with_owner(document);
            let mut others =
                vec![Write::Put(home_row, Condition::item_missing()), Write::Put(listed, Condition::Always)];
            others.extend(self.authorizer_writes.writes_of_creation(resource, &guarded, &id, &home.to_attribute()));
            // The model's own item is the first one of the transaction.
            let check = self.authorizer_writes.workspace_open_condition(workspace).map(|check| {
                others.push(check);
                others.len()
            });
            let NewModel { tags, description } = new;
            let data = EventData::Model { is_prompt: new.is_prompt(), name, tags, description };
            take_rows_and_event(&mut others, tag_rows.clone(), self.event_write(events.as_ref(), &home, &data).await?)?;
            match self.table.create(item.clone(), others).await {
                Ok(()) => {
                    let model = Model::of(item)?;
                    return model_entity(&model, &tag_rows, Vec::new());
                }
                Err(Failure::Cancelled(reasons)) => {
                    if let Some(WriteRefusal::Refused(Some(item))) = reasons.first() {
                        return Err(name_taken(name, item, is_tagged(&new.tags)));
                    }
                    if let Some(closed) = if_closed(workspace, check.and_then(|check| reasons.get(check))) {
                        return Err(closed);
                    }
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(Error::unavailable("a model and its home were in the way of each other"))
    }

    /// Returns the model with this name. Uses the item that came with a failed condition, if there
    /// is one, and reads it otherwise.
    pub(super) async fn model_after_refusal(&self, name: &str, refusal: RefusedWrites) -> Result<Model> {
        match refusal.item(0) {
            Some(item) => self.model_named(name, Some(item)),
            None => self.model_find(name).await,
        }
    }

    /// Reads the model with this name. Takes one request.
    pub(super) async fn model_find(&self, name: &str) -> Result<Model> {
        limits::model_name(name)?;
        self.model_named(name, self.table.get(&model_key(&self.key_of(name))).await?)
    }

    /// Returns the model of an item, if it is the model that the request was authorized for. This
    /// is checked because the name may have been reused by another model in the meantime.
    pub(super) fn model_named(&self, name: &str, item: Option<Item>) -> Result<Model> {
        let model = Model::named(name, item)?;
        if self.authorizer_writes.is_authorized_model(name, model.id()) {
            Ok(model)
        } else {
            Err(model_not_found(name))
        }
    }

    /// Reads a model. Takes one request, and one more if it has versions. Takes one more for the
    /// model, and for each of its latest versions, if it has tags that are too large for its
    /// document.
    pub async fn model_get(&self, name: &Granted<RegisteredModelName>) -> Result<RegisteredModel> {
        let name = name.as_str();
        let model = self.model_find(name).await?;
        self.model_from_item(&model).await
    }

    /// Changes a model's description and returns the model. Takes one request more than reading the
    /// model.
    pub async fn model_update(
        &self,
        workspace: &Workspace,
        name: &Granted<RegisteredModelName>,
        description: &str,
    ) -> Result<RegisteredModel> {
        let name = name.as_str();
        limits::model_name(name)?;
        let model = self
            .table
            .change("a model", |refusal| async move {
                let model = self.model_after_refusal(name, refusal).await?;
                let now = now_ms();
                let update = model.unchanged().set(DESCRIPTION, text(description)).set(UPDATED, number(now));
                let writes = vec![Write::Update(update), list_changed(workspace, &model, now)];
                let item = model.item.with(DESCRIPTION, text(description)).with(UPDATED, number(now));
                Ok::<_, Error>(ChangePlan::Write(writes, Model::of(item)?))
            })
            .await?;
        self.model_from_item(&model).await
    }

    /// Renames a model and returns it. Takes two requests in addition to those for reading the
    /// model, regardless of the number of versions.
    pub async fn model_rename(
        &self,
        workspace: &Workspace,
        name: &Granted<RegisteredModelName>,
        new: &RegisteredModelName,
    ) -> Result<RegisteredModel> {
        let along = self.authorizer_writes.writes_of_renaming(name, new);
        let along = &along;
        let (name, new_name) = (name.as_str(), new.as_str());
        limits::new_model_name(new_name)?;
        self.table
            .change("a model", |refusal| async move {
                let is_moved = name != new_name;
                if let Some(closed) = if_closed(
                    workspace,
                    refusal
                        .0
                        .get(5)
                        .filter(|_| is_moved && self.authorizer_writes.workspace_open_condition(workspace).is_some()),
                ) {
                    return Err(closed);
                }
                if is_moved && refusal.is_of(0) && !refusal.is_of(1) {
                    if refusal.item(0).is_some_and(|item| item.get(NAME) != Some(new_name)) {
                        return Err(Error::key_taken("registered model"));
                    }
                    let message = format!("Registered Model (name={new_name}) already exists.");
                    return Err(Error::new(ErrorCode::ResourceAlreadyExists, message));
                }
                let model = self.model_find(name).await?;
                let now = now_ms();
                let home = model.home();
                let at_home = Update::new(home_key(&home))
                    .only_if(Condition::Equals(ID.into(), text(model.id())))
                    .set(NAME, text(new_name))
                    .set(RENAMED, number(now));
                let writes = if is_moved {
                    let kind = model.kind();
                    let mut writes = vec![
                        Write::Put(renamed_item(&model, new_name, now), Condition::item_missing()),
                        Write::Delete(model_key(&model.key()), model.is_unchanged()),
                        Write::Put(list_row(workspace, new_name, kind, now), Condition::Always),
                        Write::Delete(list_key(workspace, name, kind), Condition::Always),
                        Write::Update(at_home),
                    ];
                    writes.extend(self.authorizer_writes.workspace_open_condition(workspace));
                    writes.extend(along.iter().cloned());
                    writes
                } else {
                    let update = model.unchanged().set(UPDATED, number(now)).set(RENAMED, number(now));
                    vec![Write::Update(update), Write::Update(at_home), list_changed(workspace, &model, now)]
                };
                Ok(ChangePlan::Write(writes, ()))
            })
            .await?;
        let model = self.model_find(new_name).await?;
        self.model_from_item(&model).await
    }

    /// Returns the version with the highest number in each stage, or only in the stages that
    /// `stages` returns. Takes one request, and one more if there are such versions.
    pub async fn model_latest_versions(
        &self,
        name: &Granted<RegisteredModelName>,
        stages: impl FnOnce() -> Result<Vec<ModelStage>>,
    ) -> Result<Vec<ModelVersion>> {
        let name = name.as_str();
        let model = self.model_find(name).await?;
        let stages = stages()?;
        let mut latest = model.latest();
        latest.retain(|stage, _| stages.is_empty() || stages.contains(stage));
        let mut versions = self.versions_of(&model, latest.into_values().collect()).await?;
        for version in &mut versions {
            version.aliases = model.aliases_of(version.version.parse().unwrap_or_default());
        }
        Ok(versions)
    }

    /// Builds a model from its item. Takes further requests if the model has rows of tags, or
    /// latest versions.
    pub(super) async fn model_from_item(&self, model: &Model) -> Result<RegisteredModel> {
        let versions = self.versions_of(model, model.latest().into_values().collect()).await?;
        let rows = self.model_tag_rows(model).await?;
        model_entity(model, &rows, versions)
    }

    /// Reads the rows that contain a model's large tags. Takes one request, or none if it has no
    /// such rows.
    pub(super) async fn model_tag_rows(&self, model: &Model) -> Result<Vec<Item>> {
        if !model.item.has(TAG_ROWS) {
            return Ok(Vec::new());
        }
        Ok(self.table.query(Query::of(rows::ModelTag::all(&model.home()))).await?)
    }

    /// Reads the versions with these numbers, leaving out those that do not exist. Takes one
    /// request per 100 versions.
    pub(super) async fn versions_of(&self, model: &Model, mut numbers: Vec<u32>) -> Result<Vec<ModelVersion>> {
        numbers.sort_unstable();
        let home = model.home();
        let keys: Vec<_> = numbers.iter().map(|number| rows::ModelVersion::key(&home, &Ordinal(*number))).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let items = self.table.get_many(&keys).await?;
        let found = numbers.iter().zip(&keys).filter_map(|(number, key)| Some((*number, items.get(key)?)));
        let versions = found.map(|(number, item)| async move {
            let rows = self.version_tag_rows(&model.home(), number, item).await?;
            version_entity(&model.name, number, item, &rows, model.renamed())
        });
        futures::future::try_join_all(versions).await
    }
}

/// Returns the item of a model under a new name.
fn renamed_item(model: &Model, new_name: &str, now: i64) -> Item {
    let mut item = model.item.clone();
    let key = ModelKey::of(&model.workspace, new_name);
    item.0.extend(Item::new(model_key(&key)).0);
    let item = item.with(NAME, text(new_name)).with(UPDATED, number(now)).with(RENAMED, number(now));
    let home = model.home();
    let mut item = item.with(HOME, text(home.to_attribute()));
    if home == key {
        item.take(HOME);
    }
    item
}

/// Checks whether a model's item has the tag of prompts, regardless of the tag's value
/// (`has_prompt_tag`).
fn has_prompt_tag(item: &Item) -> bool {
    item.map(TAGS).is_some_and(|tags| tags.contains_key(IS_PROMPT_TAG))
}

fn is_tagged(tags: &[(String, String)]) -> bool {
    tags.iter().any(|(key, _)| key == IS_PROMPT_TAG)
}

/// Returns MLflow's error about a name that is in use (`handle_resource_already_exist_error`).
fn name_taken(name: &str, item: &Item, new_is_prompt: bool) -> Error {
    if item.get(NAME) != Some(name) {
        return Error::key_taken("registered model");
    }
    let old_is_prompt = has_prompt_tag(item);
    let entity = |is_prompt| if is_prompt { "Prompt" } else { "Registered Model" };
    let (old, new) = (entity(old_is_prompt), entity(new_is_prompt));
    let message = if old == new {
        format!("{new} (name={name}) already exists.")
    } else {
        format!(
            "Tried to create a {} with name {}, but the name is already taken by a {}. MLflow does not allow creating a \
             model and a prompt with the same name.",
            new.to_lowercase(),
            python::repr(name),
            old.to_lowercase()
        )
    };
    Error::new(ErrorCode::ResourceAlreadyExists, message)
}
