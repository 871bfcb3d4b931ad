//! Searches of runs: carries out a plan of the `search` crate.
//!
//! A plan names lists of the index, whose keys [`RunLists`] provides. Their entries are candidates,
//! in one [`Source`] per experiment. Candidates of all experiments are merged in one order, read in
//! batches, checked against the whole filter, and sorted ([`finder`]) until the page is full. Runs
//! that changed since they were indexed may be in no list, so they are always read ([`uncovered_runs`]).

mod bounds;
mod finder;
mod list_cursors;
mod mark_budget;
mod marks;
mod options;
mod page;
mod probed_lists;
mod request;
mod searched_experiment;
mod uncovered_runs;

use access::Granted;
use entities::RunLocation;
use key_schema::OwnStage;
use listing::Reading;
use mlflow_api::tracking::{Runs, ViewType};
use mlflow_api::{ExperimentId, Result, RunId};
use run_index::{HEAD, Join, RunLists, Source, Walker};
use search::{AccessPath, RunList, RunPlan, choose};

use crate::store::Store;
use finder::{Finder, RunToRead};
use list_cursors::{first_page_by_time, join_by_time, page_cursor};
use probed_lists::ProbedLists;
use searched_experiment::SearchedExperiment;
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
        Source::Joined(join_by_time(&lists, search, searched.len()))
    });
    finder.try_to_fill_page(sources, Some(finder.store.search_bounds.newest)).await
}

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
        let bound = search.is_newest_first().then_some(self.search_bounds.marks);
        let mut uncovered = self.uncovered_runs(&searched, &options, view, bound).await?;
        let long = long_experiments(&searched, &uncovered);
        if !long.is_empty() {
            let by_time = search::by_time(&options, page_size);
            let mut finder = Finder::new(self, &searched, &by_time, &search, reading.clone(), uncovered.clone());
            if fill_by_time(&mut finder, &searched).await? {
                return self.run_page(finder.finish(), &search).await;
            }
            uncovered.extend(self.uncovered_runs(&long, &options, view, None).await?);
        }
        let mut probed = self.probed_lists(&searched, &options, &search).await?;
        let plan = choose(&options, &probed.heads(&options), page_size);
        tracing::debug!(%plan, filter = %search.filter, order = %search.order, ?view, "a search of runs");

        let uses_lists = plan.reads_index();
        let (listed, unindexed): (Vec<_>, Vec<_>) = searched
            .iter()
            .partition(|within| !uses_lists || uncovered.get(&within.id).and_then(UncoveredRuns::known).is_some());
        let mut finder = Finder::new(self, &searched, &plan, &search, reading, uncovered);
        if uses_lists {
            finder.examine_uncovered().await?;
        }
        match &plan.path {
            AccessPath::Ids(ids) => {
                finder.examine(places(&searched, ids).into_iter().map(RunToRead::from_documents).collect()).await?;
            }
            AccessPath::Whole => finder.read_whole(&searched.iter().collect::<Vec<_>>()).await?,
            AccessPath::Newest { lists } => {
                let join = |within: &SearchedExperiment, by_time: Option<RunLists>| {
                    let join = match by_time {
                        Some(all) => join_by_time(&all, &search, searched.len()),
                        None => newest(within, lists, &plan, &search, &mut probed),
                    };
                    Source::Joined(join)
                };
                let sources = sources(&listed, &finder, &plan, view, join);
                finder.fill_page(sources).await?;
            }
            AccessPath::Walk(walk) => {
                let walker = |within: &SearchedExperiment, by_time: Option<RunLists>| {
                    let lists = by_time.unwrap_or_else(|| within.lists_of(&plan, view));
                    let walker = Walker::new(lists, walk.clone(), &sorting, after);
                    let is_by_time = plan.reads_by_time();
                    let walker = if is_by_time {
                        walker.with_first_page(first_page_by_time(&search, searched.len()))
                    } else {
                        walker
                    };
                    Source::Walked(Box::new(walker))
                };
                let sources = sources(&listed, &finder, &plan, view, walker);
                finder.fill_page(sources).await?;
            }
            AccessPath::Gather { lists } => finder.gather(&listed, lists).await?,
        }
        if uses_lists {
            finder.read_whole(&unindexed).await?;
        }
        self.run_page(finder.finish(), &search).await
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

/// Joins lists of an experiment that are newest first, from the start of the page on. Without any
/// list, it uses the list of all runs. Entries that were read for planning are not read again.
fn newest(
    within: &SearchedExperiment,
    lists: &[RunList],
    plan: &RunPlan,
    search: &RunSearch,
    probed: &mut ProbedLists,
) -> Join {
    let lists = if lists.is_empty() { &[RunList::All] } else { lists };
    let wanted = search.runs_to_find();
    let first_page = if lists.len() == 1 { wanted.min(HEAD * 8) } else { HEAD };
    let of_plan = within.lists_of(plan, search.view);
    let cursors = lists.iter().map(|list| {
        let of_probe = probed.take(within.id, list).filter(|_| is_as_probed(within, list, plan, search.view));
        of_probe.unwrap_or_else(|| page_cursor(&of_plan, list, search, first_page))
    });
    Join::new(cursors.collect(), search.is_newest_first(), wanted)
}

/// Checks whether the plan reads the same keys of a list, those of active runs, that were read for
/// planning.
fn is_as_probed(within: &SearchedExperiment, list: &RunList, plan: &RunPlan, view: ViewType) -> bool {
    let of_active = view == ViewType::ActiveOnly && within.index_is_exact(view);
    list.is_indexed() || plan.reads_index() || of_active
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
