//! Searches of registered models.

use std::collections::HashMap;

use access::Visibility;
use entities::listing::{ReadBudget, ResponsePage, fill};
use futures::future::try_join_all;
use key_schema::{Key, ModelKey, ModelKind, Ordinal, rows};
use mlflow_api::registry::{RegisteredModel, SearchModelsResponse};
use mlflow_api::{Result, Workspace, limits_registry as limits};
use search::{Fingerprint, RegisteredModelFilter, SortKey, decode_page_token, parse_registered_model_search};

use super::attributes::NAME;
use super::model_criteria::{ModelCriteria, SearchableModel, is_visible};
use super::model_entry::ModelEntry;
use super::model_item::{Model, model_entity, model_key};
use super::model_list::ModelList;
use super::version_item::version_entity;
use super::{RegistrySearch, Store};

impl Store {
    /// Searches registered models, ordered by name or last change, in either direction. Takes one
    /// request for the part of the list in this order that the page needs, one per 100 models of
    /// the page, and one per 100 of their latest versions. If the filter rejects models, more of
    /// the list has to be read, and the rejected models as well. A search for models and prompts at
    /// once reads all models and prompts whose names may match the filter.
    pub async fn model_search(
        &self,
        workspace: &Workspace,
        visible: &Visibility,
        search: &RegistrySearch,
    ) -> Result<SearchModelsResponse> {
        limits::max_models(search.max_results)?;
        let (filter, order) = parse_registered_model_search(&search.filter, &search.order_by)?;
        let fingerprint = Fingerprint::of_registered_model_search(&search.filter, &search.order_by);
        let after: Option<SortKey> = decode_page_token(fingerprint, &search.page_token)?;
        let page_size = usize::try_from(search.max_results).unwrap_or_default();
        let reading = ReadBudget::default();
        let store = Self { table: reading.of(&self.table), ..self.clone() };
        let wanted = ModelCriteria { store, workspace, visible, filter, order, after, hides_runs: search.hides_runs };
        let page = match kinds(&wanted.filter) {
            [kind] => {
                let list = ModelList::of(*kind, &wanted);
                match list {
                    Some(list) if !list.prefers_names(&wanted).await? => list.page(&wanted, page_size, reading).await?,
                    _ => self.models_of_names(&wanted, &[*kind], page_size, reading).await?,
                }
            }
            kinds => self.models_of_names(&wanted, kinds, page_size, reading).await?,
        };
        let (registered_models, next_page_token) = page.finish(fingerprint)?;
        Ok(SearchModelsResponse { registered_models, next_page_token })
    }

    /// Searches all models of these kinds whose names may match the filter, and returns a page of
    /// them.
    async fn models_of_names(
        &self,
        wanted: &ModelCriteria<'_>,
        kinds: &[ModelKind],
        page_size: usize,
        reading: ReadBudget,
    ) -> Result<ResponsePage<SortKey>> {
        let beginning = wanted.filter.name_beginning();
        let names = kinds.iter().map(|kind| self.model_names(wanted.workspace, *kind, beginning));
        let names = try_join_all(names).await?.into_iter().flatten().filter(|name| wanted.name_passes(name));
        let listed: Vec<_> = names.map(ModelEntry::named).collect();
        fill(wanted, &listed, false, page_size, reading).await
    }

    /// Returns the models with these names, leaving out those that do not exist. Takes one request
    /// per 100 names.
    pub(super) async fn models_named(&self, names: &[String]) -> Result<Vec<Model>> {
        let keys: Vec<_> = names.iter().map(|name| model_key(&self.key_of(name))).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut items = self.table.get_many(&keys).await?;
        let of_name =
            |(name, key): (&String, &Key)| items.remove(key).filter(|item| item.get(NAME) == Some(name.as_str()));
        names.iter().zip(&keys).filter_map(of_name).map(Model::of).collect()
    }

    /// Builds models with those of their latest versions that are visible. Takes one request per
    /// 100 versions, and one for each version that has tags that are too large for its document.
    pub(super) async fn models_from_items(
        &self,
        found: &[SearchableModel],
        visible: &Visibility,
    ) -> Result<Vec<RegisteredModel>> {
        let key = |home: &ModelKey, version: u32| rows::ModelVersion::key(home, &Ordinal(version));
        let latest = |model: &Model| {
            let shown = is_visible(visible, model, true).then(|| model.latest().into_values());
            let mut versions: Vec<_> = shown.into_iter().flatten().collect();
            versions.sort_unstable();
            versions
        };
        let keys: Vec<_> = found
            .iter()
            .flat_map(|SearchableModel { model, .. }| {
                let home = model.home();
                latest(model).into_iter().map(move |version| key(&home, version)).collect::<Vec<_>>()
            })
            .collect();
        let items = if keys.is_empty() { HashMap::new() } else { self.table.get_many(&keys).await? };
        let items = &items;
        let models = found.iter().map(|SearchableModel { model, tag_rows, .. }| async move {
            let home = model.home();
            let mut versions = Vec::new();
            for version in latest(model) {
                let Some(item) = items.get(&key(&home, version)) else { continue };
                let rows = self.version_tag_rows(&home, version, item).await?;
                versions.push(version_entity(&model.name, version, item, &rows, model.renamed())?);
            }
            model_entity(model, tag_rows, versions)
        });
        try_join_all(models).await
    }
}

/// Returns the kinds of models that may match the search. Each kind has separate lists.
fn kinds(filter: &RegisteredModelFilter) -> &'static [ModelKind] {
    if filter.tags.prompts_only() {
        &[ModelKind::Prompt]
    } else if filter.tags.prompts {
        &[ModelKind::Model, ModelKind::Prompt]
    } else {
        &[ModelKind::Model]
    }
}
