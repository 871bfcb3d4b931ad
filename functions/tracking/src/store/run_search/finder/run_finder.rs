//! Reads candidates, filters and sorts them, until the page is full.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use entities::{RunCopy, RunLocation, read_all_runs, unreadable};
use futures::stream::TryStreamExt;
use key_schema::OwnStage;
use listing::Reading;
use mlflow_api::tracking::ViewType;
use mlflow_api::{ExperimentId, Result};
use run_index::{Candidate, RunLists};
use search::{RunList, RunPlan};
use table::{Item, Query};

use super::batch_reader::BatchReader;
use super::found_runs::FoundRuns;
use super::run_collector::{PassStats, RunCollector};
use super::run_source::{RunSource, RunToRead};
use crate::store::Store;
use crate::store::run_search::request::RunSearch;
use crate::store::run_search::searched_experiment::SearchedExperiment;
use crate::store::run_search::uncovered_runs::{RunsOutsideIndex, UncoveredByExperiment, UncoveredRuns};

/// Maximum number of experiments whose copies are read concurrently. A page of each is in memory.
const MAX_EXPERIMENTS_BY_COPIES: usize = 8;

/// Batch size for runs that have to be read regardless of the filter. Results in four to eight
/// concurrent requests.
const BATCH_SIZE: usize = 400;

/// The state of a search for one page.
pub(crate) struct Finder<'a> {
    pub(crate) store: &'a Store,
    pub(crate) searched: HashMap<ExperimentId, &'a SearchedExperiment>,
    pub(crate) plan: &'a RunPlan,
    pub(crate) search: &'a RunSearch,
    /// Runs whose copies are stale, by experiment.
    pub(crate) uncovered: HashMap<ExperimentId, RunsOutsideIndex>,
    /// Experiments with too many stale copies to list up front. Whether a candidate's copy is stale
    /// is checked when the candidate is read.
    many_uncovered: HashSet<ExperimentId>,
    /// Whether runs are read by time, from their copies. In that case, runs that have changed since
    /// are in a separate list.
    pub(super) by_copies: bool,
    /// Runs that have been examined.
    pub(super) examined: HashSet<RunLocation>,
    pub(super) collector: RunCollector<'a>,
    pub(super) reading: Reading,
}

impl<'a> Finder<'a> {
    /// Starts a search for one page.
    pub(crate) fn new(
        store: &'a Store,
        searched: &'a [SearchedExperiment],
        plan: &'a RunPlan,
        search: &'a RunSearch,
        reading: Reading,
        uncovered: UncoveredByExperiment,
    ) -> Self {
        let collector = RunCollector::new(search, searched);
        let searched: HashMap<_, _> = searched.iter().map(|within| (within.id, within)).collect();
        let (mut known, mut many_uncovered) = (HashMap::new(), HashSet::new());
        for (id, uncovered) in uncovered {
            match uncovered {
                UncoveredRuns::Known(runs) => drop(known.insert(id, runs)),
                UncoveredRuns::TooMany | UncoveredRuns::Long => drop(many_uncovered.insert(id)),
            }
        }
        Self {
            store,
            by_copies: plan.reads_by_time() && searched.len() <= MAX_EXPERIMENTS_BY_COPIES,
            searched,
            plan,
            search,
            uncovered: known,
            many_uncovered,
            examined: HashSet::new(),
            collector,
            reading,
        }
    }

    /// Returns `None` unless an experiment's runs are read by time from their copies, and otherwise
    /// whether some of its runs have changed since.
    pub(crate) fn by_copies(&self, within: &SearchedExperiment) -> Option<bool> {
        let uncovered = self.uncovered.get(&within.id).filter(|_| self.by_copies)?;
        // If the plan uses lists, changed runs have been examined already.
        Some(!self.plan.reads_index() && !uncovered.changed.is_empty())
    }

    /// Returns the runs found, in order, and whether there are more after them.
    pub(crate) fn finish(self) -> FoundRuns {
        self.collector.finish()
    }

    /// Examines the known runs that the index does not cover.
    pub(crate) async fn examine_uncovered(&mut self) -> Result<()> {
        let mut sources = HashMap::new();
        for uncovered in self.uncovered.values() {
            for (at, started) in &uncovered.deleted {
                sources.insert(at.clone(), RunSource::Copy(RunCopy::key(at, *started, OwnStage::Deleted)));
            }
            // The copies of these runs are stale, even of those that were deleted.
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

    /// Returns the source to read a listed run from, given its start time. This is its copy, unless
    /// the copy is known to be stale.
    pub(super) fn source_of(&self, at: &RunLocation, started: i64, copy: Option<Arc<Item>>) -> RunSource {
        match self.uncovered.get(&at.experiment) {
            Some(uncovered) if uncovered.changed.contains(at) => RunSource::Documents,
            None if !self.many_uncovered.contains(&at.experiment) => RunSource::Documents,
            // In experiments with too many stale copies, staleness is checked when copies are read.
            _ => copy.map_or_else(|| RunSource::Copy(RunCopy::key(at, started, OwnStage::Active)), RunSource::ReadCopy),
        }
    }

    /// Checks whether all candidates pass: there is no filter, and the list has exactly the runs
    /// that the view shows, each once.
    pub(super) fn all_pass(&self) -> bool {
        let exact = |within: &&SearchedExperiment| {
            let has_changed = self.uncovered.get(&within.id).is_some_and(|uncovered| !uncovered.changed.is_empty());
            within.index_is_exact(self.search.view) && !(self.by_copies && has_changed)
        };
        self.search.filter.predicates.is_empty() && !self.plan.reads_index() && self.searched.values().all(exact)
    }

    /// Reads candidates, and keeps those that pass.
    pub(super) async fn examine_candidates(&mut self, candidates: Vec<Candidate>) -> Result<PassStats> {
        let without_value = candidates.iter().filter(|candidate| candidate.is_without_value);
        let without_value = without_value.map(|candidate| candidate.at.clone()).collect();
        let runs = candidates.into_iter().map(|candidate| {
            let source = self.source_of(&candidate.at, candidate.started, candidate.item);
            RunToRead { at: candidate.at, source }
        });
        let runs = runs.collect();
        self.read(runs, without_value).await
    }

    /// Reads a batch of runs, and keeps those that pass. Costs one read unit per copy and two per
    /// run read from documents, and one more request if many runs have changed.
    async fn read(&mut self, mut runs: Vec<RunToRead>, without_value: HashSet<RunLocation>) -> Result<PassStats> {
        self.replace_stale_copies(&mut runs).await?;
        BatchReader::new(&self.store.table, &mut self.collector, without_value).read(runs).await
    }

    /// Replaces stale copies by documents, in experiments with too many changed runs to list. Takes
    /// one request per such experiment.
    async fn replace_stale_copies(&self, runs: &mut [RunToRead]) -> Result<()> {
        for experiment in self.many_uncovered.iter().filter_map(|id| self.searched.get(id)) {
            let has_copy = |run: &&RunToRead| !matches!(run.source, RunSource::Documents);
            let copies = runs.iter().filter(|run| run.at.experiment == experiment.id).filter(has_copy);
            let copies: Vec<_> = copies.map(|run| &run.at).collect();
            let changed = experiment.changed_among(&self.store.table, &copies).await?;
            for run in runs.iter_mut().filter(|run| changed.contains(&run.at)) {
                run.source = RunSource::Documents;
            }
        }
        Ok(())
    }

    /// Reads all runs of these experiments that the view may show, and keeps those that pass. Reads
    /// copies, and the documents of runs that have changed since. If too many have changed, reads
    /// all documents. Takes one request and 130 read units per MB. Memory usage is limited to a few
    /// MB and twice the page.
    pub(crate) async fn read_whole(&mut self, searched: &[&SearchedExperiment]) -> Result<()> {
        for within in searched {
            if let Some(uncovered) = self.uncovered.get(&within.id) {
                let changed: Vec<_> = uncovered.changed.iter().cloned().map(RunToRead::from_documents).collect();
                self.examine(changed).await?;
                for stage in within.copies(self.search.view) {
                    self.read_copies(within, *stage).await?;
                }
            } else if self.search.view == ViewType::DeletedOnly {
                self.gather(&[*within], &[RunList::All]).await?;
            } else {
                self.read_documents(within).await?;
            }
        }
        Ok(())
    }

    async fn read_copies(&mut self, within: &SearchedExperiment, stage: OwnStage) -> Result<()> {
        let copies = RunLists::copies(within.id, self.plan.started, stage);
        let mut query = Query::of(copies.range(&RunList::All));
        loop {
            let page = self.store.table.query_page(&query).await?;
            let mut runs = Vec::with_capacity(page.items.len());
            for copy in page.items.into_iter().map(RunCopy) {
                let (at, ..) = copy.place().ok_or_else(|| unreadable(&copy.0, "the key of a copy"))?;
                if !self.examined.contains(&at) {
                    runs.push(RunToRead { at, source: RunSource::ReadCopy(Arc::new(copy.0)) });
                }
            }
            self.examine(runs).await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(()),
            }
        }
    }

    async fn read_documents(&mut self, within: &SearchedExperiment) -> Result<()> {
        let mut passed = PassStats::default();
        let mut runs = std::pin::pin!(read_all_runs(&self.store.table, within.id));
        while let Some((at, items)) = runs.try_next().await? {
            if !self.examined.contains(&at) {
                self.collector.examine(&at, &items, false, &mut passed).await?;
            }
        }
        Ok(())
    }
}
