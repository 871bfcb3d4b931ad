//! Decides where a run is read from: its copy in the index, or its documents.

use std::sync::Arc;

use entities::{RunCopy, RunLocation};
use key_schema::{Key, OwnStage};
use mlflow_api::Result;
use table::Item;

use crate::store::run_search::planned_search::PlannedSearch;
use crate::store::run_search::uncovered_runs::UncoveredRuns;

/// A run to read, with the source to read it from.
pub(crate) struct RunToRead {
    pub(crate) at: RunLocation,
    pub(crate) source: RunSource,
}

/// The source to read a run from.
pub(crate) enum RunSource {
    /// The run's copy in the index, which has already been read.
    LoadedCopy(Arc<Item>),
    /// The run's copy in the index, which has this key.
    Copy(Key),
    /// The run's documents.
    Documents,
}

impl RunToRead {
    /// Creates a run that is read from its documents.
    pub(crate) fn from_documents(at: RunLocation) -> Self {
        Self { at, source: RunSource::Documents }
    }
}

impl PlannedSearch<'_> {
    /// Returns the source to read a listed run from, given its start time. The source is the run's
    /// copy, unless the copy is known to be stale.
    pub(super) fn source_of(&self, at: &RunLocation, started: i64, copy: Option<Arc<Item>>) -> RunSource {
        match self.uncovered.get(&at.experiment) {
            None => RunSource::Documents,
            Some(UncoveredRuns::Known(runs)) if runs.changed.contains(at) => RunSource::Documents,
            // If an experiment has too many stale copies to list up front, each copy is checked for
            // staleness when it is read.
            Some(_) => {
                let by_key = || RunSource::Copy(RunCopy::key(at, started, OwnStage::Active));
                copy.map_or_else(by_key, RunSource::LoadedCopy)
            }
        }
    }

    /// In experiments with too many changed runs to list, finds the runs whose copies are stale,
    /// and changes their source to their documents. Takes one request per such experiment.
    pub(super) async fn replace_stale_copies(&self, runs: &mut [RunToRead]) -> Result<()> {
        let is_unknown = |id| self.uncovered.get(id).is_some_and(|uncovered| uncovered.known().is_none());
        for experiment in self.experiments.iter().filter(|experiment| is_unknown(&experiment.id)) {
            let has_copy = |run: &&RunToRead| !matches!(run.source, RunSource::Documents);
            let copies = runs.iter().filter(|run| run.at.experiment == experiment.id).filter(has_copy);
            let copies: Vec<_> = copies.map(|run| &run.at).collect();
            let changed = experiment.changed_among(self.table, &copies).await?;
            for run in runs.iter_mut().filter(|run| changed.contains(&run.at)) {
                run.source = RunSource::Documents;
            }
        }
        Ok(())
    }
}
