//! Searching runs: carrying out a plan of the `search` crate.
//!
//! A plan names lists of the index. Their entries are candidates ([`source`], one for each experiment); candidates of all
//! experiments are taken in one order, read in portions, checked against the whole filter and sorted ([`finder`]), until the
//! page is full. What was changed since the indexer had it is in no list: those runs are looked at in any case ([`scope`]).

mod finder;
mod gather;
mod list;
mod scope;
mod source;

use std::collections::{HashMap, HashSet};

use access::Granted;
use entities::RunLocation;
use futures::future::try_join;
use futures::stream::{self, StreamExt, TryStreamExt};
use listing::{Found, Page, Reading};
use mlflow_api::requests::runs::SearchRuns;
use mlflow_api::tracking::{self, Runs, ViewType};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, RunId, limits};
use search::{
    AccessPath, Fingerprint, Head, Heads, Options, RunFilter, RunList, RunOrder, RunPlan, SortKey, choose,
    decode_page_token, parse_run_search,
};

use crate::store::Store;
use crate::store::run::RunDatasets;
use finder::Finder;
use list::{Cursor, HEAD, Keys, LARGEST_PAGE};
use scope::{ListsOf, Scope, Unlisted, uses_lists};
use source::{Join, Source, Walker};

/// Runs on a page where the request does not say (`SearchRuns` in `service.proto`).
const DEFAULT_PAGE: i64 = 1_000;

/// A search over runs.
#[derive(Clone, Debug)]
pub struct RunSearch {
    /// The experiments it names, each once.
    pub experiments: Vec<ExperimentId>,
    filter: RunFilter,
    order: RunOrder,
    /// Which lifecycle stages to show.
    view: ViewType,
    page_size: usize,
    fingerprint: Fingerprint,
    /// Sort key of the last run of the page before.
    after: Option<SortKey>,
}

impl RunSearch {
    /// Reads what was asked. Its mistakes come to light in MLflow's order: size of the page, filter, order, token, experiments.
    pub fn read(asked: &SearchRuns) -> Result<Self> {
        let max_results = asked.max_results.map_or(DEFAULT_PAGE, i64::from);
        limits::max_results(max_results)?;
        let (filter, order) = parse_run_search(&asked.filter, &asked.order_by)?;
        let view = asked.run_view_type.unwrap_or(ViewType::ActiveOnly);
        let experiments = known_experiments(&asked.experiment_ids);
        let known = experiments.as_deref().unwrap_or_default();
        let fingerprint = Fingerprint::of_run_search(known, &asked.filter, &asked.order_by, view);
        let after = decode_page_token(fingerprint, &asked.page_token)?;
        let page_size = usize::try_from(max_results).unwrap_or(usize::MAX);
        Ok(Self { experiments: experiments?, filter, order, view, page_size, fingerprint, after })
    }
}

/// Requests about experiments under way at a time.
const AT_ONCE: usize = 16;

/// Cursors of lists whose beginnings were read to plan.
type Probed = HashMap<ExperimentId, Vec<(RunList, Cursor)>>;

impl Store {
    /// Searches runs of these experiments. `docs/search.md` says what which search costs.
    pub async fn run_search(&self, experiments: &[Granted<ExperimentId>], search: RunSearch) -> Result<Runs> {
        let reading = Reading::default();
        let store = Self { table: reading.of(&self.table), ..self.clone() };
        store.run_search_with(experiments, search, reading).await
    }

    async fn run_search_with(
        &self,
        experiments: &[Granted<ExperimentId>],
        search: RunSearch,
        reading: Reading,
    ) -> Result<Runs> {
        let RunSearch { experiments: _, filter, order, view, page_size, fingerprint, after } = search;
        let scopes = self.search_scopes(experiments).await?;

        let fields = self.indexed_fields.get().await?;
        let mut options = Options::of(&filter, &order, &fields);
        if view == ViewType::DeletedOnly {
            // What the indexer lists are active runs. The deleted ones are in a list of their own.
            options = without_lists(options);
        }
        let unlisted = self.unlisted(&scopes, &options, view);
        let (mut unlisted, mut probed) = if needs_active_runs_only(&scopes, &options, view) {
            // One more than the page: whether there is another page shows in the list already.
            let least = if options.probes().is_empty() { 1 } else { HEAD };
            let entries = page_size.saturating_add(1).max(least);
            let runs = self.read_beginnings(&scopes, &[RunList::Runs], &options, after.as_ref(), entries);
            try_join(unlisted, runs).await?
        } else {
            // In this order: a run that carries no mark is in the lists when they are read after that.
            let unlisted = unlisted.await?;
            (unlisted, self.read_beginnings(&scopes, &options.probes(), &options, after.as_ref(), HEAD).await?)
        };
        let heads = heads(&options, &probed);
        let mut plan = choose(&options, &heads, filter, order, view, page_size);
        if view == ViewType::DeletedOnly && plan.path == AccessPath::Whole {
            plan.path = AccessPath::Gather { lists: vec![RunList::Runs] };
        }
        tracing::debug!(%plan, "a search of runs");

        let uses_lists = uses_lists(&plan);
        let (listed, unindexed): (Vec<_>, Vec<_>) =
            scopes.iter().partition(|scope| !uses_lists || unlisted.get(&scope.id).is_some_and(Option::is_some));
        let mut finder = Finder::new(self, &scopes, &plan, after.as_ref(), page_size, reading, &mut unlisted);
        if uses_lists {
            finder.look_at_unlisted().await?;
        }
        match &plan.path {
            AccessPath::Ids(ids) => finder.look_at(&places(&scopes, ids)).await?,
            AccessPath::Whole => finder.read_whole(&scopes.iter().collect::<Vec<_>>()).await?,
            AccessPath::Newest { lists } => {
                let sources = listed.iter().map(|scope| {
                    let join = newest(scope, lists, &plan, &mut probed, after.as_ref(), page_size.saturating_add(1));
                    Source::Joined(join)
                });
                finder.take_from(sources.collect()).await?;
            }
            AccessPath::Walk(walk) => {
                let sources = listed.iter().map(|scope| {
                    let walker = Walker::new(ListsOf::new(scope, &plan), walk.clone(), &plan.order, after.as_ref());
                    Source::Walked(Box::new(walker))
                });
                finder.take_from(sources.collect()).await?;
            }
            AccessPath::Gather { lists } => finder.gather(&listed, lists).await?,
        }
        if uses_lists {
            finder.read_whole(&unindexed).await?;
        }
        let (runs, next_page_token) = self.run_page(finder.finish(), page_size).await?.finish(fingerprint)?;
        Ok(Runs { runs, next_page_token })
    }

    /// The runs of a page with their datasets, as far as they have room. A request per 100 datasets, and one for each run that has
    /// big ones.
    async fn run_page(&self, found: Found<SortKey, tracking::Run>, page_size: usize) -> Result<Page<SortKey>> {
        let mut page = Page::new(page_size);
        let mut datasets = RunDatasets::new(&self.table);
        let mut runs = found.entities;
        let mut loaded = 0;
        for place in 0..runs.len() {
            if place == loaded {
                loaded += datasets.load(runs[place..].iter().map(|(_, run, _)| run)).await?;
            }
            let (key, run, _) = &mut runs[place];
            if !page.has_room_for(datasets.size(run)) {
                break;
            }
            datasets.fill(run).await?;
            // MLflow's searches tell of the models that runs put out, and not of those they read.
            run.inputs.model_inputs.clear();
            page.add(key.clone(), run)?;
            run.inputs.dataset_inputs = Vec::new();
        }
        if found.has_more {
            page.ends_here();
        }
        Ok(page)
    }

    /// The experiments that are there, with their states. One request per 100 without a lease.
    async fn search_scopes(&self, experiments: &[Granted<ExperimentId>]) -> Result<Vec<Scope>> {
        let ids: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let states = self.experiments.states(&ids).await?;
        Ok(states.into_iter().map(|(id, state)| Scope { id, state }).collect())
    }

    /// Which runs the index says nothing of, by experiment. One request an experiment, or two; none if the search names its
    /// runs.
    async fn unlisted(
        &self,
        scopes: &[Scope],
        options: &Options,
        view: ViewType,
    ) -> Result<HashMap<ExperimentId, Option<Unlisted>>> {
        if options.ids.is_some() {
            return Ok(HashMap::new());
        }
        let reads_lists = reads_lists(options);
        let unlisted = scopes.iter().map(|scope| async move {
            let unlisted = if reads_lists {
                scope.unlisted(&self.table, view).await?
            } else {
                let changed = scope.changed(&self.table).await?;
                changed.map(|changed| Unlisted { changed, deleted: HashSet::new() })
            };
            Ok::<_, Error>((scope.id, unlisted))
        });
        let unlisted: Vec<_> =
            stream::iter(unlisted.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(unlisted.into_iter().collect())
    }

    /// Reads the beginnings of lists, those that are newest first from where the page begins.
    async fn read_beginnings(
        &self,
        scopes: &[Scope],
        lists: &[RunList],
        options: &Options,
        after: Option<&search::SortKey>,
        entries: usize,
    ) -> Result<Probed> {
        let cursors = scopes.iter().flat_map(|scope| lists.iter().map(move |list| (scope, list)));
        let cursors = cursors.map(|(scope, list)| async move {
            let keys = Keys::of(scope.id, list, options.started);
            let keys = if list.is_newest_first() { from_page(keys, after) } else { keys };
            let mut cursor = Cursor::new(keys, entries.min(LARGEST_PAGE));
            cursor.read_more(&self.table).await?;
            Ok::<_, Error>((scope.id, (list.clone(), cursor)))
        });
        let mut by_experiment = Probed::new();
        let cursors: Vec<_> = stream::iter(cursors.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await?;
        for (experiment, cursor) in cursors {
            by_experiment.entry(experiment).or_default().push(cursor);
        }
        Ok(by_experiment)
    }
}

/// Whether all that a search reads is the list of active runs, which is never behind, in order.
fn needs_active_runs_only(scopes: &[Scope], options: &Options, view: ViewType) -> bool {
    let newest = options.walk.as_ref().is_some_and(|walk| walk.exact && walk.segments == [RunList::Runs]);
    let is_exact = view == ViewType::ActiveOnly && scopes.iter().all(|scope| scope.index_is_exact(view));
    newest && is_exact && !reads_lists(options) && options.ids.is_none()
}

/// What is known of lists, over all experiments.
fn heads(options: &Options, probed: &Probed) -> Heads {
    let heads = options.probes().into_iter().map(|list| {
        let mut head = Head { entries: 0, complete: true, first: None, last: None };
        for cursor in probed.values().flatten().filter(|(probed, _)| *probed == list).map(|(_, cursor)| cursor) {
            let entries = cursor.buffer();
            head.entries += entries.len();
            head.complete &= cursor.is_done();
            head.first = head.first.max(entries.front().map(|entry| entry.started));
            head.last = head.last.max(entries.back().map(|entry| entry.started));
        }
        (list, head)
    });
    heads.collect()
}

/// A join of lists of an experiment that are newest first, from where the page begins; of all runs, without a list. What was
/// read of them to plan is not read again.
fn newest(
    scope: &Scope,
    lists: &[RunList],
    plan: &RunPlan,
    probed: &mut Probed,
    after: Option<&search::SortKey>,
    wanted: usize,
) -> Join {
    let lists = if lists.is_empty() { &[RunList::Runs] } else { lists };
    let first_page = if lists.len() == 1 { wanted.min(HEAD * 8) } else { HEAD };
    let cursors = lists.iter().map(|list| {
        let of_probe = take(probed, scope.id, list).filter(|_| is_as_probed(scope, list, plan));
        of_probe.unwrap_or_else(|| Cursor::new(from_page(ListsOf::new(scope, plan).keys(list), after), first_page))
    });
    Join::new(cursors.collect(), plan.order == RunOrder::default(), wanted)
}

/// The cursor of a list that was probed.
fn take(probed: &mut Probed, experiment: ExperimentId, list: &RunList) -> Option<Cursor> {
    let cursors = probed.get_mut(&experiment)?;
    let position = cursors.iter().position(|(probed, _)| probed == list)?;
    Some(cursors.swap_remove(position).1)
}

/// Whether a plan reads the same keys that were read of a list to make it: those of active runs.
fn is_as_probed(scope: &Scope, list: &RunList, plan: &RunPlan) -> bool {
    let of_active = plan.view == ViewType::ActiveOnly && scope.index_is_exact(plan.view);
    *list != RunList::Runs || uses_lists(plan) || of_active
}

/// Keys of a list that is newest first, from where the page of a search in that order begins.
fn from_page(keys: Keys, after: Option<&search::SortKey>) -> Keys {
    match after.and_then(search::SortKey::latest_first) {
        Some((started, run)) => keys.after(&key_schema::place::newest_first(started, run)),
        None => keys,
    }
}

/// What is left of a search's options without what the indexer lists.
fn without_lists(mut options: Options) -> Options {
    options.lists.clear();
    options.walk = options.walk.filter(|walk| walk.segments == [RunList::Runs]);
    options
}

/// Whether a plan may read lists that the indexer keeps.
fn reads_lists(options: &Options) -> bool {
    let by_indexer = |list: &RunList| *list != RunList::Runs;
    options.lists.iter().any(by_indexer) || options.walk.iter().flat_map(|walk| &walk.segments).any(by_indexer)
}

/// Where runs of these ids may be.
fn places(scopes: &[Scope], ids: &[String]) -> Vec<RunLocation> {
    let runs: Vec<_> = ids.iter().filter_map(|id| RunId::parse(id)).collect();
    let places = scopes.iter().flat_map(|scope| {
        let here = runs.iter().filter(|run| run.experiment().is_none_or(|experiment| experiment == scope.id));
        here.map(|run| RunLocation { experiment: scope.id, run: run.clone() })
    });
    places.collect()
}

/// The experiments a search names, each once. An integer that no experiment can have names none.
pub(crate) fn known_experiments(texts: &[String]) -> Result<Vec<ExperimentId>> {
    let (mut ids, mut seen) = (Vec::new(), HashSet::new());
    for text in texts {
        if text.is_empty() {
            return Err(Error::invalid("Invalid experiment ID ''. Experiment ID must be a valid integer."));
        }
        match ExperimentId::parse(text) {
            Ok(id) if !seen.insert(id) => {}
            Ok(id) => ids.push(id),
            Err(error) if error.code == ErrorCode::ResourceDoesNotExist => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ids)
}
