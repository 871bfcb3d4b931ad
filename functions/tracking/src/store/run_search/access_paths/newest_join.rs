//! The path `Newest`: lists that are newest first, joined.

use mlflow_api::Result;
use mlflow_api::tracking::ViewType;
use run_index::{CandidateSource, HEAD_ENTRIES, ListCursor, ListJoin, RunLists};
use search::RunList;

use crate::store::run_search::finder::RunFinder;
use crate::store::run_search::list_cursors::{join_by_time, page_cursor};
use crate::store::run_search::planned_search::{PlannedSearch, SourceLists};
use crate::store::run_search::probed_lists::ProbedLists;
use crate::store::run_search::searched_experiment::SearchedExperiment;

impl RunFinder<'_> {
    /// Reads the runs that are in all of these lists, newest first, until the page is full. Without
    /// any list, it uses the list of all runs.
    pub(super) async fn read_newest(&mut self, lists: &[RunList], mut probed: ProbedLists) -> Result<()> {
        let planned = self.planned;
        let lists = if lists.is_empty() { &[RunList::All] } else { lists };
        let sources = planned.source_lists().map(|(experiment, of_source)| {
            CandidateSource::Joined(match of_source {
                SourceLists::Copies(copies) => join_by_time(&copies, planned.search, planned.experiments.len()),
                SourceLists::Keys(keys) => join(&planned, experiment, &keys, lists, &mut probed),
            })
        });
        let sources = sources.collect();
        self.fill_page(sources).await
    }
}

/// Joins lists of an experiment that are newest first, from the start of the page on. Entries that
/// were read for planning are not read again.
fn join(
    planned: &PlannedSearch<'_>,
    experiment: &SearchedExperiment,
    of_plan: &RunLists,
    lists: &[RunList],
    probed: &mut ProbedLists,
) -> ListJoin {
    let search = planned.search;
    let wanted = search.runs_to_find();
    let first_page = if lists.len() == 1 { wanted.min(HEAD_ENTRIES * 8) } else { HEAD_ENTRIES };
    let cursors = lists.iter().map(|list| {
        let of_probe = probed.take(experiment.id, list).filter(|_| is_as_probed(planned, experiment, list));
        of_probe.unwrap_or_else(|| page_cursor(of_plan, list, search, first_page))
    });
    ListJoin::new(cursors.collect::<Vec<ListCursor>>(), search.is_newest_first(), wanted)
}

/// Checks whether the plan reads the same keys of a list, those of active runs, that were read for
/// planning.
fn is_as_probed(planned: &PlannedSearch<'_>, experiment: &SearchedExperiment, list: &RunList) -> bool {
    let view = planned.search.view;
    let of_active = view == ViewType::ActiveOnly && experiment.index_is_exact(view);
    list.is_indexed() || planned.plan.reads_index() || of_active
}
