//! Searches of model versions.

use std::collections::{BTreeMap, BTreeSet};

use access::Visibility;

use entities::listing::{CooperativeYield, FirstEntities, ResponsePage, SelectedEntities};
use entities::read_all;
use futures::future::ready;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::AliasedVersions;
use key_schema::{Key, ModelKey, ModelKind, Ordinal, key_parts, rows};
use mlflow_api::registry::{IS_PROMPT_TAG, ModelVersion, SearchVersionsResponse};
use mlflow_api::{Error, Result, Workspace, limits_registry as limits};
use search::{
    Fingerprint, SortKey, VersionFields, VersionFilter, VersionOrder, decode_page_token, parse_version_search,
};
use table::{Item, Query};

use super::attributes::{HOME, NAME, RENAMED};
use super::model_criteria::{is_visible, may_be_visible};
use super::model_home::{home_key, is_in};
use super::model_item::{Model, tag};
use super::version_item::version_entity;
use super::{RegistrySearch, Store};

/// Number of models or runs whose versions are read concurrently.
const CONCURRENCY: usize = 16;

/// Batch size for reading models.
const MODEL_BATCH_SIZE: usize = 400;
/// Batch size for reading the versions of runs.
const VERSION_BATCH_SIZE: usize = 400;

/// The fields of a version that a search can use.
struct SearchableVersion {
    number: i64,
    version: ModelVersion,
    /// Whether the version's item is in the index of versions with aliases.
    is_aliased: bool,
}

/// A version that passes the filter.
struct MatchingVersion {
    number: i64,
    version: ModelVersion,
    /// The home of the version's model, if the version has aliases that still have to be read.
    aliases_home: Option<String>,
}

impl SearchableVersion {
    /// Returns the approximate size of the version, in bytes.
    fn size(&self) -> usize {
        let version = &self.version;
        let tags: usize = version.tags.iter().map(|tag| tag.key.len() + tag.value.len()).sum();
        let aliases: usize = version.aliases.iter().map(String::len).sum();
        version.name.len() + version.source.len() + version.description.as_ref().map_or(0, String::len) + tags + aliases
    }
}

impl VersionFields for SearchableVersion {
    fn name(&self) -> &str {
        &self.version.name
    }

    fn number(&self) -> i64 {
        self.number
    }

    fn run(&self) -> Option<&str> {
        self.version.run_id.as_deref()
    }

    fn source(&self) -> &str {
        &self.version.source
    }

    fn created(&self) -> i64 {
        self.version.creation_timestamp
    }

    fn last_updated(&self) -> i64 {
        self.version.last_updated_timestamp
    }

    fn tag(&self, key: &str) -> Option<&str> {
        tag(&self.version.tags, key)
    }
}

impl Store {
    /// Searches model versions, and includes their aliases, unlike MLflow. The cost depends on the
    /// filter:
    ///
    /// - If the filter names runs, takes one request per run, one per 50 versions, and one per 100
    ///   models whose versions on the page have aliases.
    /// - If it names models, takes one request per 100 models, and one per model.
    /// - Otherwise, takes two requests for the names of models, and then those for all models whose
    ///   names may match the filter.
    pub async fn version_search(
        &self,
        workspace: &Workspace,
        visible: &Visibility,
        search: &RegistrySearch,
    ) -> Result<SearchVersionsResponse> {
        limits::max_versions(search.max_results)?;
        let (filter, order) = parse_version_search(&search.filter, &search.order_by)?;
        let fingerprint = Fingerprint::of_version_search(&search.filter, &search.order_by);
        let after: Option<SortKey> = decode_page_token(fingerprint, &search.page_token)?;
        let page_size = usize::try_from(search.max_results).unwrap_or_default();
        let wanted = VersionCriteria { workspace, filter, order, after, page_size, visible: visible.clone() };
        // Runs in the filter can be used only if none of them is empty, because versions without a
        // run are in no list of a run's versions.
        let found = match wanted.filter.among_runs().filter(|runs| !runs.contains(&"")) {
            Some(runs) => self.versions_of_runs(&runs, &wanted).await?,
            None => self.versions_of_models(&wanted).await?,
        };
        let mut unread = self.aliases_of_hits(&found).await?;
        let mut page = ResponsePage::new(page_size);
        for (key, MatchingVersion { number, mut version, aliases_home: home }, _) in found.entities {
            if let Some(aliases) = home.and_then(|home| unread.remove(&(home, number))) {
                version.aliases = aliases;
            }
            if search.hides_runs {
                version.hide_run();
            }
            page.add(key, &version)?;
        }
        if found.end.is_some() {
            page.ends_here();
        }
        let (model_versions, next_page_token) = page.finish(fingerprint)?;
        Ok(SearchVersionsResponse { model_versions, next_page_token })
    }

    /// Returns the matching versions of all models whose names may match the filter.
    async fn versions_of_models(
        &self,
        wanted: &VersionCriteria<'_>,
    ) -> Result<SelectedEntities<SortKey, MatchingVersion>> {
        let VersionCriteria { workspace, filter, .. } = wanted;
        let names: Vec<String> = if let Some(names) = filter.among_names() {
            names.into_iter().map(str::to_owned).collect()
        } else {
            let beginning = filter.name_beginning();
            let mut names = self.model_names(workspace, ModelKind::Model, beginning).await?;
            names.extend(self.model_names(workspace, ModelKind::Prompt, beginning).await?);
            names
        };
        let names: Vec<_> = names
            .into_iter()
            .filter(|name| filter.name_passes(name) && may_be_visible(&wanted.visible, name))
            .collect();
        let mut top = FirstEntities::new(wanted.page_size);
        for names in names.chunks(MODEL_BATCH_SIZE) {
            let mut models = self.models_named(names).await?;
            models.retain(|model| !model.latest().is_empty() && is_visible(&wanted.visible, model, true));
            let are_here = models.iter().map(|model| is_in(&model.item, workspace)).collect::<Result<Vec<_>>>()?;
            let models = models.into_iter().zip(are_here).filter_map(|(model, is_here)| is_here.then_some(model));
            let versions = models.map(|model| async move { self.versions_of_model(&model, wanted).await });
            let mut versions = stream::iter(versions.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY);
            while let Some(found) = versions.try_next().await? {
                top.merge(found);
            }
        }
        Ok(top.finish())
    }

    /// Returns the versions of a model that match the search. Takes one request per MB.
    async fn versions_of_model(
        &self,
        model: &Model,
        wanted: &VersionCriteria<'_>,
    ) -> Result<SelectedEntities<SortKey, MatchingVersion>> {
        let query = Query::of(rows::ModelVersion::all(&model.home()));
        let mut pages = std::pin::pin!(entities::listing::pages(&self.table, query));
        let mut of_model = ModelVersionsFilter::new(wanted);
        let mut aliases = model.aliases_by_version();
        let mut look_at = |version: u32, item: &Item, rows: &[Item]| {
            let mut candidate = candidate(&model.name, version, item, rows, model.renamed())?;
            candidate.version.aliases = aliases.remove(&version).unwrap_or_default();
            of_model.add_if_passing(candidate, None);
            Ok::<_, Error>(())
        };
        // The items of one version: its own item, and the rows of tags that follow it.
        let mut items: Vec<Item> = Vec::new();
        let number = |items: &[Item]| items.first().and_then(version_of);
        let mut pace = CooperativeYield::default();
        while let Some(page) = pages.try_next().await? {
            for item in page {
                pace.keep().await;
                if version_of(&item).is_some() {
                    if let (Some(version), [item, rows @ ..]) = (number(&items), items.as_slice()) {
                        look_at(version, item, rows)?;
                    }
                    items.clear();
                }
                items.push(item);
            }
        }
        if let (Some(version), [item, rows @ ..]) = (number(&items), items.as_slice()) {
            look_at(version, item, rows)?;
        }
        Ok(of_model.finish())
    }

    /// Returns the versions that were created from one of these runs and match the search.
    async fn versions_of_runs(
        &self,
        runs: &[&str],
        wanted: &VersionCriteria<'_>,
    ) -> Result<SelectedEntities<SortKey, MatchingVersion>> {
        let queries = runs.iter().map(|run| {
            let query = Query::of(rows::VersionOfRun::all(&ModelKey::of(wanted.workspace, run)));
            async move {
                let pages = entities::listing::pages(&self.table, query).map_err(Error::from);
                pages.and_then(|rows| ready(read_all(&rows, "a version of a run", place))).try_concat().await
            }
        });
        let places: Vec<_> = stream::iter(queries.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await?;
        let places: BTreeSet<(String, u32)> = places.into_iter().flatten().collect();
        let places: Vec<_> = places.into_iter().collect();
        let mut top = FirstEntities::new(wanted.page_size);
        // Versions are grouped by model, because the versions of one model follow each other.
        let mut of_model = (String::new(), ModelVersionsFilter::new(wanted));
        let mut pace = CooperativeYield::default();
        for places in places.chunks(VERSION_BATCH_SIZE) {
            let homes: BTreeSet<_> = places.iter().map(|(home, _)| home_key(&ModelKey::from(home.as_str()))).collect();
            let keys: Vec<_> = places.iter().map(version_key).chain(homes).collect();
            let items = self.table.get_many(&keys).await?;
            // The kind of each model is read only if it affects which versions are visible.
            let shown = match &wanted.visible {
                Visibility::Everything => None,
                visible => {
                    let named = places
                        .iter()
                        .filter_map(|(home, _)| items.get(&home_key(&ModelKey::from(home.as_str())))?.get(NAME));
                    let in_question: BTreeSet<_> =
                        named.filter(|name| may_be_visible(visible, name)).map(str::to_owned).collect();
                    let models = self.models_named(&in_question.into_iter().collect::<Vec<_>>()).await?;
                    let models = models.into_iter().filter(|model| is_visible(visible, model, true));
                    Some(models.map(|model| model.name).collect::<BTreeSet<_>>())
                }
            };
            for place in places {
                pace.keep().await;
                if place.0 != of_model.0 {
                    let (_, done) =
                        std::mem::replace(&mut of_model, (place.0.clone(), ModelVersionsFilter::new(wanted)));
                    top.merge(done.finish());
                }
                let (Some(home), Some(item)) =
                    (items.get(&home_key(&ModelKey::from(place.0.as_str()))), items.get(&version_key(place)))
                else {
                    continue;
                };
                // A home whose row contains no name belonged to a model that was deleted.
                let is_shown = |name: &&str| shown.as_ref().is_none_or(|shown| shown.contains(*name));
                let Some(name) = home.get(NAME).filter(is_shown) else { continue };
                if !is_in(home, wanted.workspace)? {
                    continue;
                }
                let rows = self.version_tag_rows(&ModelKey::from(place.0.as_str()), place.1, item).await?;
                let renamed = home.get(RENAMED).unwrap_or_default();
                of_model.1.add_if_passing(candidate(name, place.1, item, &rows, renamed)?, Some(&place.0));
            }
        }
        top.merge(of_model.1.finish());
        Ok(top.finish())
    }

    /// Reads the aliases that are still missing for the versions of the page. Returns them by home
    /// and version number. Takes one request per 100 models.
    async fn aliases_of_hits(
        &self,
        found: &SelectedEntities<SortKey, MatchingVersion>,
    ) -> Result<BTreeMap<(String, i64), Vec<String>>> {
        let unread = found.entities.iter().filter(|(_, hit, _)| hit.aliases_home.is_some());
        let names: BTreeSet<_> = unread.map(|(_, hit, _)| hit.version.name.clone()).collect();
        let mut aliases = BTreeMap::new();
        for names in names.into_iter().collect::<Vec<_>>().chunks(MODEL_BATCH_SIZE) {
            for model in self.models_named(names).await? {
                let home = model.home().to_attribute();
                let of_model = model.aliases_by_version().into_iter();
                aliases.extend(of_model.map(|(version, aliases)| ((home.clone(), i64::from(version)), aliases)));
            }
        }
        Ok(aliases)
    }
}

/// The conditions that a version has to meet to be on a page.
struct VersionCriteria<'a> {
    workspace: &'a Workspace,
    filter: VersionFilter,
    order: VersionOrder,
    after: Option<SortKey>,
    page_size: usize,
    visible: Visibility,
}

/// The examined versions of one model that match the search. If any of its examined versions is a
/// version of a prompt, the model counts as a prompt, and only searches for prompts find its
/// versions.
struct ModelVersionsFilter<'a> {
    wanted: &'a VersionCriteria<'a>,
    top: FirstEntities<SortKey, MatchingVersion>,
    has_prompt: bool,
}

impl<'a> ModelVersionsFilter<'a> {
    fn new(wanted: &'a VersionCriteria<'a>) -> Self {
        Self { wanted, top: FirstEntities::new(wanted.page_size), has_prompt: false }
    }

    /// Adds a version if it passes. If a home is given, the version has aliases that still have to
    /// be read.
    fn add_if_passing(&mut self, candidate: SearchableVersion, home: Option<&str>) {
        let VersionCriteria { filter, order, after, .. } = self.wanted;
        self.has_prompt |= candidate.tag(IS_PROMPT_TAG) == Some("true");
        if !filter.matches(&candidate) {
            return;
        }
        let key = order.key(&candidate);
        if after.as_ref().is_none_or(|after| key > *after) {
            let bytes = candidate.size();
            let SearchableVersion { number, version, is_aliased } = candidate;
            let unread = home.filter(|_| is_aliased).map(str::to_owned);
            self.top.add(key, MatchingVersion { number, version, aliases_home: unread }, bytes);
        }
    }

    fn finish(self) -> SelectedEntities<SortKey, MatchingVersion> {
        let is_hidden = self.has_prompt && !self.wanted.filter.tags.prompts;
        if is_hidden { FirstEntities::new(0).finish() } else { self.top.finish() }
    }
}

/// Returns the number of the version whose own item this is, or `None` for a row of tags.
fn version_of(item: &Item) -> Option<u32> {
    item.key().and_then(|key| key_parts::version_of_document(&key.sk))
}

fn candidate(name: &str, version: u32, item: &Item, rows: &[Item], renamed: i64) -> Result<SearchableVersion> {
    let is_aliased = item.entry::<AliasedVersions>().is_some();
    let entity = version_entity(name, version, item, rows, renamed)?;
    Ok(SearchableVersion { number: i64::from(version), version: entity, is_aliased })
}

fn version_key((home, version): &(String, u32)) -> Key {
    rows::ModelVersion::key(&ModelKey::from(home.as_str()), &Ordinal(*version))
}

/// Returns the home and the version number in a row that links a run to a version. They are not
/// parsed from the key, because the home in the key may be truncated.
fn place(row: &Item) -> Option<(String, u32)> {
    Some((row.get(HOME)?.to_owned(), key_parts::version_of_run(&row.key()?.sk)?))
}
