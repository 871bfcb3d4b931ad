//! Reads candidates, filters and sorts them, until the page is full.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use entities::{RunCopy, RunItems, RunLocation, Searched, read_all_runs, read_runs, run_whole, unreadable};
use futures::stream::TryStreamExt;
use key_schema::{Key, OwnStage};
use listing::{Pace, Reading, Top};
use mlflow_api::tracking::{self, ViewType};
use mlflow_api::{ExperimentId, Result};
use run_index::{Candidate, RunLists};
use search::{FirstValue, RunList, RunPlan, SortKey};
use table::{Item, Query};

use super::found_runs::{FoundRun, FoundRuns};
use crate::store::Store;
use crate::store::run_search::request::RunSearch;
use crate::store::run_search::searched_experiment::SearchedExperiment;
use crate::store::run_search::uncovered_runs::{RunsOutsideIndex, UncoveredByExperiment, UncoveredRuns};

/// Maximum number of experiments whose copies are read concurrently. A page of each is in memory.
const MOST_BY_COPIES: usize = 8;

/// Batch size for runs that have to be read regardless of the filter. Results in four to eight
/// concurrent requests.
const PORTION: usize = 400;

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
    pub(super) seen: HashSet<RunLocation>,
    top: Top<SortKey, tracking::Run>,
    pub(super) reading: Reading,
    /// Where the page was cut off, if it was: the read budget or the response size was exhausted.
    /// Later runs have not been examined.
    pub(super) end: Option<SortKey>,
    pub(super) has_more: bool,
    pace: Pace,
}

/// The source to read a run from.
pub(crate) enum ReadFrom {
    /// Its copy, which has already been read.
    Read(Arc<Item>),
    /// Its copy, by this key.
    Copy(Key),
    /// Its documents.
    Documents,
}

/// Statistics about the candidates that passed.
#[derive(Default)]
pub(crate) struct PassStats {
    /// How many passed.
    pub(super) runs: usize,
    /// Their approximate size, in bytes.
    pub(super) bytes: usize,
    /// Sort key of the last one, in the order of the search.
    pub(super) last: Option<SortKey>,
}

impl PassStats {
    /// Adds a run that passed.
    fn add(&mut self, key: &SortKey, bytes: usize) {
        self.runs += 1;
        self.bytes += bytes;
        if self.last.as_ref().is_none_or(|last| key > last) {
            self.last = Some(key.clone());
        }
    }

    /// Adds the statistics of further candidates.
    pub(super) fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.bytes += other.bytes;
        self.last = self.last.take().max(other.last);
    }
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
            by_copies: plan.reads_by_time() && searched.len() <= MOST_BY_COPIES,
            searched,
            plan,
            search,
            uncovered: known,
            many_uncovered,
            seen: HashSet::new(),
            top: Top::new(search.page_size),
            reading,
            end: None,
            has_more: false,
            pace: Pace::default(),
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
        let found = self.top.finish();
        let has_more = self.has_more || found.end.is_some();
        let is_on_page = |key: &SortKey| self.end.as_ref().is_none_or(|end| key <= end);
        let runs = found.entities.into_iter().filter(|(key, ..)| is_on_page(key));
        FoundRuns { runs: runs.map(|(key, run, _)| FoundRun { key, run }).collect(), has_more }
    }

    /// Examines the runs that are in no list.
    pub(crate) async fn look_at_uncovered(&mut self) -> Result<()> {
        let mut runs = HashMap::new();
        for uncovered in self.uncovered.values() {
            let deleted = uncovered.deleted.iter();
            runs.extend(
                deleted
                    .map(|(at, started)| (at.clone(), ReadFrom::Copy(RunCopy::key(at, *started, OwnStage::Deleted)))),
            );
            runs.extend(uncovered.changed.iter().map(|at| (at.clone(), ReadFrom::Documents)));
        }
        self.look_at(runs).await
    }

    /// Reads runs and keeps those that pass.
    pub(crate) async fn look_at(&mut self, runs: impl IntoIterator<Item = (RunLocation, ReadFrom)>) -> Result<()> {
        let mut runs = runs.into_iter();
        let mut passed = PassStats::default();
        loop {
            let portion: Vec<_> = runs.by_ref().take(PORTION).collect();
            if portion.is_empty() {
                return Ok(());
            }
            self.seen.extend(portion.iter().map(|(at, _)| at.clone()));
            self.read(portion, &HashSet::new(), &mut passed).await?;
        }
    }

    /// Returns the source to read a listed run from, given its start time. This is its copy, unless
    /// the copy is known to be stale.
    pub(super) fn source_of(&self, at: &RunLocation, started: i64, copy: Option<Arc<Item>>) -> ReadFrom {
        match self.uncovered.get(&at.experiment) {
            Some(uncovered) if uncovered.changed.contains(at) => ReadFrom::Documents,
            None if !self.many_uncovered.contains(&at.experiment) => ReadFrom::Documents,
            // In experiments with too many stale copies, staleness is checked when copies are read.
            _ => copy.map_or_else(|| ReadFrom::Copy(RunCopy::key(at, started, OwnStage::Active)), ReadFrom::Read),
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

    /// Reads candidates and keeps those that pass.
    pub(super) async fn look_at_candidates(&mut self, candidates: Vec<Candidate>) -> Result<PassStats> {
        let without_value = candidates.iter().filter(|candidate| candidate.is_without_value);
        let without_value: HashSet<_> = without_value.map(|candidate| candidate.at.clone()).collect();
        let runs = candidates.into_iter().map(|candidate| {
            let from = self.source_of(&candidate.at, candidate.started, candidate.item);
            (candidate.at, from)
        });
        let runs = runs.collect();
        let mut passed = PassStats::default();
        self.read(runs, &without_value, &mut passed).await?;
        Ok(passed)
    }

    fn lacks_first_value(&self, run: &tracking::Run) -> bool {
        self.search.order.key(&Searched(run)).first_value().is_none_or(|value| matches!(value, FirstValue::Missing))
    }

    /// Keeps a run if it passes and comes after the previous page.
    fn consider(&mut self, run: tracking::Run, bytes: usize, passed: &mut PassStats) {
        if !self.search.view.shows(run.info.lifecycle_stage) || !self.search.filter.matches(&Searched(&run)) {
            return;
        }
        let key = self.search.order.key(&Searched(&run));
        if self.search.after.as_ref().is_some_and(|after| key <= *after) {
            return;
        }
        passed.add(&key, bytes);
        self.top.add(key, run, bytes);
    }

    /// Reads runs and keeps those that pass. Reading a copy by its key costs one read unit, with
    /// 100 copies per request. Reading documents costs twice as much. If many runs have changed,
    /// one more request is needed. A run from the end of the order is skipped if it has a value for
    /// the column that the search is ordered by, because the lists contain it at its proper
    /// position.
    async fn read(
        &mut self,
        runs: Vec<(RunLocation, ReadFrom)>,
        without_value: &HashSet<RunLocation>,
        passed: &mut PassStats,
    ) -> Result<()> {
        let table = &self.store.table;
        let changed = self.changed_among(&runs).await?;
        let (mut by_key, mut others) = (Vec::new(), Vec::new());
        for (at, from) in runs {
            match from {
                _ if changed.contains(&at) => others.push(at),
                ReadFrom::Read(copy) => {
                    let copy = RunCopy(Arc::unwrap_or_clone(copy));
                    if let Some(at) = self.look_at_copy(at, Some(copy), without_value, passed).await? {
                        others.push(at);
                    }
                }
                ReadFrom::Copy(key) => by_key.push((at, key)),
                ReadFrom::Documents => others.push(at),
            }
        }
        let mut copies = table.get_many(&by_key.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>()).await?;
        for (at, key) in by_key {
            let copy = copies.remove(&key).map(RunCopy);
            if let Some(at) = self.look_at_copy(at, copy, without_value, passed).await? {
                others.push(at);
            }
        }
        // Wide runs are large, so each run is examined as soon as it has been read.
        let mut read = std::pin::pin!(read_runs(table, &others));
        while let Some((at, items)) = read.try_next().await? {
            self.pace.keep().await;
            self.look_at_items(&at, &items, without_value, passed)?;
        }
        Ok(())
    }

    /// Returns those of the runs whose copies are stale, for experiments with too many changed runs
    /// to list. Takes one request per such experiment.
    async fn changed_among(&self, runs: &[(RunLocation, ReadFrom)]) -> Result<HashSet<RunLocation>> {
        let mut changed = HashSet::new();
        for within in self.many_uncovered.iter().filter_map(|id| self.searched.get(id)) {
            let of_copies =
                runs.iter().filter(|(at, from)| at.experiment == within.id && !matches!(from, ReadFrom::Documents));
            let runs: Vec<_> = of_copies.map(|(at, _)| at).collect();
            changed.extend(within.changed_among(&self.store.table, &runs).await?);
        }
        Ok(changed)
    }

    /// Examines a run's copy. Returns the run if it has no copy, or if its copy contains no values.
    async fn look_at_copy(
        &mut self,
        at: RunLocation,
        copy: Option<RunCopy>,
        without_value: &HashSet<RunLocation>,
        passed: &mut PassStats,
    ) -> Result<Option<RunLocation>> {
        let Some(items) = copy.and_then(RunCopy::into_values) else { return Ok(Some(at)) };
        self.pace.keep().await;
        self.look_at_items(&at, &items, without_value, passed)?;
        Ok(None)
    }

    fn look_at_items(
        &mut self,
        at: &RunLocation,
        items: &RunItems,
        without_value: &HashSet<RunLocation>,
        passed: &mut PassStats,
    ) -> Result<()> {
        let Some(within) = self.searched.get(&at.experiment) else { return Ok(()) };
        let run = run_whole(at, items, &within.state)?;
        if !without_value.contains(at) || self.lacks_first_value(&run) {
            self.consider(run, items.size(), passed);
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
                let changed: Vec<_> = uncovered.changed.iter().map(|at| (at.clone(), ReadFrom::Documents)).collect();
                self.look_at(changed).await?;
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
                if !self.seen.contains(&at) {
                    runs.push((at, ReadFrom::Read(Arc::new(copy.0))));
                }
            }
            self.look_at(runs).await?;
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
            if !self.seen.contains(&at) {
                self.pace.keep().await;
                self.consider(run_whole(&at, &items, &within.state)?, items.size(), &mut passed);
            }
        }
        Ok(())
    }
}
