//! Searching model versions.

use std::collections::{BTreeSet, HashMap, HashSet};

use entities::read_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, ModelKind, Name, Ordinal, part, rows};
use mlflow_api::registry::{IS_PROMPT_TAG, ModelVersion, Versions};
use mlflow_api::{Error, Result, Workspace, limits_registry as limits};
use search::{
    Fingerprint, SortKey, VersionFields, VersionFilter, decode_page_token, encode_page_token, parse_version_search,
};
use table::{Item, Query};

use super::attributes::{HOME, NAME, RENAMED};
use super::home::home_key;
use super::model_item::{Model, tag};
use super::version_item::version_entity;
use super::{Search, Store};

/// Models whose versions are read at a time.
const AT_ONCE: usize = 16;

/// A version as a search sees it.
struct Candidate {
    number: i64,
    version: ModelVersion,
}

impl VersionFields for Candidate {
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
    /// Searches model versions. Of some runs: a request each, and one per 50 versions. Of models whose names the filter gives: one per
    /// 100 models, and one each. Otherwise two for the names of models, and then the same for all whose names may pass.
    pub async fn version_search(&self, workspace: &Workspace, search: &Search) -> Result<Versions> {
        limits::max_versions(search.max_results)?;
        let (filter, order) = parse_version_search(&search.filter, &search.order_by)?;
        let fingerprint = Fingerprint::of_version_search(&search.filter, &search.order_by);
        let after: Option<SortKey> = decode_page_token(fingerprint, &search.page_token)?;
        let page_size = usize::try_from(search.max_results).unwrap_or_default();
        // Of the versions that name no run, nobody keeps a list.
        let mut found = match filter.among_runs().filter(|runs| !runs.contains(&"")) {
            Some(runs) => self.versions_of_runs(&runs).await?,
            None => self.versions_of_models(workspace, &filter).await?,
        };
        if !filter.tags.prompts {
            // One version that is a prompt's makes prompts of all versions of its model.
            let is_prompt = |candidate: &&Candidate| candidate.tag(IS_PROMPT_TAG) == Some("true");
            let prompts: HashSet<_> =
                found.iter().filter(is_prompt).map(|prompt| prompt.version.name.clone()).collect();
            found.retain(|candidate| !prompts.contains(&candidate.version.name));
        }
        found.retain(|version| {
            filter.matches(version) && after.as_ref().is_none_or(|after| order.key(version) > *after)
        });
        found.sort_by_cached_key(|version| order.key(version));
        let has_more = found.len() > page_size;
        found.truncate(page_size);
        let last = found.last().filter(|_| has_more).map(|version| order.key(version));
        let next_page_token = last.map(|key| encode_page_token(fingerprint, &key)).transpose()?;
        Ok(Versions { model_versions: found.into_iter().map(|found| found.version).collect(), next_page_token })
    }

    /// The versions of models whose names may pass.
    async fn versions_of_models(&self, workspace: &Workspace, filter: &VersionFilter) -> Result<Vec<Candidate>> {
        let names: Vec<String> = if let Some(names) = filter.among_names() {
            names.into_iter().map(str::to_owned).collect()
        } else {
            let beginning = filter.name_beginning();
            let mut names = self.model_names(workspace, ModelKind::Model, beginning).await?;
            names.extend(self.model_names(workspace, ModelKind::Prompt, beginning).await?);
            names
        };
        let names: Vec<_> = names.into_iter().filter(|name| filter.name_passes(name)).collect();
        let models = self.models_named(&names).await?.into_iter().filter(|model| !model.latest().is_empty());
        let versions = models.map(|model| async move { self.versions_of_model(&model).await });
        let versions: Vec<_> =
            stream::iter(versions.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(versions.into_iter().flatten().collect())
    }

    /// All versions of a model. One request per MB.
    async fn versions_of_model(&self, model: &Model) -> Result<Vec<Candidate>> {
        let items = self.table.query(Query::of(rows::ModelVersion::all(&model.home()))).await?;
        let mut found = Vec::new();
        let mut rest = items.as_slice();
        // Rows of tags follow their version.
        while let [item, others @ ..] = rest {
            let is_version = |item: &Item| item.key().and_then(|key| part::version_of_document(&key.sk));
            let tags = others.iter().take_while(|other| is_version(other).is_none()).count();
            if let Some(version) = is_version(item) {
                let rows = others.get(..tags).unwrap_or_default();
                found.push(candidate(&model.name, version, item, rows, model.renamed())?);
            }
            rest = others.get(tags..).unwrap_or_default();
        }
        Ok(found)
    }

    /// The versions that name one of these runs.
    async fn versions_of_runs(&self, runs: &[&str]) -> Result<Vec<Candidate>> {
        let queries = runs.iter().map(|run| {
            let query = Query::of(rows::VersionOfRun::all(&Name::from(*run)));
            async move { self.table.query(query).await.map_err(Error::from) }
        });
        let rows: Vec<_> = stream::iter(queries.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await?;
        let places: BTreeSet<(String, u32)> =
            read_all(rows.iter().flatten(), "a version of a run", place)?.into_iter().collect();
        let homes: BTreeSet<_> = places.iter().map(|(home, _)| home_key(home)).collect();
        let keys: Vec<_> = places.iter().map(version_key).chain(homes).collect();
        let items = if keys.is_empty() { HashMap::new() } else { self.table.get_many(&keys).await? };
        let mut found = Vec::new();
        for place in &places {
            let (Some(home), Some(item)) = (items.get(&home_key(&place.0)), items.get(&version_key(place))) else {
                continue;
            };
            // A home without a name is that of a model that was deleted.
            let Some(name) = home.text(NAME) else { continue };
            let rows = self.version_tag_rows(&Name::from(place.0.as_str()), place.1, item).await?;
            found.push(candidate(name, place.1, item, &rows, home.number(RENAMED).unwrap_or_default())?);
        }
        Ok(found)
    }
}

fn candidate(name: &str, version: u32, item: &Item, rows: &[Item], renamed: i64) -> Result<Candidate> {
    Ok(Candidate { number: i64::from(version), version: version_entity(name, version, item, rows, renamed)? })
}

fn version_key((home, version): &(String, u32)) -> Key {
    rows::ModelVersion::key(&Name::from(home.as_str()), &Ordinal(*version))
}

/// The home and number of the version that a row of a run names. The key's own home may be cut.
fn place(row: &Item) -> Option<(String, u32)> {
    Some((row.text(HOME)?.to_owned(), part::version_of_run(&row.key()?.sk)?))
}
