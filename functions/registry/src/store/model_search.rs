//! Searching registered models.

use access::{Guarded, Visible};
use entities::{entries, read_all};
use futures::future::{ready, try_join_all};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, KeyRange, ModelKind, Name, Ordinal, rows};
use listing::{Candidates, Pace, Page, Reading, add, fill};
use mlflow_api::registry::{Models, RegisteredModel};
use mlflow_api::tracking::KeyValue;
use mlflow_api::{Error, RegisteredModelName, Result, Workspace, limits_registry as limits};
use search::{
    Fingerprint, RegisteredModelFields, RegisteredModelFilter, RegisteredModelOrder, SortKey, decode_page_token,
    parse_registered_model_search,
};
use table::{Item, Query};

use super::attributes::{NAME, TAGS, UPDATED};
use super::model_item::{Model, list_key, model_entity, model_key, tag};
use super::version_item::version_entity;
use super::{Search, Store};

/// Names that are read at least where a filter may refuse some.
const PORTION: usize = 100;
/// Models whose tags are read at a time.
const AT_ONCE: usize = 16;

/// A model as a search sees it.
struct Candidate {
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
        self.model.item.number(UPDATED).unwrap_or_default()
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
    /// Searches registered models. In the order of names: one request for the page's names, one per 100 of its models and one per 100
    /// of their latest versions, and more where filters on tags refuse models. In any other order, all models whose names may
    /// pass are read.
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
            [kind] if wanted.order.is_by_name() => models_by_name(&wanted, *kind, page_size, reading).await?,
            kinds => {
                let beginning = wanted.filter.name_beginning();
                let names =
                    try_join_all(kinds.iter().map(|kind| self.model_names(workspace, *kind, beginning))).await?;
                let names: Vec<_> = names.into_iter().flatten().filter(|name| wanted.name_passes(name)).collect();
                fill(&wanted, &names, false, page_size, reading).await?
            }
        };
        let (registered_models, next_page_token) = page.finish(fingerprint)?;
        Ok(Models { registered_models, next_page_token })
    }

    /// The names of the models of a kind, those that begin so and perhaps more. One request per MB of them.
    pub(super) async fn model_names(
        &self,
        workspace: &Workspace,
        kind: ModelKind,
        beginning: Option<&str>,
    ) -> Result<Vec<String>> {
        let pages = listing::pages(&self.table, Query::of(names_of(workspace, kind, beginning))).map_err(Error::from);
        pages.and_then(|rows| ready(read_all(&rows, "the name of a model", name_of))).try_concat().await
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

/// What a model on a page has to be.
struct Wanted<'a> {
    store: Store,
    workspace: &'a Workspace,
    visible: &'a Visible,
    filter: RegisteredModelFilter,
    order: RegisteredModelOrder,
    after: Option<SortKey>,
}

impl Wanted<'_> {
    /// Whether a model of this name may pass, and may be shown.
    fn name_passes(&self, name: &str) -> bool {
        self.filter.name_passes(name) && is_visible(self.visible, name)
    }
}

impl Candidates for Wanted<'_> {
    type Listed = String;
    type Found = Candidate;
    type Entity = RegisteredModel;

    async fn read(&self, names: &[String]) -> Result<Vec<(SortKey, Candidate, usize)>> {
        let models = self.store.models_named(names).await?;
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
            let key = self.order.key(&candidate);
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

/// A page of the models of a kind, in the order of names, the list of which is read as far as it needs.
async fn models_by_name(
    wanted: &Wanted<'_>,
    kind: ModelKind,
    page_size: usize,
    mut reading: Reading,
) -> Result<Page<SortKey>> {
    let list = names_of(wanted.workspace, kind, wanted.filter.name_beginning());
    let after =
        wanted.after.as_ref().and_then(SortKey::first_text).map(|name| list_key(wanted.workspace, name, kind).sk);
    let mut query = Query::of(match &after {
        Some(after) => list.starting_at_key(after),
        None => list,
    });
    let mut page = Page::new(page_size);
    loop {
        // One more shows whether there is another page; and the first is the last of the page before.
        let names = page.missing() + 2;
        query = query.limit(if wanted.filter.names.is_empty() { names } else { names.max(PORTION + 1) });
        let rows = wanted.store.table.query_page(&query).await?;
        let of_page = rows.items.iter().filter(|row| row.key().is_some_and(|key| after.as_ref() != Some(&key.sk)));
        let mut names = read_all(of_page, "the name of a model", name_of)?;
        names.retain(|name| wanted.name_passes(name));
        let mut rest = names.as_slice();
        while !rest.is_empty() && !page.has_ended() {
            let (portion, others) = rest.split_at(reading.portion(rest.len()));
            add(wanted, wanted.read(portion).await?, &mut page).await?;
            reading.portion_was(portion.len());
            rest = others;
            if reading.is_used_up() && !page.is_empty() && (!rest.is_empty() || rows.next.is_some()) {
                page.ends_here();
            }
        }
        match rows.next {
            Some(next) if !page.has_ended() => query = query.starting_at(next),
            _ => return Ok(page),
        }
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

/// The list of the models of a kind, or that part of it whose names begin so and perhaps more.
fn names_of(workspace: &Workspace, kind: ModelKind, beginning: Option<&str>) -> KeyRange {
    let names = rows::ModelName::all(&workspace.as_str().into()).kind(&kind);
    match beginning {
        Some(beginning) => names.beginning(&Name::from(beginning)),
        None => names.range(),
    }
}
