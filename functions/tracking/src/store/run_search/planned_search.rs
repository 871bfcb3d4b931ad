//! A search with its plan: the input of steps 4 and 7.

use key_schema::OwnStage;
use mlflow_api::ExperimentId;
use run_index::RunLists;
use search::{AccessPath, RunPlan};
use table::Table;

use super::request::RunSearch;
use super::searched_experiment::SearchedExperiment;
use super::uncovered_runs::{RunsOutsideIndex, UncoveredByExperiment, UncoveredRuns};

/// Maximum number of experiments whose copies are read concurrently. A page of each is in memory.
const MAX_EXPERIMENTS_BY_COPIES: usize = 8;

/// A search with its plan, and what was determined about its experiments.
#[derive(Clone, Copy)]
pub(super) struct PlannedSearch<'a> {
    pub(super) table: &'a Table,
    pub(super) search: &'a RunSearch,
    pub(super) experiments: &'a [SearchedExperiment],
    pub(super) uncovered: &'a UncoveredByExperiment,
    pub(super) plan: &'a RunPlan,
}

/// Lists of an experiment that one source of candidates reads.
pub(super) enum SourceLists {
    /// The copies of runs by time. Their candidates bring the copies.
    Copies(RunLists),
    /// The lists that the plan names. Their candidates are keys.
    Keys(RunLists),
}

impl<'a> PlannedSearch<'a> {
    /// Returns the uncovered runs of an experiment if all of them are known.
    pub(super) fn known_uncovered(&self, experiment: ExperimentId) -> Option<&'a RunsOutsideIndex> {
        self.uncovered.get(&experiment).and_then(UncoveredRuns::known)
    }

    /// Returns the experiments whose lists the plan reads. If it uses lists of the indexer, these are
    /// the ones whose uncovered runs are known.
    pub(super) fn listed_experiments(&self) -> Vec<&'a SearchedExperiment> {
        self.experiments.iter().filter(|experiment| self.is_listed(experiment)).collect()
    }

    /// Returns the experiments that are read whole, because reading their uncovered runs
    /// individually is more expensive.
    pub(super) fn unlisted_experiments(&self) -> Vec<&'a SearchedExperiment> {
        self.experiments.iter().filter(|experiment| !self.is_listed(experiment)).collect()
    }

    fn is_listed(&self, experiment: &SearchedExperiment) -> bool {
        !self.plan.reads_index() || self.known_uncovered(experiment.id).is_some()
    }

    /// Checks whether runs are read by time, from their copies. In that case, runs that have changed
    /// since are in a separate list.
    pub(super) fn reads_copies_by_time(&self) -> bool {
        self.plan.reads_by_time() && self.experiments.len() <= MAX_EXPERIMENTS_BY_COPIES
    }

    /// Checks whether the lists are read in the reverse order of their keys.
    pub(super) fn reads_backwards(&self) -> bool {
        matches!(&self.plan.path, AccessPath::Walk(walk) if walk.backwards)
    }

    /// Checks whether all candidates pass: there is no filter, and the list has exactly the runs
    /// that the view shows, each once.
    pub(super) fn all_candidates_pass(&self) -> bool {
        let is_exact = |experiment: &SearchedExperiment| {
            let has_changed = self.known_uncovered(experiment.id).is_some_and(|runs| !runs.changed.is_empty());
            experiment.index_is_exact(self.search.view) && !(self.reads_copies_by_time() && has_changed)
        };
        self.search.filter.predicates.is_empty() && !self.plan.reads_index() && self.experiments.iter().all(is_exact)
    }

    /// Returns the lists for the sources of candidates, in the order of the experiments.
    pub(super) fn source_lists(&self) -> impl Iterator<Item = (&'a SearchedExperiment, SourceLists)> {
        let of_all =
            self.listed_experiments().into_iter().map(|experiment| (experiment, self.lists_of_sources(experiment)));
        of_all.flat_map(|(experiment, lists)| lists.into_iter().map(move |lists| (experiment, lists)))
    }

    /// Returns the lists of an experiment, one for each source. In order of time, runs are read from
    /// their copies. If some have changed since they were indexed, the list that requests write
    /// provides their positions. A run that is in both comes from its copy first.
    fn lists_of_sources(&self, experiment: &SearchedExperiment) -> Vec<SourceLists> {
        let keys = || SourceLists::Keys(experiment.lists_of(self.plan, self.search.view));
        let uncovered = self.known_uncovered(experiment.id).filter(|_| self.reads_copies_by_time());
        let Some(uncovered) = uncovered else { return vec![keys()] };
        let copies = |stage: &OwnStage| SourceLists::Copies(RunLists::copies(experiment.id, self.plan.started, *stage));
        // If the plan uses lists, runs that changed or were deleted individually have been examined
        // already.
        if self.plan.reads_index() {
            return vec![copies(&OwnStage::Active)];
        }
        let copies = experiment.copies(self.search.view).iter().map(copies);
        copies.chain((!uncovered.changed.is_empty()).then(keys)).collect()
    }
}
