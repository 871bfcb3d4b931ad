//! Step 3: determines which runs the index does not cover. A search reads these runs in addition to
//! the candidates from its lists.

use std::collections::{HashMap, HashSet};

use entities::RunLocation;
use futures::future::try_join;
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::tracking::ViewType;
use mlflow_api::{Error, ExperimentId, Result};
use search::RunOptions;
use table::Table;

use super::mark_budget::MarkBudget;
use super::run_options::may_read_index;
use super::searched_experiment::{CONCURRENCY, SearchedExperiment};
use crate::store::Store;

/// Maximum number of uncovered runs that are read individually without first checking how many runs
/// the experiment has.
const MAX_RUNS_READ_DIRECTLY: usize = 100;
/// Maximum ratio of an experiment's runs to its uncovered runs at which the experiment is read in
/// full. Reading a run individually costs one to three read units, for its document and its metrics
/// document. Reading all runs in one range costs 0.2 to 0.7 read units per run. A run with a
/// journal costs one more request and about four more read units in either case, so journals do not
/// affect the choice.
const WHOLE_EXPERIMENT_RATIO: usize = 3;

/// The runs that the index does not cover, by experiment. Empty if the search names its runs by id.
pub(super) type UncoveredByExperiment = HashMap<ExperimentId, UncoveredRuns>;

/// What a search has determined about the runs of an experiment that the index does not cover.
#[derive(Debug)]
pub(super) enum UncoveredRuns {
    /// All uncovered runs are known.
    Known(RunsOutsideIndex),
    /// There are too many uncovered runs to list up front. If the plan uses lists of the indexer,
    /// the experiment is read in full, which is cheaper than reading the uncovered runs
    /// individually. Otherwise, each candidate is checked for changes when it is read.
    TooMany,
    /// There are more uncovered runs than the bound, so counting stopped there.
    AboveBound,
}

/// Runs that a search always reads, whether or not its lists contain them.
#[derive(Debug)]
pub(super) struct RunsOutsideIndex {
    /// Runs that changed since they were indexed.
    pub(super) changed: HashSet<RunLocation>,
    /// Runs that were deleted individually, with their start times in ms.
    pub(super) deleted: HashMap<RunLocation, i64>,
}

impl RunsOutsideIndex {
    /// Returns the number of distinct runs. A run may be both changed and deleted.
    fn len(&self) -> usize {
        self.changed.len() + self.deleted.keys().filter(|at| !self.changed.contains(at)).count()
    }
}

impl UncoveredRuns {
    /// Returns the uncovered runs if all of them are known.
    pub(super) fn known(&self) -> Option<&RunsOutsideIndex> {
        match self {
            Self::Known(runs) => Some(runs),
            Self::TooMany | Self::AboveBound => None,
        }
    }
}

/// Returns the experiments with more uncovered runs than the bound.
pub(super) fn long_experiments(
    experiments: &[SearchedExperiment],
    uncovered: &UncoveredByExperiment,
) -> Vec<SearchedExperiment> {
    let is_long =
        |experiment: &&SearchedExperiment| matches!(uncovered.get(&experiment.id), Some(UncoveredRuns::AboveBound));
    experiments.iter().filter(is_long).cloned().collect()
}

impl Store {
    /// Returns the runs that the index does not cover, by experiment. Takes one or two requests per
    /// experiment, or none if the search names its runs by id.
    pub(super) async fn uncovered_runs(
        &self,
        experiments: &[SearchedExperiment],
        options: &RunOptions,
        view: ViewType,
        bound: Option<usize>,
    ) -> Result<UncoveredByExperiment> {
        if options.ids.is_some() {
            return Ok(HashMap::new());
        }
        let (may_read_index, budget) = (may_read_index(options), &MarkBudget::default());
        let uncovered = experiments.iter().map(|experiment| async move {
            let uncovered = if may_read_index {
                experiment.uncovered_runs(&self.table, view, budget, bound).await?
            } else {
                let changed = experiment.few_changed_runs(&self.table).await?;
                let known = changed.map(|changed| RunsOutsideIndex { changed, deleted: HashMap::new() });
                known.map_or(UncoveredRuns::TooMany, UncoveredRuns::Known)
            };
            Ok::<_, Error>((experiment.id, uncovered))
        });
        stream::iter(uncovered.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect().await
    }
}

impl SearchedExperiment {
    /// Returns the runs of an experiment that the index does not cover, because their current state
    /// is not in the index or the state in the index does not apply.
    ///
    /// If a bound is given and the experiment has more marks, returns without determining anything
    /// else. Takes one request per 8,000 marks, and one per 8,000 individually deleted runs if the
    /// view might show them. If there are more than a few uncovered runs, the experiment's runs are
    /// counted too, up to three times the number of uncovered runs, which takes one more request
    /// per 8,000 runs.
    async fn uncovered_runs(
        &self,
        table: &Table,
        view: ViewType,
        budget: &MarkBudget,
        bound: Option<usize>,
    ) -> Result<UncoveredRuns> {
        let bound = bound.filter(|bound| *bound < budget.left());
        let changed = self.changed_runs(table, budget, bound);
        let deleted = self.deleted_runs(table, view, budget);
        let runs = match try_join(changed, deleted).await? {
            (Some(changed), Some(deleted)) => RunsOutsideIndex { changed, deleted },
            (None, _) if bound.is_some() => return Ok(UncoveredRuns::AboveBound),
            (None, _) | (_, None) => return Ok(UncoveredRuns::TooMany),
        };
        let count = runs.len();
        let is_cheaper = count <= MAX_RUNS_READ_DIRECTLY
            || !self.has_at_most(table, count.saturating_mul(WHOLE_EXPERIMENT_RATIO)).await?;
        Ok(if is_cheaper { UncoveredRuns::Known(runs) } else { UncoveredRuns::TooMany })
    }
}
