//! Examines runs, each at most once.

use std::collections::{HashMap, HashSet};

use entities::listing::ReadBudget;
use entities::{RunCopy, RunItems, RunLocation};
use key_schema::OwnStage;
use mlflow_api::Result;
use run_index::Candidate;

use super::batch_reader::BatchReader;
use super::found_runs::FoundRuns;
use super::run_collector::{PassStats, RunCollector};
use super::run_source::{RunSource, RunToRead};
use crate::store::run_search::planned_search::PlannedSearch;

/// Batch size for runs that have to be read regardless of the filter. A batch results in four to
/// eight concurrent requests.
const BATCH_SIZE: usize = 400;

/// The state of a search for one page.
pub(crate) struct RunFinder<'a> {
    pub(crate) planned: PlannedSearch<'a>,
    /// Runs that have already been examined.
    pub(super) examined: HashSet<RunLocation>,
    pub(super) collector: RunCollector<'a>,
    pub(super) reading: ReadBudget,
}

impl<'a> RunFinder<'a> {
    /// Starts a search for one page.
    pub(crate) fn new(planned: PlannedSearch<'a>, reading: ReadBudget) -> Self {
        Self { planned, examined: HashSet::new(), collector: RunCollector::new(&planned), reading }
    }

    /// Returns the runs of the page, in order, and whether more runs follow.
    pub(crate) fn finish(self) -> FoundRuns {
        self.collector.finish()
    }

    /// Checks whether a run has been examined.
    pub(crate) fn is_examined(&self, at: &RunLocation) -> bool {
        self.examined.contains(at)
    }

    /// Examines the runs that are known not to be covered by the index.
    pub(crate) async fn examine_uncovered(&mut self) -> Result<()> {
        let mut sources = HashMap::new();
        for uncovered in self.planned.uncovered.values().filter_map(|uncovered| uncovered.known()) {
            for (at, started) in &uncovered.deleted {
                sources.insert(at.clone(), RunSource::Copy(RunCopy::key(at, *started, OwnStage::Deleted)));
            }
            // Runs that changed after they were indexed have stale copies, so they are read from
            // their documents. For runs that were also deleted individually, this replaces the copy
            // as the source.
            sources.extend(uncovered.changed.iter().map(|at| (at.clone(), RunSource::Documents)));
        }
        self.examine(sources.into_iter().map(|(at, source)| RunToRead { at, source }).collect()).await
    }

    /// Reads runs in batches, and keeps those that pass.
    pub(crate) async fn examine(&mut self, runs: Vec<RunToRead>) -> Result<()> {
        let mut runs = runs.into_iter();
        loop {
            let batch: Vec<_> = runs.by_ref().take(BATCH_SIZE).collect();
            if batch.is_empty() {
                return Ok(());
            }
            self.examined.extend(batch.iter().map(|run| run.at.clone()));
            self.read(batch, HashSet::new()).await?;
        }
    }

    /// Examines a run that has been read, unless it was examined before.
    pub(crate) async fn examine_items(&mut self, at: &RunLocation, items: &RunItems) -> Result<()> {
        if self.is_examined(at) {
            return Ok(());
        }
        self.collector.examine(at, items, false, &mut PassStats::default()).await
    }

    /// Reads candidates, and keeps those that pass.
    pub(super) async fn examine_candidates(&mut self, candidates: Vec<Candidate>) -> Result<PassStats> {
        let without_value = candidates.iter().filter(|candidate| candidate.is_without_value);
        let without_value = without_value.map(|candidate| candidate.at.clone()).collect();
        let runs = candidates.into_iter().map(|candidate| {
            let source = self.planned.source_of(&candidate.at, candidate.started, candidate.item);
            RunToRead { at: candidate.at, source }
        });
        let runs = runs.collect();
        self.read(runs, without_value).await
    }

    /// Reads a batch of runs, and keeps those that pass. Costs one read unit per copy, and two per
    /// run that is read from its documents. If the experiment has so many changed runs that they
    /// were not listed up front, takes one more request to check the batch for changes.
    async fn read(&mut self, mut runs: Vec<RunToRead>, without_value: HashSet<RunLocation>) -> Result<PassStats> {
        self.planned.replace_stale_copies(&mut runs).await?;
        BatchReader::new(self.planned.table, &mut self.collector, without_value).read(runs).await
    }
}
