//! Tags of registered models.

use access::Granted;
use std::sync::OnceLock;

use entities::documents::{Document, DocumentChange};
use key_schema::{Key, ModelKey, Name, rows};
use mlflow_api::registry::IS_PROMPT_TAG;
use mlflow_api::webhooks::{EventData, WebhookEvent as Event};
use mlflow_api::{Error, RegisteredModelName, Result, Workspace, limits_registry as limits};
use table::{ChangePlan, Condition, Item, Update, Write, number, text};

use super::Store;
use super::attributes::{EDITS, ID, NAME, TAGS};
use super::model_item::{Model, kind_of_tag, list_key, list_row, model_key, model_not_found};

/// The document of a model. The document has to be read before the model's other rows, because only
/// its item contains the home.
pub(super) struct ModelDocument<'a> {
    name: &'a str,
    key: ModelKey,
    /// Id of the model that the request was authorized for, if authorization checked one. The name
    /// may have been reused by another model in the meantime.
    id: Option<&'a str>,
    model: OnceLock<Model>,
}

impl Document for ModelDocument<'_> {
    fn key(&self) -> Key {
        model_key(&self.key)
    }

    fn tag_row(&self, tag: &Name) -> Key {
        let home = self.model.get().map_or_else(|| self.key.clone(), Model::home);
        rows::ModelTag::key(&home, tag)
    }

    /// Returns a condition that prevents a change that was planned for one model from being applied
    /// to another model with its name, or to a model that has another name.
    fn writable(&self) -> Condition {
        match self.model.get() {
            Some(model) => Condition::Equals(ID.into(), text(model.id())),
            None => match self.id {
                Some(id) => Condition::Equals(ID.into(), text(id)),
                None => Condition::Equals(NAME.into(), text(self.name)),
            },
        }
    }

    fn finished(&self, update: Update) -> Update {
        update.add(EDITS, number(1))
    }

    fn check(&self, item: Option<&Item>) -> Result<()> {
        let model = Model::named(self.name, item.cloned())?;
        if self.id.is_some_and(|id| id != model.id()) {
            return Err(model_not_found(self.name));
        }
        if self.model.get_or_init(|| model.clone()).id() == model.id() {
            return Ok(());
        }
        Err(Error::unavailable("a model was replaced by another of its name"))
    }
}

impl Store {
    /// Returns the document of the model with this name.
    pub(super) fn model_document<'a>(&'a self, name: &'a str) -> ModelDocument<'a> {
        ModelDocument {
            name,
            key: self.key_of(name),
            id: self.authorizer_writes.model_id(name),
            model: OnceLock::new(),
        }
    }

    /// Sets a tag of a model. Takes one request, three more for values of more than 1 KB, and two
    /// for the tag that turns the model into a prompt. Takes one more if a webhook subscribes to
    /// tags of prompts, and another one if the model is a prompt.
    pub async fn model_set_tag(
        &self,
        workspace: &Workspace,
        name: &Granted<RegisteredModelName>,
        key: &str,
        value: &str,
    ) -> Result<()> {
        let name = name.as_str();
        limits::model_name(name)?;
        limits::model_tag(key, value)?;
        if key == IS_PROMPT_TAG {
            return self.model_set_kind(workspace, name, Some(value)).await;
        }
        let events = self.call_events(&[Event::PromptTagSet]).await?;
        let event = match &events {
            Some(_) => {
                let model = self.model_find(name).await?;
                let data = EventData::PromptTagSet { name, key, value };
                self.event_write(events.as_ref().filter(|_| model.is_prompt()), &model.home(), &data).await?
            }
            None => None,
        };
        let change = DocumentChange { tags: vec![(key.to_owned(), value.to_owned())], ..DocumentChange::default() };
        entities::documents::change_with(&self.table, &self.model_document(name), change, event.as_slice()).await?;
        Ok(())
    }

    /// Deletes a tag of a model, if the tag exists. Takes one request, and one more if a webhook
    /// subscribes to tags of prompts.
    pub async fn model_delete_tag(
        &self,
        workspace: &Workspace,
        name: &Granted<RegisteredModelName>,
        key: &str,
    ) -> Result<()> {
        let name = name.as_str();
        limits::model_name(name)?;
        limits::tag_key(key)?;
        if key == IS_PROMPT_TAG {
            return self.model_set_kind(workspace, name, None).await;
        }
        let document = self.model_document(name);
        if let Some(events) = self.call_events(&[Event::PromptTagDeleted]).await? {
            let model = self.model_find(name).await?;
            let data = EventData::PromptTagDeleted { name, key };
            let events = Some(&events).filter(|_| model.is_prompt());
            let event = self.event_write(events, &model.home(), &data).await?;
            if event.is_some() {
                let item = Some(&model.item);
                return entities::documents::remove_tag_with(&self.table, &document, item, key, event.as_slice()).await;
            }
        }
        entities::documents::remove_tag(&self.table, &document, key).await?;
        Ok(())
    }

    /// Sets or removes the tag that turns a model into a prompt. The transaction also moves the
    /// model from one list to the other, so that tag and list agree even after concurrent requests.
    /// The tag is stored in the document, regardless of its length.
    async fn model_set_kind(&self, workspace: &Workspace, name: &str, value: Option<&str>) -> Result<()> {
        let kind = kind_of_tag(value);
        // The event is sent if the model is a prompt afterwards, as in MLflow.
        let is_prompt = value.is_some_and(|value| value.to_lowercase() == "true");
        let events = if is_prompt { self.call_events(&[Event::PromptTagSet]).await? } else { None };
        let events = events.as_ref();
        let data = &EventData::PromptTagSet { name, key: IS_PROMPT_TAG, value: value.unwrap_or_default() };
        self.table
            .change("a model", |refusal| async move {
                let model = self.model_after_refusal(name, refusal).await?;
                let before = model.kind();
                let path = (TAGS, IS_PROMPT_TAG);
                let update = model.unchanged();
                let update = match value {
                    Some(value) => update.set(path, text(value)),
                    None => update.remove(path),
                };
                // If the value of the tag was long when the model was created, there is a row for
                // it.
                let row = rows::ModelTag::key(&model.home(), &IS_PROMPT_TAG.into());
                let mut writes = vec![Write::Update(update), Write::Delete(row, Condition::Always)];
                if before != kind {
                    writes.push(Write::Delete(list_key(workspace, name, before), Condition::Always));
                    writes.push(Write::Put(list_row(workspace, name, kind, model.changed()), Condition::Always));
                }
                writes.extend(self.event_write(events, &model.home(), data).await?);
                Ok::<_, Error>(ChangePlan::Write(writes, ()))
            })
            .await
    }
}
