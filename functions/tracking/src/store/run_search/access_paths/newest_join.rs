//! The access path `Newest`: joins lists that are ordered newest first.

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
    /// Reads, newest first, the runs that are in all of these lists, until the page is full. If no
    /// lists are given, reads the list of all runs.
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

/// Joins lists of an experiment that are ordered newest first, starting at the requested page.
/// Entries that were already read for planning are reused.
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

/// Checks whether the plan reads exactly the list that was read for planning. Only active runs were
/// read for planning.
fn is_as_probed(planned: &PlannedSearch<'_>, experiment: &SearchedExperiment, list: &RunList) -> bool {
    let view = planned.search.view;
    let of_active = view == ViewType::ActiveOnly && experiment.index_is_exact(view);
    list.is_indexed() || planned.plan.reads_index() || of_active
}
