//! Searching runs: carrying out a plan of the `search` crate.

use futures::future::try_join_all;
use key_schema::{Stage, index, prefix};
use mlflow_api::tracking::{self, KeyValue, Runs, ViewType};
use mlflow_api::{Error, ExperimentId, Result, RunId, limits};
use search::{
    AccessPath, DatasetInput, Fingerprint, RunFields, RunNumber, RunPlan, RunText, SortKey, decode_page_token,
    encode_page_token, parse_run_search, plan_run_search,
};
use table::{Item, Query};

use super::Store;
use super::gate::ExperimentState;
use super::run_document::RunLocation;
use super::run_read::{RunItems, run_whole};

/// Runs read at a time from the index's candidates.
const CANDIDATES: usize = 100;

/// A search over runs, as it was asked.
#[derive(Clone, Debug)]
pub struct RunSearch {
    /// Experiments.
    pub experiment_ids: Vec<String>,
    /// Filter string.
    pub filter: String,
    /// Which lifecycle stages to show.
    pub view: ViewType,
    /// Runs on a page.
    pub max_results: i64,
    /// Order clauses.
    pub order_by: Vec<String>,
    /// Token of an earlier page.
    pub page_token: String,
}

/// An experiment to search in.
struct Scope {
    id: ExperimentId,
    state: ExperimentState,
}

impl Scope {
    /// Whether the index of stages says exactly which runs a view shows. Once the experiment has been deleted, its runs' own
    /// stages may be overruled, and each candidate's items decide.
    fn index_is_exact(&self, view: ViewType) -> bool {
        view == ViewType::All || self.state.version == 0
    }
}

/// Runs in their order, with their keys.
struct Page {
    runs: Vec<(SortKey, tracking::Run)>,
    has_more: bool,
}

impl Store {
    /// Searches runs. The mistakes of a request come to light in MLflow's order: size of the page, filter, order, token,
    /// experiments.
    pub async fn run_search(&self, search: &RunSearch) -> Result<Runs> {
        limits::max_results(search.max_results)?;
        let (filter, order) = parse_run_search(&search.filter, &search.order_by)?;
        let ids = experiment_ids(&search.experiment_ids);
        let known: Vec<_> = ids.iter().flatten().copied().collect();
        let fingerprint = Fingerprint::of_run_search(&known, &search.filter, &search.order_by, search.view);
        let after = decode_page_token(fingerprint, &search.page_token)?;
        ids?;
        let scopes = self.search_scopes(&known).await?;
        let plan = plan_run_search(filter, order, search.view);
        let page_size = usize::try_from(search.max_results).unwrap_or(usize::MAX);
        let page = match plan.path {
            AccessPath::LatestFirst => self.runs_latest_first(&scopes, &plan, after.as_ref(), page_size).await?,
            AccessPath::ReadExperiments => self.runs_of_experiments(&scopes, &plan, after.as_ref(), page_size).await?,
        };
        let last = page.runs.last().filter(|_| page.has_more);
        let next_page_token = last.map(|(key, _)| encode_page_token(fingerprint, key)).transpose()?;
        Ok(Runs { runs: page.runs.into_iter().map(|(_, run)| run).collect(), next_page_token })
    }

    /// The experiments that are there, with their states. One request for each without a lease.
    async fn search_scopes(&self, ids: &[ExperimentId]) -> Result<Vec<Scope>> {
        let states = ids.iter().map(|id| async { Ok::<_, Error>((*id, self.experiment_state(*id).await?)) });
        let states = try_join_all(states).await?;
        Ok(states.into_iter().filter_map(|(id, state)| Some(Scope { id, state: state? })).collect())
    }

    /// Reads all runs of the experiments, keeps those that pass, and sorts them. A request and 130 read units per MB of runs.
    async fn runs_of_experiments(
        &self,
        scopes: &[Scope],
        plan: &RunPlan,
        after: Option<&SortKey>,
        page_size: usize,
    ) -> Result<Page> {
        let runs = scopes.iter().map(|scope| async move {
            let query = Query::begins_with(prefix::experiment_partition(scope.id), prefix::RUNS);
            let items = self.table.query(query).await?;
            let groups = group_by_run(scope.id, items).into_iter();
            Ok::<_, Error>(groups.map(|(at, items)| run_whole(&at, &items, &scope.state)).collect::<Vec<_>>())
        });
        let mut runs: Vec<_> = try_join_all(runs)
            .await?
            .into_iter()
            .flatten()
            .filter(|run| plan.view.shows(run.info.lifecycle_stage) && plan.filter.matches(&Searched(run)))
            .map(|run| (plan.order.key(&Searched(&run)), run))
            .filter(|(key, _)| after.is_none_or(|after| key > after))
            .collect();
        runs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let has_more = runs.len() > page_size;
        runs.truncate(page_size);
        Ok(Page { runs, has_more })
    }

    /// Reads a page from the index of runs by start time. Without deleted and restored experiments in play: a request per
    /// experiment and two per 100 runs.
    async fn runs_latest_first(
        &self,
        scopes: &[Scope],
        plan: &RunPlan,
        after: Option<&SortKey>,
        page_size: usize,
    ) -> Result<Page> {
        // One more than the page: whether there is another page shows in the index already, where the index is exact.
        let candidates = scopes.iter().map(|scope| self.latest_candidates(scope, plan.view, after, page_size + 1));
        let mut candidates: Vec<_> = try_join_all(candidates).await?.into_iter().flatten().collect();
        // The index key begins with the start time, greatest first, and ends with the run: the order of the answer.
        candidates.sort_unstable();
        let all_exact = scopes.iter().all(|scope| scope.index_is_exact(plan.view));
        let enough = if all_exact { page_size } else { page_size + 1 };
        let mut runs = Vec::new();
        let mut rest = candidates.as_slice();
        while runs.len() < enough && !rest.is_empty() {
            let (next, after_next) = rest.split_at(CANDIDATES.min(enough - runs.len()).min(rest.len()));
            rest = after_next;
            let whole = scopes.iter().map(|scope| async move {
                let ids = next.iter().filter(|(_, id, _)| *id == scope.id).map(|(_, _, run)| run.clone());
                let items = self.runs_get(scope.id, &ids.collect::<Vec<_>>()).await?.into_iter();
                Ok::<_, Error>(items.map(|(at, items)| run_whole(&at, &items, &scope.state)).collect::<Vec<_>>())
            });
            let whole = try_join_all(whole).await?.into_iter().flatten();
            let shown = whole.filter(|run| plan.view.shows(run.info.lifecycle_stage));
            runs.extend(shown.map(|run| (plan.order.key(&Searched(&run)), run)));
        }
        runs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let has_more = runs.len() > page_size || (all_exact && !rest.is_empty());
        runs.truncate(page_size);
        Ok(Page { runs, has_more })
    }

    /// The runs of an experiment that may stand on the page, by the index of runs by time.
    async fn latest_candidates(
        &self,
        scope: &Scope,
        view: ViewType,
        after: Option<&SortKey>,
        count: usize,
    ) -> Result<Vec<(String, ExperimentId, RunId)>> {
        let partition = prefix::experiment_partition(scope.id);
        let is_exact = scope.index_is_exact(view);
        let (local_index, attribute, prefix) = match view {
            ViewType::ActiveOnly if is_exact => ("LSI1", "lsi1sk", prefix::runs_of_stage(Stage::Active)),
            ViewType::DeletedOnly if is_exact => {
                ("LSI1", "lsi1sk", prefix::runs_of_stage(Stage::Deleted { version: scope.state.version }))
            }
            _ => ("LSI2", "lsi2sk", prefix::RUNS.to_owned()),
        };
        let last = after
            .and_then(SortKey::latest_first)
            .map(|(started, run)| prefix.clone() + &index::newest_first(started, run));
        let query = match &last {
            // Run ids are made of characters less than this one.
            Some(last) => Query::between(&partition, last, format!("{prefix}~")),
            None => Query::begins_with(&partition, &prefix),
        };
        let query = query.local(local_index);
        let keys = if is_exact {
            let mut keys = Vec::new();
            // The last run of the page before may still be there, and is read again.
            let count = count + usize::from(last.is_some());
            let mut query = query.limit(count);
            loop {
                let page = self.table.query_page(&query).await?;
                keys.extend(page.items);
                match page.next {
                    Some(next) if keys.len() < count => query = query.starting_at(next),
                    _ => break keys,
                }
            }
        } else {
            self.table.query(query).await?
        };
        let candidates = keys.iter().filter_map(|item| {
            let key = item.text(attribute)?;
            if last.as_deref().is_some_and(|last| key <= last) {
                return None;
            }
            Some((key.strip_prefix(&prefix)?.to_owned(), scope.id, index::run_of_key(key)?))
        });
        Ok(candidates.collect())
    }
}

/// The experiments a search names, each once. An integer that no experiment can have names none.
fn experiment_ids(texts: &[String]) -> Result<Vec<ExperimentId>> {
    let mut ids = Vec::new();
    for text in texts {
        if text.is_empty() {
            return Err(Error::invalid("Invalid experiment ID ''. Experiment ID must be a valid integer."));
        }
        match ExperimentId::parse(text) {
            Ok(id) if ids.contains(&id) => {}
            Ok(id) => ids.push(id),
            Err(error) if error.code == mlflow_api::ErrorCode::ResourceDoesNotExist => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ids)
}

/// Sorts the items of a partition's runs by run. A run's own item comes first among its items.
fn group_by_run(experiment: ExperimentId, items: Vec<Item>) -> Vec<(RunLocation, RunItems)> {
    let mut groups: Vec<(RunLocation, RunItems)> = Vec::new();
    for item in items {
        let Some(key) = item.key() else { continue };
        let mut parts = key.sk.splitn(4, '#').skip(1);
        let (Some(run), kind) = (parts.next(), parts.next()) else { continue };
        if kind.is_none() {
            if let Some(run) = RunId::parse(run) {
                groups.push((RunLocation { experiment, run }, RunItems { run: item, ..RunItems::default() }));
            }
            continue;
        }
        let Some((_, group)) = groups.last_mut().filter(|(at, _)| at.run.as_str() == run) else { continue };
        match kind {
            Some("METRIC") => group.metrics.push(item),
            Some("PARAM") => group.params.push(item),
            Some("TAG") => group.tags.push(item),
            Some("LM") => group.outputs.push(item),
            _ => {}
        }
    }
    groups
}

/// A run as a search sees it.
struct Searched<'a>(&'a tracking::Run);

impl RunFields for Searched<'_> {
    fn text(&self, attribute: RunText) -> Option<&str> {
        let info = &self.0.info;
        Some(match attribute {
            RunText::RunId => &info.run_id,
            RunText::RunName => &info.run_name,
            RunText::Status => info.status.name(),
            RunText::UserId => &info.user_id,
            RunText::ArtifactUri => &info.artifact_uri,
        })
    }

    fn number(&self, attribute: RunNumber) -> Option<i64> {
        match attribute {
            RunNumber::StartTime => Some(self.0.info.start_time),
            RunNumber::EndTime => self.0.info.end_time,
        }
    }

    fn metric(&self, key: &str) -> Option<f64> {
        let metrics = &self.0.data.metrics;
        let position = metrics.binary_search_by(|metric| metric.key.as_str().cmp(key)).ok()?;
        Some(metrics[position].value)
    }

    fn param(&self, key: &str) -> Option<&str> {
        find(&self.0.data.params, key)
    }

    fn tag(&self, key: &str) -> Option<&str> {
        find(&self.0.data.tags, key)
    }

    fn datasets(&self) -> impl Iterator<Item = DatasetInput<'_>> {
        std::iter::empty()
    }
}

/// The value of a key among entries sorted by key.
pub(super) fn find<'a>(entries: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let position = entries.binary_search_by(|entry| entry.key.as_str().cmp(key)).ok()?;
    Some(&entries[position].value)
}
