//! Aliases of models.
//!
//! The model's document contains the version of each alias. A local index contains the model and
//! its versions with aliases, so that one request reads both.

use access::Granted;
use key_schema::index::AliasedVersions;
use key_schema::{IndexEntry, Key, ModelKey, Ordinal, rows};
use mlflow_api::registry::{LATEST_ALIAS, ModelVersion, VersionNumber};
use mlflow_api::webhooks::{EventData, WebhookEvent as Event};
use mlflow_api::{Error, RegisteredModelName, Result, limits_registry as limits};
use table::{ChangePlan, Condition, Item, Query, Update, Write, number};

use super::Store;
use super::attributes::ALIASES;
use super::model_item::{Model, model_key};
use super::version_item::VersionItem;

/// Maximum number of items that one request reads: the model, and versions with aliases.
const MAX_ITEMS: usize = 25;

impl Store {
    /// Reads the version of an alias. Takes one request, and one more in each of these cases: the
    /// model was renamed; more than 24 of its versions have aliases; the version has tags that are
    /// too large for its document. The alias `latest` takes two requests.
    pub async fn alias_get(&self, name: &Granted<RegisteredModelName>, alias: &str) -> Result<ModelVersion> {
        let name = name.as_str();
        limits::model_name(name)?;
        limits::alias(alias)?;
        if alias.to_lowercase() == LATEST_ALIAS {
            return self.version_get_latest(name).await;
        }
        let key = self.key_of(name);
        let mut aliased = self.aliased(&key).await?;
        let model = self.model_named(name, take(&mut aliased, &model_key(&key)))?;
        let number = model.aliases().get(alias).copied();
        let number = number.ok_or_else(|| Error::invalid(format!("Registered model alias {alias} not found.")))?;
        let home = model.home();
        if !model.is_at_home() {
            aliased = self.aliased(&home).await?;
        }
        let key = rows::ModelVersion::key(&home, &Ordinal(number));
        let item = match take(&mut aliased, &key) {
            Some(item) => Some(item),
            None => self.table.get(&key).await?,
        };
        let item = item.ok_or_else(|| VersionNumber::from(number).not_found(name))?;
        self.version_from_item(&VersionItem { model, number, item }).await
    }

    /// Reads the versions of a model that have aliases, and the model itself if its item is in this
    /// partition. Takes one request.
    async fn aliased(&self, key: &ModelKey) -> Result<Vec<Item>> {
        let query = Query::of(AliasedVersions::all(key)).whole().limit(MAX_ITEMS);
        Ok(self.table.query_page(&query).await?.items)
    }

    /// Reads the version with the highest number. Takes two requests.
    async fn version_get_latest(&self, name: &str) -> Result<ModelVersion> {
        let model = self.model_find(name).await?;
        let greatest = model.latest().into_values().max();
        let none = || Error::not_found(format!("Latest version not found for model {name}."));
        let number = greatest.ok_or_else(none)?;
        let item = self.table.get(&rows::ModelVersion::key(&model.home(), &Ordinal(number))).await?;
        self.version_from_item(&VersionItem { model, number, item: item.ok_or_else(none)? }).await
    }

    /// Sets an alias of a version. Takes two requests. If a webhook subscribes to the event, a
    /// transaction is sent even if the alias already refers to the version.
    pub async fn alias_set(&self, name: &Granted<RegisteredModelName>, alias: &str, version: &str) -> Result<()> {
        let name = name.as_str();
        limits::model_name(name)?;
        limits::new_alias(alias)?;
        let as_sent = version;
        let version = limits::version(version)?;
        let version = &version;
        let events = self.call_events(&[Event::ModelVersionAliasCreated, Event::PromptAliasCreated]).await?;
        let events = events.as_ref();
        self.table
            .change("a model", |_| async move {
                let VersionItem { model, number: wanted, .. } = self.version_find(name, version).await?;
                let before = model.aliases().get(alias).copied();
                let home = model.home();
                let is_prompt = model.is_prompt();
                let data = EventData::AliasCreated { is_prompt, name, alias, version: as_sent };
                let event = self.event_write(events, &home, &data).await?;
                if before == Some(wanted) {
                    return Ok(unchanged_with(&model, event));
                }
                let listed = Update::new(rows::ModelVersion::key(&home, &Ordinal(wanted)))
                    .indexed(AliasedVersions::key(&Ordinal(wanted)));
                let mut writes =
                    vec![Write::Update(model.unchanged().set((ALIASES, alias), number(wanted))), Write::Update(listed)];
                writes.extend(before.and_then(|before| without_alias(&model, before)));
                writes.extend(event);
                Ok::<_, Error>(ChangePlan::Write(writes, ()))
            })
            .await
    }

    /// Deletes an alias, if it exists. Takes two requests. If a webhook subscribes to the event, a
    /// transaction is sent even if the alias does not exist.
    pub async fn alias_delete(&self, name: &Granted<RegisteredModelName>, alias: &str) -> Result<()> {
        let name = name.as_str();
        limits::model_name(name)?;
        limits::alias(alias)?;
        let events = self.call_events(&[Event::ModelVersionAliasDeleted, Event::PromptAliasDeleted]).await?;
        let events = events.as_ref();
        self.table
            .change("a model", |refusal| async move {
                let model = self.model_after_refusal(name, refusal).await?;
                let data = EventData::AliasDeleted { is_prompt: model.is_prompt(), name, alias };
                let event = self.event_write(events, &model.home(), &data).await?;
                let Some(version) = model.aliases().get(alias).copied() else {
                    return Ok(unchanged_with(&model, event));
                };
                let removal = Write::Update(model.unchanged().remove((ALIASES, alias)));
                let writes = std::iter::once(removal).chain(without_alias(&model, version)).chain(event).collect();
                Ok::<_, Error>(ChangePlan::Write(writes, ()))
            })
            .await
    }
}

/// Returns the plan of a call that leaves the model as it is: the event's row if there is one, on
/// condition that the model is unchanged.
fn unchanged_with(model: &Model, event: Option<Write>) -> ChangePlan<()> {
    match event {
        Some(event) => ChangePlan::Write(vec![Write::Check(model_key(&model.key()), model.is_unchanged()), event], ()),
        None => ChangePlan::Done(()),
    }
}

/// Returns the write that removes a version from the list of versions with aliases. Returns `None`
/// if the version still has other aliases.
fn without_alias(model: &Model, version: u32) -> Option<Write> {
    if model.aliases_of(version).len() > 1 {
        return None;
    }
    let key = rows::ModelVersion::key(&model.home(), &Ordinal(version));
    Some(Write::Update(Update::new(key).only_if(Condition::item_exists()).not_indexed(AliasedVersions::INDEX)))
}

fn take(items: &mut Vec<Item>, key: &Key) -> Option<Item> {
    let position = items.iter().position(|item| item.key().as_ref() == Some(key))?;
    Some(items.swap_remove(position))
}
