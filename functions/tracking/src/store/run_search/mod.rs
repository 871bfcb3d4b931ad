//! Searches of runs: carries out a plan of the `search` crate.
//!
//! A plan names lists of the index, whose keys [`RunLists`] provides. Their entries are candidates,
//! in one [`Source`] per experiment. Candidates of all experiments are merged in one order, read in
//! batches, checked against the whole filter, and sorted ([`finder`]) until the page is full. Runs
//! that changed since they were indexed may be in no list, so they are always read ([`uncovered_runs`]).

mod bounds;
mod finder;
mod gather;
mod mark_budget;
mod marks;
mod options;
mod request;
mod searched_experiment;
mod uncovered_runs;

use std::collections::HashMap;

use access::Granted;
use entities::RunLocation;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{OwnStage, place};
use listing::{Page, Reading};
use mlflow_api::tracking::{Runs, ViewType};
use mlflow_api::{Error, ExperimentId, Result, RunId};
use run_index::{Cursor, HEAD, Join, RunLists, Source, Walker};
use search::{AccessPath, Head, Heads, RunList, RunOptions, RunPlan, SortKey, choose};

use crate::store::Store;
use crate::store::run::RunDatasets;
use finder::{Finder, Found, ReadFrom};
use searched_experiment::{CONCURRENCY, SearchedExperiment};
use uncovered_runs::{UncoveredRuns, long_experiments};

pub use bounds::SearchBounds;
pub use request::RunSearch;
pub(crate) use request::known_experiments;

/// Reads the newest runs of all experiments, if some of the experiments are long. Returns whether
/// they fill the page.
async fn fill_by_time(finder: &mut Finder<'_>, searched: &[SearchedExperiment]) -> Result<bool> {
    let (plan, search) = (finder.plan, finder.search);
    let sources = sources(&searched.iter().collect::<Vec<_>>(), finder, plan, search.view, |within, by_time| {
        let lists = by_time.unwrap_or_else(|| within.lists_of(plan, search.view));
        Source::Joined(by_time_of(&lists, search, first_page(search, searched.len())))
    });
    finder.take_some_from(sources, finder.store.search_bounds.newest).await
}

/// Cursors of lists whose first entries were read for planning.
type Probed = HashMap<ExperimentId, Vec<(RunList, Cursor)>>;

impl Store {
    /// Searches the runs of these experiments. `docs/design/search.md` lists the cost of each kind of
    /// search.
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

        let options = self.run_options(&searched, &search).await?;
        // Marks are read before lists and copies. A run that has no mark by then is in the lists,
        // and its copy is current.
        let bound = sorting.is_newest_first().then_some(self.search_bounds.marks);
        let mut uncovered = self.uncovered_runs(&searched, &options, view, bound).await?;
        let long = long_experiments(&searched, &uncovered);
        if !long.is_empty() {
            let by_time = search::by_time(&options, page_size);
            let mut finder = Finder::new(self, &searched, &by_time, &search, reading.clone(), uncovered.clone());
            if fill_by_time(&mut finder, &searched).await? {
                return self.answer(finder, &search).await;
            }
            uncovered.extend(self.uncovered_runs(&long, &options, view, None).await?);
        }
        let mut probed = self.read_beginnings(&searched, &options.probes(), &options, after, HEAD).await?;
        let heads = heads(&options, &probed);
        let plan = choose(&options, &heads, page_size);
        tracing::debug!(%plan, filter = %search.filter, order = %search.order, ?view, "a search of runs");

        let uses_lists = plan.reads_index();
        let (listed, unindexed): (Vec<_>, Vec<_>) = searched
            .iter()
            .partition(|within| !uses_lists || uncovered.get(&within.id).and_then(UncoveredRuns::known).is_some());
        let mut finder = Finder::new(self, &searched, &plan, &search, reading, uncovered);
        if uses_lists {
            finder.look_at_uncovered().await?;
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

    /// Returns as many runs as fit on the page, with their datasets. Takes a request per 100
    /// datasets, and one for each run that has large ones.
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
            // In MLflow, searches return the models that runs produced, but not those that they
            // read.
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

    /// Reads the first entries of lists. For lists that are newest first, these are the first ones
    /// of the page.
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
        let cursors: Vec<_> = stream::iter(cursors.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await?;
        for (experiment, cursor) in cursors {
            by_experiment.entry(experiment).or_default().push(cursor);
        }
        Ok(by_experiment)
    }
}

/// Returns the sources of candidates, in the order of the experiments. In order of time, runs are
/// read from their copies. If some have changed since they were indexed, the list that requests
/// write provides their positions. A run that is in both comes from its copy first.
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
            // If the plan uses lists, runs that were deleted individually have been examined
            // already.
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

/// Returns how many runs by time to read first from each experiment. For a single experiment, it is
/// one more than the page size, to show whether there is another page.
fn first_page(search: &RunSearch, experiments: usize) -> usize {
    let wanted = search.page_size.saturating_add(1);
    if experiments > 1 { (wanted / experiments).saturating_mul(2).clamp(8, wanted.max(8)) } else { wanted }
}

/// Returns the runs of a list by time, from the start of the page on.
fn by_time_of(all: &RunLists, search: &RunSearch, first_page: usize) -> Join {
    let cursor = from_page(all, &RunList::All, search.after.as_ref(), first_page);
    Join::new(vec![cursor], search.order.sorting().is_newest_first(), search.page_size.saturating_add(1))
}

/// Summarizes the first entries of lists over all experiments.
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

/// Joins lists of an experiment that are newest first, from the start of the page on. Without any
/// list, it uses the list of all runs. Entries that were read for planning are not read again.
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

/// Removes and returns the cursor of a list that was read for planning.
fn take(probed: &mut Probed, experiment: ExperimentId, list: &RunList) -> Option<Cursor> {
    let cursors = probed.get_mut(&experiment)?;
    let position = cursors.iter().position(|(probed, _)| probed == list)?;
    Some(cursors.swap_remove(position).1)
}

/// Checks whether the plan reads the same keys of a list, those of active runs, that were read for
/// planning.
fn is_as_probed(within: &SearchedExperiment, list: &RunList, plan: &RunPlan, view: ViewType) -> bool {
    let of_active = view == ViewType::ActiveOnly && within.index_is_exact(view);
    list.is_indexed() || plan.reads_index() || of_active
}

/// Returns a cursor over a list. If the list is newest first, the cursor starts where the page of a
/// search in that order starts.
fn from_page(lists: &RunLists, list: &RunList, after: Option<&SortKey>, first_page: usize) -> Cursor {
    let range = lists.range(list);
    let range = match after.and_then(SortKey::latest_first) {
        Some((started, run)) if list.is_newest_first() => range.after(&place::newest_first(started, run)),
        _ => range,
    };
    Cursor::new(lists, range, first_page)
}

/// Returns the possible locations of runs with these ids.
fn places(searched: &[SearchedExperiment], ids: &[String]) -> Vec<RunLocation> {
    let runs: Vec<_> = ids.iter().filter_map(|id| RunId::parse(id)).collect();
    let places = searched.iter().flat_map(|within| {
        let here = runs.iter().filter(|run| run.experiment().is_none_or(|experiment| experiment == within.id));
        here.map(|run| RunLocation { experiment: within.id, run: run.clone() })
    });
    places.collect()
}
