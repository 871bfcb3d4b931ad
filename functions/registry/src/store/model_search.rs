//! Searching registered models.

use entities::{entries, read_all};
use futures::future::try_join_all;
use key_schema::{KeyRange, ModelKind, Name, Ordinal, rows};
use mlflow_api::registry::{Models, RegisteredModel};
use mlflow_api::tracking::KeyValue;
use mlflow_api::{Error, Result, Workspace, limits_registry as limits};
use search::{
    Fingerprint, RegisteredModelFields, RegisteredModelFilter, SortKey, decode_page_token, encode_page_token,
    parse_registered_model_search,
};
use table::{Item, Query};

use super::attributes::{NAME, TAGS, UPDATED};
use super::model_item::{Model, list_key, model_entity, model_key, tag};
use super::version_item::version_entity;
use super::{Search, Store};

/// Names that are read at least where a filter may refuse some.
const PORTION: usize = 100;

/// A model as a search sees it.
struct Candidate {
    model: Model,
    tag_rows: Vec<Item>,
    tags: Vec<KeyValue>,
}

impl RegisteredModelFields for Candidate {
    fn name(&self) -> &str {
        &self.model.name
    }

    fn last_updated(&self) -> i64 {
        self.model.item.number(UPDATED).unwrap_or_default()
    }

    fn tag(&self, key: &str) -> Option<&str> {
        tag(&self.tags, key)
    }
}

impl Store {
    /// Searches registered models. In the order of names: one request for the page's names, one per 100 of its models and one per 100
    /// of their latest versions, and more where filters on tags refuse models. In any other order, all models whose names may
    /// pass are read.
    pub async fn model_search(&self, workspace: &Workspace, search: &Search) -> Result<Models> {
        limits::max_models(search.max_results)?;
        let (filter, order) = parse_registered_model_search(&search.filter, &search.order_by)?;
        let fingerprint = Fingerprint::of_registered_model_search(&search.filter, &search.order_by);
        let after: Option<SortKey> = decode_page_token(fingerprint, &search.page_token)?;
        let page_size = usize::try_from(search.max_results).unwrap_or_default();
        let mut found = match kinds(&filter) {
            [kind] if order.is_by_name() => {
                self.models_by_name(workspace, *kind, &filter, after.as_ref(), page_size).await?
            }
            kinds => {
                let names =
                    try_join_all(kinds.iter().map(|kind| self.model_names(workspace, *kind, filter.name_beginning())))
                        .await?;
                let names = names.into_iter().flatten().filter(|name| filter.name_passes(name)).collect();
                self.candidates(names, &filter).await?
            }
        };
        found.retain(|model| after.as_ref().is_none_or(|after| order.key(model) > *after));
        found.sort_by_cached_key(|model| order.key(model));
        let has_more = found.len() > page_size;
        found.truncate(page_size);
        let last = found.last().filter(|_| has_more).map(|model| order.key(model));
        let next_page_token = last.map(|key| encode_page_token(fingerprint, &key)).transpose()?;
        Ok(Models { registered_models: self.models_whole(found).await?, next_page_token })
    }

    /// The models of a page and one more if there is one, in the order of names. Names that have no room in a key are in the order of
    /// their beginnings and hashes.
    async fn models_by_name(
        &self,
        workspace: &Workspace,
        kind: ModelKind,
        filter: &RegisteredModelFilter,
        after: Option<&SortKey>,
        page_size: usize,
    ) -> Result<Vec<Candidate>> {
        let list = names_of(workspace, kind, filter.name_beginning());
        let after = after.and_then(SortKey::first_text).map(|name| list_key(workspace, name, kind).sk);
        let wanted = page_size + 1;
        let mut query = Query::of(match &after {
            Some(after) => list.starting_at_key(after),
            None => list,
        });
        let mut found = Vec::new();
        loop {
            let missing = wanted - found.len();
            // One more, as the first is the last of the page before.
            query = query.limit(if filter.names.is_empty() { missing + 1 } else { missing.max(PORTION) + 1 });
            let page = self.table.query_page(&query).await?;
            let rows = page.items.iter().filter(|row| row.key().is_some_and(|key| after.as_ref() != Some(&key.sk)));
            let mut names = read_all(rows, "the name of a model", name_of)?;
            names.retain(|name| filter.name_passes(name));
            found.extend(self.candidates(names, filter).await?);
            match page.next {
                Some(next) if found.len() < wanted => query = query.starting_at(next),
                _ => return Ok(found),
            }
        }
    }

    /// The names of the models of a kind, those that begin so and perhaps more. One request per MB of them.
    pub(super) async fn model_names(
        &self,
        workspace: &Workspace,
        kind: ModelKind,
        beginning: Option<&str>,
    ) -> Result<Vec<String>> {
        let rows = self.table.query(Query::of(names_of(workspace, kind, beginning))).await?;
        read_all(&rows, "the name of a model", name_of)
    }

    /// The models of these names that are there. One request per 100.
    pub(super) async fn models_named(&self, names: &[String]) -> Result<Vec<Model>> {
        let keys: Vec<_> = names.iter().map(|name| model_key(name)).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut items = self.table.get_many(&keys).await?;
        keys.iter().filter_map(|key| items.remove(key)).map(Model::of).collect()
    }

    /// The models of these names that pass.
    async fn candidates(&self, names: Vec<String>, filter: &RegisteredModelFilter) -> Result<Vec<Candidate>> {
        let models = self.models_named(&names).await?;
        let candidates = models.into_iter().map(|model| async move {
            let tag_rows = self.model_tag_rows(&model).await?;
            let tags = entries(&model.item, TAGS, &tag_rows)?.into_iter();
            let tags = tags.map(|(key, value)| KeyValue { key, value }).collect();
            Ok::<_, Error>(Candidate { model, tag_rows, tags })
        });
        let candidates = try_join_all(candidates).await?;
        Ok(candidates.into_iter().filter(|model| filter.matches(model)).collect())
    }

    /// Models with their latest versions. One request per 100 of these, and one for each that has tags too big for its document.
    async fn models_whole(&self, found: Vec<Candidate>) -> Result<Vec<RegisteredModel>> {
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
        let items = if keys.is_empty() { std::collections::HashMap::new() } else { self.table.get_many(&keys).await? };
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

/// The name in a row of a list.
fn name_of(row: &Item) -> Option<String> {
    row.text(NAME).map(str::to_owned)
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

/// The list of the models of a kind, or that part of it whose names begin so and perhaps more.
fn names_of(workspace: &Workspace, kind: ModelKind, beginning: Option<&str>) -> KeyRange {
    let names = rows::ModelName::all(&workspace.as_str().into()).kind(&kind);
    match beginning {
        Some(beginning) => names.beginning(&Name::from(beginning)),
        None => names.range(),
    }
}
