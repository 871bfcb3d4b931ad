//! Searching runs: carrying out a plan of the `search` crate.
//!
//! A plan names lists of the index ([`RunLists`] says where they are). Their entries are
//! candidates, in one [`Source`] per experiment. Candidates of all experiments are taken in one
//! order, read in portions, checked against the whole filter and sorted ([`finder`]), until the
//! page is full. Runs that have changed since they were indexed may be in no list: they are looked
//! at in any case ([`searched`]).

mod asked;
mod finder;
mod gather;
mod searched;

use std::collections::HashMap;

use access::Granted;
use entities::RunLocation;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{OwnStage, place};
use listing::{Page, Reading};
use mlflow_api::tracking::{Runs, ViewType};
use mlflow_api::{Error, ExperimentId, Result, RunId};
use run_index::{Cursor, HEAD, Join, RunLists, Source, Walker};
use search::{AccessPath, Ask, CommonFields, Head, Heads, RunList, RunOptions, RunPlan, SortBy, SortKey, choose};

use crate::store::Store;
use crate::store::run::RunDatasets;
use finder::{Finder, Found, ReadFrom};
use searched::{Marks, SearchedExperiment, Unindexed, Unlisted};

pub use asked::RunSearch;
pub(crate) use asked::known_experiments;
pub use searched::SearchBounds;

/// Requests about experiments under way at a time.
const AT_ONCE: usize = 16;

/// Of more experiments than this, a search reads fewer lists: each is a request for each experiment, whatever it holds there.
const MANY_EXPERIMENTS: usize = 100;
/// How many lists of each of many experiments are read, in addition to the one that the search is
/// ordered by.
const LISTS_OF_MANY: usize = 1;

/// Looks at the newest runs of all experiments, where some are long. Says whether they fill the
/// page.
async fn fill_by_time(finder: &mut Finder<'_>, searched: &[SearchedExperiment]) -> Result<bool> {
    let (plan, search) = (finder.plan, finder.search);
    let sources = sources(&searched.iter().collect::<Vec<_>>(), finder, plan, search.view, |within, by_time| {
        let lists = by_time.unwrap_or_else(|| within.lists_of(plan, search.view));
        Source::Joined(by_time_of(&lists, search, first_page(search, searched.len())))
    });
    finder.take_some_from(sources, finder.store.search_bounds.newest).await
}

/// Cursors of lists whose beginnings were read to plan.
type Probed = HashMap<ExperimentId, Vec<(RunList, Cursor)>>;

impl Store {
    /// Searches runs of these experiments. `docs/search.md` has the cost of each kind of search.
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
        let (view, page_size, after) = (search.view, search.page_size, search.after.as_ref());
        let sorting = search.order.sorting();
        let searched = self.searched_experiments(experiments).await?;

        let asks = search.filter.asks();
        // Times and numbers are indexed whatever the setting says.
        let asks_for_text =
            asks.iter().any(|ask| matches!(ask, Ask::Text { .. })) || matches!(sorting.by, SortBy::Text(_));
        let ids = searched.iter().map(|within| &within.id);
        let fields = if asks_for_text { self.indexed_fields.of(ids).await? } else { CommonFields::default() };
        let mut options = RunOptions::of(&asks, &sorting, &fields);
        if view == ViewType::DeletedOnly {
            // The indexer only lists active runs.
            options = without_lists(options);
        }
        if searched.len() > MANY_EXPERIMENTS {
            options.lists.truncate(LISTS_OF_MANY);
        }
        // In this order: a run that carries no mark is in the lists, and as its copy says, when these are read after that.
        let bound = sorting.is_newest_first().then_some(self.search_bounds.marks);
        let mut unlisted = self.unlisted(&searched, &options, view, bound).await?;
        let is_long = |within: &&SearchedExperiment| matches!(unlisted.get(&within.id), Some(Unindexed::Long));
        let long: Vec<_> = searched.iter().filter(is_long).cloned().collect();
        if !long.is_empty() {
            let by_time = search::by_time(&options, page_size);
            let mut finder = Finder::new(self, &searched, &by_time, &search, reading.clone(), unlisted.clone());
            if fill_by_time(&mut finder, &searched).await? {
                return self.answer(finder, &search).await;
            }
            unlisted.extend(self.unlisted(&long, &options, view, None).await?);
        }
        let mut probed = self.read_beginnings(&searched, &options.probes(), &options, after, HEAD).await?;
        let heads = heads(&options, &probed);
        let plan = choose(&options, &heads, page_size);
        tracing::debug!(%plan, filter = %search.filter, order = %search.order, ?view, "a search of runs");

        let uses_lists = plan.reads_index();
        let (listed, unindexed): (Vec<_>, Vec<_>) = searched
            .iter()
            .partition(|within| !uses_lists || matches!(unlisted.get(&within.id), Some(Unindexed::Known(_))));
        let mut finder = Finder::new(self, &searched, &plan, &search, reading, unlisted);
        if uses_lists {
            finder.look_at_unlisted().await?;
        }
        match &plan.path {
            AccessPath::Ids(ids) => {
                finder.look_at(places(&searched, ids).into_iter().map(|at| (at, ReadFrom::Documents))).await?;
            }
            AccessPath::Whole => finder.read_whole(&searched.iter().collect::<Vec<_>>()).await?,
            AccessPath::Newest { lists } => {
                let join = |within: &SearchedExperiment, by_time: Option<RunLists>| {
                    let join = match by_time {
                        Some(all) => by_time_of(&all, &search, first_page(&search, searched.len())),
                        None => newest(within, lists, &plan, &search, &mut probed),
                    };
                    Source::Joined(join)
                };
                let sources = sources(&listed, &finder, &plan, view, join);
                finder.take_from(sources).await?;
            }
            AccessPath::Walk(walk) => {
                let walker = |within: &SearchedExperiment, by_time: Option<RunLists>| {
                    let lists = by_time.unwrap_or_else(|| within.lists_of(&plan, view));
                    let walker = Walker::new(lists, walk.clone(), &sorting, after);
                    let is_by_time = plan.reads_by_time();
                    let walker =
                        if is_by_time { walker.with_first_page(first_page(&search, searched.len())) } else { walker };
                    Source::Walked(Box::new(walker))
                };
                let sources = sources(&listed, &finder, &plan, view, walker);
                finder.take_from(sources).await?;
            }
            AccessPath::Gather { lists } => finder.gather(&listed, lists).await?,
        }
        if uses_lists {
            finder.read_whole(&unindexed).await?;
        }
        self.answer(finder, &search).await
    }

    async fn answer(&self, finder: Finder<'_>, search: &RunSearch) -> Result<Runs> {
        let page = self.run_page(finder.finish(), search.page_size, search.hides_models).await?;
        let (runs, next_page_token) = page.finish(search.fingerprint)?;
        Ok(Runs { runs, next_page_token })
    }

    /// The runs of a page with their datasets, as far as they have room. A request per 100 datasets, and one for each run that has
    /// big ones.
    async fn run_page(
        &self,
        (mut runs, has_more): (Vec<Found>, bool),
        page_size: usize,
        hides_models: bool,
    ) -> Result<Page<SortKey>> {
        let mut page = Page::new(page_size);
        let mut datasets = RunDatasets::new(&self.table);
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
            if hides_models {
                run.hide_models();
            }
            page.add(key.clone(), run)?;
            run.inputs.dataset_inputs = Vec::new();
        }
        if has_more {
            page.ends_here();
        }
        Ok(page)
    }

    /// The experiments that are there, with their states. One request per 100 without a lease.
    async fn searched_experiments(&self, experiments: &[Granted<ExperimentId>]) -> Result<Vec<SearchedExperiment>> {
        let ids: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let states = self.experiments.states(&ids).await?;
        Ok(states.into_iter().map(|(id, state)| SearchedExperiment { id, state }).collect())
    }

    /// Which runs the index says nothing of, by experiment. One request an experiment, or two; none if the search names its
    /// runs.
    async fn unlisted(
        &self,
        searched: &[SearchedExperiment],
        options: &RunOptions,
        view: ViewType,
        bound: Option<usize>,
    ) -> Result<HashMap<ExperimentId, Unindexed>> {
        if options.ids.is_some() {
            return Ok(HashMap::new());
        }
        let (reads_lists, marks) = (reads_lists(options), &Marks::default());
        let unlisted = searched.iter().map(|within| async move {
            let unlisted = if reads_lists {
                within.unlisted(&self.table, view, marks, bound).await?
            } else {
                let changed = within.changed(&self.table).await?;
                let known = changed.map(|changed| Unlisted { changed, deleted: HashMap::new() });
                known.map_or(Unindexed::Whole, Unindexed::Known)
            };
            Ok::<_, Error>((within.id, unlisted))
        });
        let unlisted: Vec<_> =
            stream::iter(unlisted.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(unlisted.into_iter().collect())
    }

    /// Reads the beginnings of lists, those that are newest first from where the page begins.
    async fn read_beginnings(
        &self,
        searched: &[SearchedExperiment],
        lists: &[RunList],
        options: &RunOptions,
        after: Option<&SortKey>,
        entries: usize,
    ) -> Result<Probed> {
        let cursors = searched.iter().flat_map(|within| lists.iter().map(move |list| (within, list)));
        let cursors = cursors.map(|(within, list)| async move {
            let mut cursor = from_page(&RunLists::of_active(within.id, options.started), list, after, entries);
            cursor.read_more(&self.table).await?;
            Ok::<_, Error>((within.id, (list.clone(), cursor)))
        });
        let mut by_experiment = Probed::new();
        let cursors: Vec<_> = stream::iter(cursors.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await?;
        for (experiment, cursor) in cursors {
            by_experiment.entry(experiment).or_default().push(cursor);
        }
        Ok(by_experiment)
    }
}

/// The sources of candidates of experiments, in order. In the order of time, runs are read from
/// their copies. Where some have changed since they were indexed, the list that requests write
/// gives their places. A run that is in both comes from its copy first.
fn sources(
    searched: &[&SearchedExperiment],
    finder: &Finder<'_>,
    plan: &RunPlan,
    view: ViewType,
    mut of: impl FnMut(&SearchedExperiment, Option<RunLists>) -> Source,
) -> Vec<Source> {
    let mut sources = Vec::new();
    for within in searched {
        let has_changed = finder.by_copies(within);
        if has_changed.is_some() {
            // Where lists are used, runs that were deleted on their own have been looked at.
            let stages = if plan.reads_index() { &[OwnStage::Active] } else { within.copies(view) };
            let copies = stages.iter().map(|stage| RunLists::copies(within.id, plan.started, *stage));
            sources.extend(copies.map(|copies| of(within, Some(copies))));
        }
        if has_changed != Some(false) {
            sources.push(of(within, None));
        }
    }
    sources
}

/// How many runs by time are read at first from each of some experiments: one more than the page, which says whether there is another.
fn first_page(search: &RunSearch, experiments: usize) -> usize {
    let wanted = search.page_size.saturating_add(1);
    if experiments > 1 { (wanted / experiments).saturating_mul(2).clamp(8, wanted.max(8)) } else { wanted }
}

/// The runs of a list by time, from where the page begins.
fn by_time_of(all: &RunLists, search: &RunSearch, first_page: usize) -> Join {
    let cursor = from_page(all, &RunList::All, search.after.as_ref(), first_page);
    Join::new(vec![cursor], search.order.sorting().is_newest_first(), search.page_size.saturating_add(1))
}

/// The beginnings of lists, over all experiments.
fn heads(options: &RunOptions, probed: &Probed) -> Heads {
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

/// A join of lists of an experiment that are newest first, from where the page begins. Without a
/// list, it is the list of all runs. Entries that were read for the plan are not read again.
fn newest(
    within: &SearchedExperiment,
    lists: &[RunList],
    plan: &RunPlan,
    search: &RunSearch,
    probed: &mut Probed,
) -> Join {
    let lists = if lists.is_empty() { &[RunList::All] } else { lists };
    let wanted = search.page_size.saturating_add(1);
    let first_page = if lists.len() == 1 { wanted.min(HEAD * 8) } else { HEAD };
    let of_plan = within.lists_of(plan, search.view);
    let cursors = lists.iter().map(|list| {
        let of_probe = take(probed, within.id, list).filter(|_| is_as_probed(within, list, plan, search.view));
        of_probe.unwrap_or_else(|| from_page(&of_plan, list, search.after.as_ref(), first_page))
    });
    Join::new(cursors.collect(), search.order.sorting().is_newest_first(), wanted)
}

/// The cursor of a list that was probed.
fn take(probed: &mut Probed, experiment: ExperimentId, list: &RunList) -> Option<Cursor> {
    let cursors = probed.get_mut(&experiment)?;
    let position = cursors.iter().position(|(probed, _)| probed == list)?;
    Some(cursors.swap_remove(position).1)
}

/// Whether a plan reads the same keys that were read of a list to make it: those of active runs.
fn is_as_probed(within: &SearchedExperiment, list: &RunList, plan: &RunPlan, view: ViewType) -> bool {
    let of_active = view == ViewType::ActiveOnly && within.index_is_exact(view);
    list.is_indexed() || plan.reads_index() || of_active
}

/// A cursor in a list; if the list is newest first, where the page of a search in that order begins.
fn from_page(lists: &RunLists, list: &RunList, after: Option<&SortKey>, first_page: usize) -> Cursor {
    let range = lists.range(list);
    let range = match after.and_then(SortKey::latest_first) {
        Some((started, run)) if list.is_newest_first() => range.after(&place::newest_first(started, run)),
        _ => range,
    };
    Cursor::new(lists, range, first_page)
}

/// The options of a search without the lists that the indexer keeps.
fn without_lists(mut options: RunOptions) -> RunOptions {
    options.lists.clear();
    options.walk = options.walk.filter(|walk| walk.segments == [RunList::All]);
    options
}

/// Whether a plan may read lists that the indexer keeps.
fn reads_lists(options: &RunOptions) -> bool {
    let in_order = options.walk.iter().flat_map(|walk| &walk.segments);
    options.lists.iter().chain(in_order).any(RunList::is_indexed)
}

/// Where runs of these ids may be.
fn places(searched: &[SearchedExperiment], ids: &[String]) -> Vec<RunLocation> {
    let runs: Vec<_> = ids.iter().filter_map(|id| RunId::parse(id)).collect();
    let places = searched.iter().flat_map(|within| {
        let here = runs.iter().filter(|run| run.experiment().is_none_or(|experiment| experiment == within.id));
        here.map(|run| RunLocation { experiment: within.id, run: run.clone() })
    });
    places.collect()
}
