//! Searching runs: carrying out a plan of the `search` crate.

use std::collections::HashSet;

use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
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
/// Experiments whose indexes are read at a time.
const SCOPES: usize = 16;

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

/// What the index says of a run: its key without the prefix, and whose key it is.
type Candidate = (String, ExperimentId, RunId);

/// Candidates of an experiment, in their order.
struct Candidates {
    runs: Vec<Candidate>,
    has_more: bool,
}

/// Runs in their order, with their keys.
struct Page {
    runs: Vec<(SortKey, tracking::Run)>,
    has_more: bool,
}

/// The first runs of an order, found among many.
struct Best {
    runs: Vec<(SortKey, tracking::Run)>,
    count: usize,
}

impl Best {
    fn add(&mut self, key: SortKey, run: tracking::Run) {
        self.runs.push((key, run));
        if self.runs.len() >= self.count.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.runs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.runs.truncate(self.count);
    }

    fn sorted(mut self) -> Vec<(SortKey, tracking::Run)> {
        self.cut();
        self.runs
    }
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

    /// The experiments that are there, with their states. One request per 100 without a lease.
    async fn search_scopes(&self, ids: &[ExperimentId]) -> Result<Vec<Scope>> {
        let states = self.experiment_states(ids).await?;
        Ok(states.into_iter().map(|(id, state)| Scope { id, state }).collect())
    }

    /// Reads all runs of the experiments and keeps the best of those that pass. A request and 130 read units per MB of runs;
    /// in memory are never more than a few MB and twice the page.
    async fn runs_of_experiments(
        &self,
        scopes: &[Scope],
        plan: &RunPlan,
        after: Option<&SortKey>,
        page_size: usize,
    ) -> Result<Page> {
        let mut best = Best { runs: Vec::new(), count: page_size.saturating_add(1) };
        for scope in scopes {
            let mut query = Query::begins_with(prefix::experiment_partition(scope.id), prefix::RUNS);
            let mut unfinished = None;
            loop {
                let page = self.table.query_page(&query).await?;
                let mut groups = group_by_run(scope.id, unfinished.take(), page.items);
                // The rest of the last run may stand on the next page.
                unfinished = page.next.as_ref().and_then(|_| groups.pop());
                for (at, items) in groups {
                    let run = run_whole(&at, &items, &scope.state);
                    if plan.view.shows(run.info.lifecycle_stage) && plan.filter.matches(&Searched(&run)) {
                        let key = plan.order.key(&Searched(&run));
                        if after.is_none_or(|after| key > *after) {
                            best.add(key, run);
                        }
                    }
                }
                match page.next {
                    Some(next) => query = query.starting_at(next),
                    None => break,
                }
            }
        }
        let mut runs = best.sorted();
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
        let all_exact = scopes.iter().all(|scope| scope.index_is_exact(plan.view));
        let enough = if all_exact { page_size } else { page_size + 1 };
        let mut after = after.and_then(SortKey::latest_first).map(|(started, run)| index::newest_first(started, run));
        let mut runs = Vec::new();
        let has_more = loop {
            // One more than the page: whether there is another page shows in the index already, where the index is exact.
            let count = page_size + 1 - runs.len();
            let after_key = after.as_deref();
            let parts = scopes.iter().map(|scope| self.latest_candidates(scope, plan.view, after_key, count));
            let parts: Vec<_> = stream::iter(parts.collect::<Vec<_>>()).buffered(SCOPES).try_collect().await?;
            // Beyond the end of a part there may be runs that are not known yet.
            let ends = parts.iter().filter(|part| part.has_more).filter_map(|part| part.runs.last());
            let end = ends.map(|(key, _, _)| key.clone()).min();
            let candidates = parts.into_iter().flat_map(|part| part.runs);
            let mut candidates: Vec<_> =
                candidates.filter(|(key, _, _)| end.as_ref().is_none_or(|end| key <= end)).collect();
            // The index key begins with the start time, greatest first, and ends with the run: the order of the answer.
            candidates.sort_unstable();
            let rest = self.read_candidates(scopes, plan, &candidates, enough, &mut runs).await?;
            if runs.len() > page_size || (all_exact && rest > 0) || end.is_none() {
                break runs.len() > page_size || (all_exact && rest > 0);
            }
            // Some were deleted after the index had named them: the page is filled with those that follow.
            after = end;
        };
        runs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        runs.truncate(page_size);
        Ok(Page { runs, has_more })
    }

    /// Reads candidates until there are `enough` runs, and adds those that are shown; says how many candidates are left.
    async fn read_candidates(
        &self,
        scopes: &[Scope],
        plan: &RunPlan,
        candidates: &[Candidate],
        enough: usize,
        runs: &mut Vec<(SortKey, tracking::Run)>,
    ) -> Result<usize> {
        let mut rest = candidates;
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
        Ok(rest.len())
    }

    /// The runs of an experiment that may stand on the page, by the index of runs by time.
    async fn latest_candidates(
        &self,
        scope: &Scope,
        view: ViewType,
        after: Option<&str>,
        count: usize,
    ) -> Result<Candidates> {
        let partition = prefix::experiment_partition(scope.id);
        let is_exact = scope.index_is_exact(view);
        let (local_index, attribute, prefix) = match view {
            ViewType::ActiveOnly if is_exact => ("LSI1", "lsi1sk", prefix::runs_of_stage(Stage::Active)),
            ViewType::DeletedOnly if is_exact => {
                ("LSI1", "lsi1sk", prefix::runs_of_stage(Stage::Deleted { version: scope.state.version }))
            }
            _ => ("LSI2", "lsi2sk", prefix::RUNS.to_owned()),
        };
        let last = after.map(|after| prefix.clone() + after);
        let query = match &last {
            // Run ids are made of characters less than this one.
            Some(last) => Query::between(&partition, last, format!("{prefix}~")),
            None => Query::begins_with(&partition, &prefix),
        };
        let query = query.local(local_index);
        let mut has_more = false;
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
                    next => {
                        has_more = next.is_some();
                        break keys;
                    }
                }
            }
        } else {
            self.table.query(query).await?
        };
        let runs = keys.iter().filter_map(|item| {
            let key = item.text(attribute)?;
            if last.as_deref().is_some_and(|last| key <= last) {
                return None;
            }
            Some((key.strip_prefix(&prefix)?.to_owned(), scope.id, index::run_of_key(key)?))
        });
        Ok(Candidates { runs: runs.collect(), has_more })
    }
}

/// The experiments a search names, each once. An integer that no experiment can have names none.
fn experiment_ids(texts: &[String]) -> Result<Vec<ExperimentId>> {
    let (mut ids, mut seen) = (Vec::new(), HashSet::new());
    for text in texts {
        if text.is_empty() {
            return Err(Error::invalid("Invalid experiment ID ''. Experiment ID must be a valid integer."));
        }
        match ExperimentId::parse(text) {
            Ok(id) if !seen.insert(id) => {}
            Ok(id) => ids.push(id),
            Err(error) if error.code == mlflow_api::ErrorCode::ResourceDoesNotExist => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ids)
}

/// Sorts the items of a partition's runs by run, those of an unfinished one first. A run's own item comes first among its items.
fn group_by_run(
    experiment: ExperimentId,
    unfinished: Option<(RunLocation, RunItems)>,
    items: Vec<Item>,
) -> Vec<(RunLocation, RunItems)> {
    let mut groups: Vec<(RunLocation, RunItems)> = unfinished.into_iter().collect();
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
