//! Searching registered models.

use access::{Guarded, Visible};
use std::collections::HashMap;

use entities::entries;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, ModelKind, Name, Ordinal, rows};
use listing::{Candidates, Pace, Page, Reading, fill};
use mlflow_api::registry::{Models, RegisteredModel};
use mlflow_api::tracking::KeyValue;
use mlflow_api::{Error, RegisteredModelName, Result, Workspace, limits_registry as limits};
use search::{
    Fingerprint, RegisteredModelFields, RegisteredModelFilter, RegisteredModelOrder, SortKey, decode_page_token,
    parse_registered_model_search,
};
use table::Item;

use super::attributes::{NAME, TAGS};
use super::model_item::{Model, model_entity, model_key, tag};
use super::model_list::{Listed, ModelList};
use super::version_item::version_entity;
use super::{Search, Store};

/// Models whose tags are read at a time.
const AT_ONCE: usize = 16;

/// A model as a search sees it.
pub(super) struct Candidate {
    model: Model,
    tag_rows: Vec<Item>,
    tags: Vec<KeyValue>,
}

impl Candidate {
    /// About how many bytes it has.
    fn size(&self) -> usize {
        self.model.item.size() + self.tag_rows.iter().map(Item::size).sum::<usize>()
    }
}

impl RegisteredModelFields for Candidate {
    fn name(&self) -> &str {
        &self.model.name
    }

    fn last_updated(&self) -> i64 {
        self.model.changed()
    }

    fn tag(&self, key: &str) -> Option<&str> {
        tag(&self.tags, key)
    }
}

/// Whether a list may show the model of this name.
pub(super) fn is_visible(visible: &Visible, name: &str) -> bool {
    visible.shows(&Guarded::RegisteredModel(RegisteredModelName::named(name)))
}

impl Store {
    /// Searches registered models, in the order of names or of the last change, in either direction: one request for the page's part of
    /// that list, one per 100 of its models and one per 100 of their latest versions, and as much again as the filter refuses. Where
    /// models and prompts are asked for at once, all whose names may pass are read.
    pub async fn model_search(&self, workspace: &Workspace, visible: &Visible, search: &Search) -> Result<Models> {
        limits::max_models(search.max_results)?;
        let (filter, order) = parse_registered_model_search(&search.filter, &search.order_by)?;
        let fingerprint = Fingerprint::of_registered_model_search(&search.filter, &search.order_by);
        let after: Option<SortKey> = decode_page_token(fingerprint, &search.page_token)?;
        let page_size = usize::try_from(search.max_results).unwrap_or_default();
        let reading = Reading::default();
        let store = Self { table: reading.of(&self.table), ..self.clone() };
        let wanted = Wanted { store, workspace, visible, filter, order, after };
        let page = match kinds(&wanted.filter) {
            [kind] => {
                let list = ModelList::of(*kind, &wanted);
                match list {
                    Some(list) if !list.is_longer_than_names(&wanted).await? => {
                        list.page(&wanted, page_size, reading).await?
                    }
                    _ => self.models_of_names(&wanted, &[*kind], page_size, reading).await?,
                }
            }
            kinds => self.models_of_names(&wanted, kinds, page_size, reading).await?,
        };
        let (registered_models, next_page_token) = page.finish(fingerprint)?;
        Ok(Models { registered_models, next_page_token })
    }

    /// A page of all models of some kinds whose names may pass.
    async fn models_of_names(
        &self,
        wanted: &Wanted<'_>,
        kinds: &[ModelKind],
        page_size: usize,
        reading: Reading,
    ) -> Result<Page<SortKey>> {
        let beginning = wanted.filter.name_beginning();
        let names = kinds.iter().map(|kind| self.model_names(wanted.workspace, *kind, beginning));
        let names = try_join_all(names).await?.into_iter().flatten().filter(|name| wanted.name_passes(name));
        let listed: Vec<_> = names.map(Listed::named).collect();
        fill(wanted, &listed, false, page_size, reading).await
    }

    /// The models of these names that are there. One request per 100.
    pub(super) async fn models_named(&self, names: &[String]) -> Result<Vec<Model>> {
        let keys: Vec<_> = names.iter().map(|name| model_key(name)).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut items = self.table.get_many(&keys).await?;
        let of_name =
            |(name, key): (&String, &Key)| items.remove(key).filter(|item| item.text(NAME) == Some(name.as_str()));
        names.iter().zip(&keys).filter_map(of_name).map(Model::of).collect()
    }

    /// Models with their latest versions. One request per 100 of these, and one for each that has tags too big for its document.
    async fn models_whole(&self, found: &[Candidate]) -> Result<Vec<RegisteredModel>> {
        let key = |home: &Name, version: u32| rows::ModelVersion::key(home, &Ordinal(version));
        let latest = |model: &Model| {
            let mut versions: Vec<_> = model.latest().into_values().collect();
            versions.sort_unstable();
            versions
        };
        let keys: Vec<_> = found
            .iter()
            .flat_map(|Candidate { model, .. }| {
                let home = model.home();
                latest(model).into_iter().map(move |version| key(&home, version)).collect::<Vec<_>>()
            })
            .collect();
        let items = if keys.is_empty() { HashMap::new() } else { self.table.get_many(&keys).await? };
        let items = &items;
        let models = found.iter().map(|Candidate { model, tag_rows, .. }| async move {
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

/// What a model on a page has to be.
pub(super) struct Wanted<'a> {
    pub(super) store: Store,
    pub(super) workspace: &'a Workspace,
    visible: &'a Visible,
    pub(super) filter: RegisteredModelFilter,
    pub(super) order: RegisteredModelOrder,
    pub(super) after: Option<SortKey>,
}

impl Wanted<'_> {
    /// Whether a model of this name may pass, and may be shown.
    fn name_passes(&self, name: &str) -> bool {
        self.filter.name_passes(name) && is_visible(self.visible, name)
    }

    /// Whether a model may stand on the page, as far as its list says.
    pub(super) fn may_come(&self, listed: &Listed) -> bool {
        self.name_passes(&listed.name) && self.after.as_ref().is_none_or(|after| self.order.key(listed) > *after)
    }

    /// Whether every model of a list passes.
    pub(super) fn refuses_none(&self) -> bool {
        self.filter.names.is_empty() && !self.refuses_models() && matches!(self.visible, Visible::Everything)
    }

    /// Whether models are refused for more than lists say.
    pub(super) fn refuses_models(&self) -> bool {
        !self.filter.tags.tests.is_empty()
    }
}

impl Candidates for Wanted<'_> {
    type Listed = Listed;
    type Found = Candidate;
    type Entity = RegisteredModel;

    async fn read(&self, listed: &[Listed]) -> Result<Vec<(SortKey, Candidate, usize)>> {
        let names: Vec<_> = listed.iter().map(|listed| listed.name.clone()).collect();
        // One that is changed now stands where its list had it.
        let in_list = listed.iter().filter(|listed| listed.changed.is_some());
        let in_list: HashMap<_, _> = in_list.map(|listed| (listed.name.as_str(), listed)).collect();
        let models = self.store.models_named(&names).await?;
        let candidates = models.into_iter().map(|model| async move {
            let tag_rows = self.store.model_tag_rows(&model).await?;
            let tags = entries(&model.item, TAGS, &tag_rows)?.into_iter();
            let tags = tags.map(|(key, value)| KeyValue { key, value }).collect();
            Ok::<_, Error>(Candidate { model, tag_rows, tags })
        });
        let mut candidates = stream::iter(candidates.collect::<Vec<_>>()).buffered(AT_ONCE);
        let (mut found, mut pace) = (Vec::new(), Pace::default());
        while let Some(candidate) = candidates.try_next().await? {
            pace.keep().await;
            let listed = in_list.get(candidate.model.name.as_str());
            let key = listed.map_or_else(|| self.order.key(&candidate), |listed| self.order.key(*listed));
            if self.filter.matches(&candidate) && self.after.as_ref().is_none_or(|after| key > *after) {
                let bytes = candidate.size();
                found.push((key, candidate, bytes));
            }
        }
        Ok(found)
    }

    async fn complete(&self, found: Vec<Candidate>) -> Result<Vec<RegisteredModel>> {
        self.store.models_whole(&found).await
    }
}

/// The lists that hold what may pass.
fn kinds(filter: &RegisteredModelFilter) -> &'static [ModelKind] {
    if filter.tags.prompts_only() {
        &[ModelKind::Prompt]
    } else if filter.tags.prompts {
        &[ModelKind::Model, ModelKind::Prompt]
    } else {
        &[ModelKind::Model]
    }
}
