//! A search of runs with its plan. Steps 4 and 7 of a search take it as input.

use key_schema::OwnStage;
use mlflow_api::ExperimentId;
use run_index::RunLists;
use search::{AccessPath, RunPlan};
use table::Table;

use super::request::RunSearch;
use super::searched_experiment::SearchedExperiment;
use super::uncovered_runs::{RunsOutsideIndex, UncoveredByExperiment, UncoveredRuns};

/// Maximum number of experiments whose run copies are read concurrently. For each of them, one page
/// of copies is held in memory.
const MAX_EXPERIMENTS_BY_COPIES: usize = 8;

/// A search with its plan, its experiments, and those of their runs that the index does not cover.
#[derive(Clone, Copy)]
pub(super) struct PlannedSearch<'a> {
    pub(super) table: &'a Table,
    pub(super) search: &'a RunSearch,
    pub(super) experiments: &'a [SearchedExperiment],
    pub(super) uncovered: &'a UncoveredByExperiment,
    pub(super) plan: &'a RunPlan,
}

/// The lists of an experiment from which one source of candidates reads.
pub(super) enum SourceLists {
    /// Copies of runs, ordered by time. Each candidate includes its copy.
    Copies(RunLists),
    /// The lists that the plan names. Their candidates consist only of keys.
    Keys(RunLists),
}

impl<'a> PlannedSearch<'a> {
    /// Returns the runs of an experiment that the index does not cover, or `None` if not all of
    /// them are known.
    pub(super) fn known_uncovered(&self, experiment: ExperimentId) -> Option<&'a RunsOutsideIndex> {
        self.uncovered.get(&experiment).and_then(UncoveredRuns::known)
    }

    /// Returns the experiments whose lists the plan reads. If the plan uses lists of the indexer,
    /// experiments are omitted unless all of their uncovered runs are known.
    pub(super) fn listed_experiments(&self) -> Vec<&'a SearchedExperiment> {
        self.experiments.iter().filter(|experiment| self.is_listed(experiment)).collect()
    }

    /// Returns the experiments that are read in full, because they have so many uncovered runs that
    /// reading these individually would cost more.
    pub(super) fn unlisted_experiments(&self) -> Vec<&'a SearchedExperiment> {
        self.experiments.iter().filter(|experiment| !self.is_listed(experiment)).collect()
    }

    fn is_listed(&self, experiment: &SearchedExperiment) -> bool {
        !self.plan.reads_index() || self.known_uncovered(experiment.id).is_some()
    }

    /// Checks whether the search reads copies of runs in order of time. In that case, a separate
    /// list provides the runs that have changed since their copies were written.
    pub(super) fn reads_copies_by_time(&self) -> bool {
        self.plan.reads_by_time() && self.experiments.len() <= MAX_EXPERIMENTS_BY_COPIES
    }

    /// Checks whether the lists are read in the reverse order of their keys.
    pub(super) fn reads_backwards(&self) -> bool {
        matches!(&self.plan.path, AccessPath::Walk(walk) if walk.backwards)
    }

    /// Checks whether every candidate passes, because there is no filter and the list contains
    /// exactly the runs of the view, without duplicates.
    pub(super) fn all_candidates_pass(&self) -> bool {
        let is_exact = |experiment: &SearchedExperiment| {
            let has_changed = self.known_uncovered(experiment.id).is_some_and(|runs| !runs.changed.is_empty());
            experiment.index_is_exact(self.search.view) && !(self.reads_copies_by_time() && has_changed)
        };
        self.search.filter.predicates.is_empty() && !self.plan.reads_index() && self.experiments.iter().all(is_exact)
    }

    /// Returns, in the order of the experiments, one entry per source of candidates: the
    /// experiment, and the lists that the source reads.
    pub(super) fn source_lists(&self) -> impl Iterator<Item = (&'a SearchedExperiment, SourceLists)> {
        let of_all =
            self.listed_experiments().into_iter().map(|experiment| (experiment, self.lists_of_sources(experiment)));
        of_all.flat_map(|(experiment, lists)| lists.into_iter().map(move |lists| (experiment, lists)))
    }

    /// Returns the lists of an experiment, one entry for each source of candidates. A search in
    /// order of time reads copies of runs. If some runs have changed since they were indexed, a
    /// second source reads their positions from the list that requests maintain. A run that is in
    /// both sources is taken from its copy first.
    fn lists_of_sources(&self, experiment: &SearchedExperiment) -> Vec<SourceLists> {
        let keys = || SourceLists::Keys(experiment.lists_of(self.plan, self.search.view));
        let uncovered = self.known_uncovered(experiment.id).filter(|_| self.reads_copies_by_time());
        let Some(uncovered) = uncovered else { return vec![keys()] };
        let copies = |stage: &OwnStage| SourceLists::Copies(RunLists::copies(experiment.id, self.plan.started, *stage));
        // If the plan uses lists of the indexer, the runs that changed or were deleted individually
        // have already been examined, so no second source is needed.
        if self.plan.reads_index() {
            return vec![copies(&OwnStage::Active)];
        }
        let copies = experiment.copies(self.search.view).iter().map(copies);
        copies.chain((!uncovered.changed.is_empty()).then(keys)).collect()
    }
}
