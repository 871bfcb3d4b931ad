//! Tags of model versions.

use access::Granted;
use entities::documents::{Document, DocumentChange, MAX_INLINE_VALUE_BYTES as SHORT};
use entities::entry_name;
use key_schema::{Key, ModelKey, Name, Ordinal, rows};
use mlflow_api::registry::VersionNumber;
use mlflow_api::webhooks::{EventData, WebhookEvent as Event};
use mlflow_api::{RegisteredModelName, Result, limits_registry as limits};
use table::{Condition, Failure, Item, Update, Write, number, text};

use super::Store;
use super::attributes::{TAG_ROWS, TAGS, UNSEEN};
use super::model_home::is_at_home;
use super::stored_model::MAX_INLINE_VALUE_BYTES;
use super::version_item::VersionItem;

/// Maximum number of tags that may be set in sequence before the size of the document is checked.
const MAX_UNCHECKED_TAGS: i64 = 64;

/// A version's document.
pub(super) struct VersionDocument<'a> {
    pub(super) name: &'a str,
    pub(super) home: ModelKey,
    pub(super) version: &'a VersionNumber,
}

impl VersionDocument<'_> {
    fn ordinal(&self) -> Ordinal {
        Ordinal(self.version.number.unwrap_or_default())
    }
}

impl Document for VersionDocument<'_> {
    fn key(&self) -> Key {
        rows::ModelVersion::key(&self.home, &self.ordinal())
    }

    fn tag_row(&self, tag: &Name) -> Key {
        rows::ModelVersionTag::key(&self.home, &self.ordinal(), tag)
    }

    fn inline_value(&self) -> usize {
        MAX_INLINE_VALUE_BYTES
    }

    fn writable(&self) -> Condition {
        Condition::Always
    }

    fn check(&self, item: Option<&Item>) -> Result<()> {
        item.map(|_| ()).ok_or_else(|| self.version.not_found(self.name))
    }
}

impl Store {
    /// Sets a tag of a version. Takes one request if the model's home is the partition of its name,
    /// the version's document is not full, and the value has at most 1 KB. Otherwise, it takes
    /// three or more. Takes one more if a webhook subscribes to tags of versions.
    pub async fn version_set_tag(
        &self,
        name: &Granted<RegisteredModelName>,
        version: &str,
        key: &str,
        value: &str,
    ) -> Result<()> {
        let name = name.as_str();
        limits::model_name(name)?;
        let as_sent = version;
        let version = limits::version(version)?;
        limits::version_tag(key, value)?;
        let possible = [Event::ModelVersionTagSet, Event::PromptVersionTagSet];
        let event = self
            .version_event(name, &version, &possible, |is_prompt| EventData::VersionTagSet {
                is_prompt,
                name,
                version: as_sent,
                key,
                value,
            })
            .await?;
        let event = event.as_slice();
        let unseen = Condition::Any(vec![
            Condition::Missing(UNSEEN.into()),
            Condition::Below(UNSEEN.into(), number(MAX_UNCHECKED_TAGS)),
        ]);
        let set = |update: Update| {
            let path = (TAGS, entry_name(key).into_owned());
            update.set((path.0, path.1.as_str()), text(value)).only_if(unseen).add(UNSEEN, number(1))
        };
        if value.len() <= SHORT && self.version_change_at_home(name, &version, set, event).await? {
            return Ok(());
        }
        let home = self.version_find(name, &version).await?.model.home();
        let document = VersionDocument { name, home, version: &version };
        let tags = vec![(key.to_owned(), value.to_owned())];
        let change = DocumentChange { tags, set: vec![(UNSEEN.name(), number(0))], ..DocumentChange::default() };
        // The change is planned from the current document. If the document turns out to be full,
        // this is recorded in the document.
        entities::documents::change_with(&self.table, &document, change, event).await?;
        Ok(())
    }

    /// Deletes a tag of a version, if the tag exists. Takes one request if the model's home is the
    /// partition of its name and the version has no rows of tags. Takes one more if a webhook
    /// subscribes to tags of versions.
    pub async fn version_delete_tag(
        &self,
        name: &Granted<RegisteredModelName>,
        version: &str,
        key: &str,
    ) -> Result<()> {
        let name = name.as_str();
        limits::model_name(name)?;
        let as_sent = version;
        let version = limits::version(version)?;
        limits::tag_key(key)?;
        let possible = [Event::ModelVersionTagDeleted, Event::PromptVersionTagDeleted];
        let event = self
            .version_event(name, &version, &possible, |is_prompt| EventData::VersionTagDeleted {
                is_prompt,
                name,
                version: as_sent,
                key,
            })
            .await?;
        let event = event.as_slice();
        let remove = |update: Update| update.remove((TAGS, entry_name(key).as_ref()));
        if self.version_change_at_home(name, &version, remove, event).await? {
            return Ok(());
        }
        let VersionItem { model, item, .. } = self.version_find(name, &version).await?;
        let document = VersionDocument { name, home: model.home(), version: &version };
        if event.is_empty() {
            entities::documents::remove_tag(&self.table, &document, key).await?;
            return Ok(());
        }
        entities::documents::remove_tag_with(&self.table, &document, Some(&item), key, event).await
    }

    /// Returns the write of the event of a call about a version, or `None` if no webhook subscribes
    /// to it. `data` returns the content of the event, given whether the model is a prompt. Takes
    /// one request if a webhook subscribes to one of the possible events.
    async fn version_event<'a>(
        &self,
        name: &str,
        version: &VersionNumber,
        possible: &[Event],
        data: impl FnOnce(bool) -> EventData<'a>,
    ) -> Result<Option<Write>> {
        let Some(events) = self.call_events(possible).await? else { return Ok(None) };
        let model = self.version_find(name, version).await?.model;
        self.event_write(Some(&events), &model.home(), &data(model.is_prompt())).await
    }

    /// Changes a version in a transaction with the row of the call's event. Returns `false` unless
    /// the version is in the partition of its model's name and has no rows of tags. The caller of
    /// this method then has to read the version first.
    async fn version_change_at_home(
        &self,
        name: &str,
        version: &VersionNumber,
        change: impl FnOnce(Update) -> Update,
        event: &[Write],
    ) -> Result<bool> {
        let Some(number) = version.number else { return Err(version.not_found(name)) };
        let key = self.key_of(name);
        let update = Update::new(rows::ModelVersion::key(&key, &Ordinal(number)));
        let update = change(update).only_if(Condition::Missing(TAG_ROWS.into()));
        let mut writes = vec![Write::Update(update), is_at_home(&key, name, self.authorizer_writes.model_id(name))];
        writes.extend_from_slice(event);
        match self.table.transact(&writes).await {
            Ok(()) => Ok(true),
            Err(Failure::Cancelled(_) | Failure::TooLarge) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }
}
