//! Creating and reading model versions.

use access::Granted;
use artifact_access::{StoredVersion, read_version};
use entities::now_ms;
use key_schema::{ModelKey, Ordinal, rows};
use mlflow_api::registry::{ModelStage, ModelVersion, VersionNumber};
use mlflow_api::webhooks::{EventData, WebhookEvent as Event};
use mlflow_api::{Error, RegisteredModelName, Result, Workspace, limits_registry as limits};
use table::{ChangePlan, Condition, Item, Query, Write, number};

use super::Store;
use super::attributes::{LATEST, TAG_ROWS, UPDATED, VERSIONS};
use super::call_event::take_rows_and_event;
use super::model_item::{Model, list_changed};
use super::stored_model::{StoredModelVersion, run_row};
use super::version_item::{VersionItem, version_entity};
use super::version_source::{Owners, ResolvedSource, VersionSource};

/// A version to create.
#[derive(Clone, Debug, Default)]
pub struct NewVersion {
    /// Source of the version.
    pub source: VersionSource,
    /// Whether its tags make it a version of a prompt.
    pub is_prompt: bool,
    /// Tags. If a key occurs twice, its last value is used.
    pub tags: Vec<(String, String)>,
    /// Link to the run. May be empty.
    pub run_link: String,
    /// Description. May be empty.
    pub description: String,
}

impl NewVersion {
    /// Returns the content of the event about the version's creation.
    fn event_data<'a>(&'a self, name: &'a str, version: u32, source: &'a ResolvedSource) -> EventData<'a> {
        let Self { tags, description, .. } = self;
        if self.is_prompt {
            return EventData::PromptVersion { name, version, tags, description };
        }
        let (source, run_id) = (&source.uri, source.run_id.as_deref());
        EventData::ModelVersion { name, version, source, run_id, tags, description }
    }
}

impl Store {
    /// Creates a version. Takes two requests, and more to check a source that is managed by this
    /// server or belongs to a logged model. Costs ten to twelve write units for up to 1 KB.
    ///
    /// The transaction also increments the model's number of versions, so that version numbers are
    /// neither repeated nor skipped. If another request increments it first, the request continues
    /// from the model's new state.
    pub async fn version_create(
        &self,
        workspace: &Workspace,
        name: &Granted<RegisteredModelName>,
        new: &NewVersion,
        owners: &Owners,
    ) -> Result<ModelVersion> {
        let name = name.as_str();
        let source = self.version_source(&new.source, owners, new.is_prompt).await?;
        limits::model_name(name)?;
        for (key, value) in &new.tags {
            limits::version_tag(key, value)?;
        }
        let source = &source;
        let possible = if new.is_prompt { Event::PromptVersionCreated } else { Event::ModelVersionCreated };
        let events = self.call_events(&[possible]).await?;
        let events = events.as_ref();
        self.table
            .change("a model", |refusal| async move {
                // The first item of the transaction is the version, and the second one is the
                // model.
                let model = match refusal.item(1) {
                    Some(item) => self.model_named(name, Some(item))?,
                    None => self.model_find(name).await?,
                };
                let (version, now) = (model.count() + 1, now_ms());
                let (item, tag_rows) = new_item(&model, version, new, source);
                let update = model
                    .same()
                    .only_if(Condition::Equals(VERSIONS.into(), number(model.count())))
                    .set(VERSIONS, number(version))
                    .set((LATEST, ModelStage::None.name()), number(version))
                    .set(UPDATED, number(now));
                let of_run = run_row(&model.workspace, &model.home(), version, source.run_id.as_deref());
                let mut others = vec![Write::Update(update), list_changed(workspace, &model, now)];
                others.extend(of_run.map(|row| Write::Put(row, Condition::Always)));
                if let Some(id) = source.model_id.as_deref().filter(|_| !new.is_prompt) {
                    others
                        .extend(self.logged_model_with_version(owners.logged_model(id)?, &model.name, version).await?);
                }
                let data = new.event_data(&model.name, version, source);
                let event = self.event_write(events, &model.home(), &data).await?;
                take_rows_and_event(&mut others, tag_rows.clone(), event)?;
                let entity = version_entity(&model.name, version, &item, &tag_rows, 0)?;
                Ok::<_, Error>(ChangePlan::Create(item, others, entity))
            })
            .await
    }

    /// Reads a version and its model. Takes one request, or two if the model's home is not the
    /// partition of its name.
    pub(super) async fn version_find(&self, name: &str, wanted: &VersionNumber) -> Result<VersionItem> {
        let not_found = || wanted.not_found(name);
        let number = wanted.number.ok_or_else(not_found)?;
        let StoredVersion { model, number, version } =
            read_version(&self.table, &self.authorizer_writes, name, number).await?.ok_or_else(not_found)?;
        Ok(VersionItem { model: Model::of(model)?, number, item: version })
    }

    /// Reads a version. Takes one request, one more if its model was renamed, and one more if it
    /// has tags that are too large for its document.
    pub async fn version_get(&self, name: &Granted<RegisteredModelName>, version: &str) -> Result<ModelVersion> {
        let name = name.as_str();
        limits::model_name(name)?;
        let found = self.version_find(name, &limits::version(version)?).await?;
        self.version_from_item(&found).await
    }

    /// Returns a version as it is stored. Takes one request, or two if its model was renamed.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if there is no such version.
    pub async fn version_stored(&self, name: &Granted<RegisteredModelName>, version: &str) -> Result<StoredVersion> {
        let name = name.as_str();
        limits::model_name(name)?;
        let wanted = limits::version(version)?;
        let not_found = || wanted.not_found(name);
        let number = wanted.number.ok_or_else(not_found)?;
        read_version(&self.table, &self.authorizer_writes, name, number).await?.ok_or_else(not_found)
    }

    /// Builds a version from its item. Takes one more request if the version has rows of tags.
    pub(super) async fn version_from_item(&self, found: &VersionItem) -> Result<ModelVersion> {
        let model = &found.model;
        let rows = self.version_tag_rows(&model.home(), found.number, &found.item).await?;
        let version = version_entity(&model.name, found.number, &found.item, &rows, model.renamed())?;
        Ok(ModelVersion { aliases: model.aliases_of(found.number), ..version })
    }

    /// Reads the rows that contain a version's large tags. Takes one request, or none if it has no
    /// such rows.
    pub(super) async fn version_tag_rows(&self, home: &ModelKey, version: u32, item: &Item) -> Result<Vec<Item>> {
        if !item.has(TAG_ROWS) {
            return Ok(Vec::new());
        }
        Ok(self.table.query(Query::of(rows::ModelVersionTag::all(home).version(&Ordinal(version)))).await?)
    }
}

fn new_item(model: &Model, version: u32, new: &NewVersion, source: &ResolvedSource) -> (Item, Vec<Item>) {
    let stored = StoredModelVersion {
        home: &model.home(),
        workspace: &model.workspace,
        number: version,
        created: now_ms(),
        updated: None,
        stage: ModelStage::None,
        description: Some(&new.description),
        source: &source.uri,
        storage: &source.storage,
        run: source.run_id.as_deref(),
        run_link: Some(&new.run_link),
        is_aliased: false,
        tags: &new.tags,
    };
    stored.items()
}
