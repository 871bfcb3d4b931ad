//! An experiment to search, and those of its runs that the index does not cover.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use entities::{ExperimentState, RunLocation, read_all};
use futures::future::try_join;
use key_schema::index::{RunsByTime, RunsChanged};
use key_schema::{KeyRange, OwnStage, place, ranges};
use mlflow_api::tracking::{LifecycleStage, ViewType};
use mlflow_api::{Error, ExperimentId, Result, RunId};
use run_index::RunLists;
use search::RunPlan;
use table::{Item, Query, Table};

/// Maximum number of marks that a search reads: eight requests, and 1,700 read units. It may be
/// exceeded slightly, because experiments are read concurrently. Experiments with more marks than
/// are left, or with more individually deleted runs, are read as if they had no index.
const MOST_MARKS: usize = 64_000;
/// Maximum number of marks that a search reads up front if it examines only the runs on its page.
/// If an experiment has more, the search reads the marks of its candidates instead.
const FEW_MARKS: usize = 256;
/// Maximum number of marks to read per candidate. A run has one mark, but there may be marks of
/// other runs in between.
const MARKS_PER_RUN: usize = 4;
/// Number of runs up to which each is read individually, without checking how many runs the
/// experiment has.
const FEW_RUNS: usize = 100;
/// Ratio of an experiment's runs to those that have to be read, up to which the whole experiment is
/// read instead. Reading a run individually costs one to three read units, for its document and its
/// metrics document. Reading all runs in one range costs 0.2 to 0.7 read units per run. A run with
/// a journal costs one request and about four read units more in either case, so journals do not
/// affect the choice.
const TIMES_AS_MANY: usize = 3;

/// Limits of a search in long experiments with many unindexed runs. Tests use smaller values.
#[derive(Clone, Copy, Debug)]
pub struct SearchBounds {
    /// Number of marks above which an experiment counts as long. Reading its marked runs would cost
    /// at least one read unit for each of them.
    pub marks: usize,
    /// Number of runs that are then read in the order of their start times, if the search has that
    /// order. They cost at most three read units each. If fewer than one in four pass the filter
    /// and the page is not full, the search starts over with its lists.
    pub newest: usize,
}

impl Default for SearchBounds {
    fn default() -> Self {
        Self { marks: 5_000, newest: 1_000 }
    }
}

/// The number of marks that a search may still read, over all its experiments.
#[derive(Debug)]
pub(super) struct Marks(AtomicUsize);

impl Default for Marks {
    fn default() -> Self {
        Self(AtomicUsize::new(MOST_MARKS))
    }
}

impl Marks {
    fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self, marks: usize) {
        // `fetch_update` fails only if the closure returns `None`.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(marks)));
    }
}

/// An experiment to search.
#[derive(Clone, Debug)]
pub(super) struct SearchedExperiment {
    pub(super) id: ExperimentId,
    pub(super) state: ExperimentState,
}

impl SearchedExperiment {
    /// Checks whether the index by stage shows exactly the runs of a view. Once the experiment has
    /// been deleted, it may overrule the stages of its runs, so each candidate's items have to be
    /// checked.
    pub(super) fn index_is_exact(&self, view: ViewType) -> bool {
        view == ViewType::All || self.state.version == 0
    }

    /// Returns the stages whose copies include all runs that a view shows.
    pub(super) fn copies(&self, view: ViewType) -> &'static [OwnStage] {
        match view {
            ViewType::ActiveOnly if self.state.version == 0 => &[OwnStage::Active],
            ViewType::DeletedOnly if self.state.stage == LifecycleStage::Active => &[OwnStage::Deleted],
            // If the experiment was restored, some of the runs that were deleted individually may
            // be active again. If it is deleted, all of its runs are.
            _ => &OwnStage::ALL,
        }
    }

    /// Returns the lists that a plan reads. If the plan reads only the list of all runs, that list
    /// covers the stages that the view shows.
    pub(super) fn lists_of(&self, plan: &RunPlan, view: ViewType) -> RunLists {
        match view {
            _ if plan.reads_index() => RunLists::of_active(self.id, plan.started),
            ViewType::ActiveOnly if self.index_is_exact(view) => RunLists::of_active(self.id, plan.started),
            ViewType::DeletedOnly if self.state.stage == LifecycleStage::Active => {
                RunLists::of_deleted(self.id, plan.started, self.state.version)
            }
            _ => RunLists::of_every_stage(self.id, plan.started),
        }
    }

    /// Returns the keys of those runs that were deleted individually, and are therefore in no list,
    /// but may be shown by the view.
    fn deleted_keys(&self, view: ViewType) -> Option<KeyRange> {
        match (view, self.state.stage) {
            (ViewType::ActiveOnly, LifecycleStage::Active) if self.state.version == 0 => None,
            // These deletions were overruled when the experiment was deleted and restored.
            (ViewType::ActiveOnly, LifecycleStage::Active) => {
                Some(ranges::runs_deleted_before(&self.id, self.state.version))
            }
            _ => Some(ranges::runs_deleted(&self.id)),
        }
    }

    /// Returns the runs that changed since they were indexed, or `None` if there are more than a
    /// few. Takes one request.
    pub(super) async fn changed(&self, table: &Table) -> Result<Option<HashSet<RunLocation>>> {
        let range = RunsChanged::all(&self.id).into();
        let changed = self.runs(table, range, FEW_MARKS, &Marks::default(), |key| self.run(key)).await?;
        Ok(changed.map(HashSet::from_iter))
    }

    /// Returns those of the runs that changed, or may have changed, since they were indexed. Takes
    /// one request. Ids start with the creation time, so runs that are close to each other in a
    /// list have ids that are close to each other.
    pub(super) async fn changed_among(&self, table: &Table, runs: &[&RunLocation]) -> Result<HashSet<RunLocation>> {
        let ids = || runs.iter().map(|at| at.run.as_str());
        let (Some(first), Some(last)) = (ids().min(), ids().max()) else { return Ok(HashSet::new()) };
        let range = RunsChanged::all(&self.id).range().starting(first).until(last);
        let limit = FEW_MARKS.max(runs.len() * MARKS_PER_RUN);
        let page = table.query_page(&Query::of(range.clone()).limit(limit)).await?;
        let known = read(&page.items, &range, |key| self.run(key))?;
        // There may be further marks after the last one that was read.
        let known_until = page.next.and_then(|_| known.last().cloned());
        let known: HashSet<_> = known.into_iter().collect();
        let is_changed =
            |at: &RunLocation| known.contains(at) || known_until.as_ref().is_some_and(|until| at.run > until.run);
        Ok(runs.iter().copied().filter(|at| is_changed(at)).cloned().collect())
    }

    /// Returns the runs whose current state is not in the index, or whose state in the index does
    /// not apply. If a bound is given, an experiment with more marks is long, and nothing else is
    /// determined about it. Takes one request per 8,000 marks, and as many again if the view may
    /// show runs that were deleted individually. For more than a few runs, it takes one more
    /// request per 8,000 runs of the experiment, up to three times the number of runs to read.
    pub(super) async fn unlisted(
        &self,
        table: &Table,
        view: ViewType,
        marks: &Marks,
        bound: Option<usize>,
    ) -> Result<Unindexed> {
        let changed = async {
            let range = || RunsChanged::all(&self.id).into();
            let Some(bound) = bound.filter(|bound| *bound < marks.left()) else {
                let all = self.runs(table, range(), MOST_MARKS, marks, |key| self.run(key)).await?;
                return Ok(all.ok_or(Unindexed::Whole));
            };
            let own = Marks(AtomicUsize::new(bound));
            let all = self.runs(table, range(), bound, &own, |key| self.run(key)).await?;
            marks.take(all.as_ref().map_or(bound, Vec::len));
            Ok::<_, Error>(all.ok_or(Unindexed::Long))
        };
        let deleted = async {
            match self.deleted_keys(view) {
                Some(range) => self.runs(table, range, MOST_MARKS, marks, |key| self.started_and_run(key)).await,
                None => Ok(Some(Vec::new())),
            }
        };
        let (changed, deleted) = match try_join(changed, deleted).await? {
            (Ok(changed), Some(deleted)) => (changed, deleted),
            (Err(unindexed), _) => return Ok(unindexed),
            (Ok(_), None) => return Ok(Unindexed::Whole),
        };
        let (changed, deleted) = (HashSet::from_iter(changed), HashMap::from_iter(deleted));
        let runs = changed.len() + deleted.keys().filter(|at| !changed.contains(at)).count();
        let is_cheaper = runs <= FEW_RUNS || !self.has_at_most(table, runs.saturating_mul(TIMES_AS_MANY)).await?;
        Ok(if is_cheaper { Unindexed::Known(Unlisted { changed, deleted }) } else { Unindexed::Whole })
    }

    /// Checks whether the experiment has no more than this many runs.
    async fn has_at_most(&self, table: &Table, runs: usize) -> Result<bool> {
        let mut query = Query::of(RunsByTime::all(&self.id)).limit(runs);
        let mut left = runs;
        loop {
            let page = table.query_page(&query).await?;
            let Some(next) = page.next else { return Ok(true) };
            left = left.saturating_sub(page.items.len());
            if left == 0 {
                return Ok(false);
            }
            query = query.limit(left).starting_at(next);
        }
    }

    fn at(&self, run: RunId) -> RunLocation {
        RunLocation { experiment: self.id, run }
    }

    /// Parses the key of a mark or of a list entry into a run.
    fn run(&self, key: &str) -> Option<RunLocation> {
        place::run(key).map(|run| self.at(run))
    }

    /// Parses the key of a list entry into a run and its start time.
    fn started_and_run(&self, key: &str) -> Option<(RunLocation, i64)> {
        place::started_and_run(key).map(|(started, run)| (self.at(run), started))
    }

    /// Returns the values in the keys of a range, or `None` if the range has more items than
    /// `most`, or than the search may still read.
    async fn runs<T>(
        &self,
        table: &Table,
        range: KeyRange,
        most: usize,
        marks: &Marks,
        of: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<Vec<T>>> {
        let (mut runs, mut left) = (Vec::new(), most.min(marks.left().max(FEW_MARKS)));
        let mut query = Query::of(range.clone()).limit(left);
        loop {
            let page = table.query_page(&query).await?;
            runs.extend(read(&page.items, &range, &of)?);
            marks.take(page.items.len());
            let Some(next) = page.next else { return Ok(Some(runs)) };
            left = left.saturating_sub(page.items.len());
            if left == 0 || marks.left() == 0 {
                return Ok(None);
            }
            query = query.limit(left).starting_at(next);
        }
    }
}

/// Parses the values in the keys of items.
fn read<T>(items: &[Item], range: &KeyRange, of: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    read_all(items, "a place in a list of runs", |item| of(item.sort_key(range)?))
}

/// The runs of an experiment that the index does not cover, as far as a search has determined them.
#[derive(Clone, Debug)]
pub(super) enum Unindexed {
    /// All of them are known.
    Known(Unlisted),
    /// Reading the whole experiment is cheaper than reading them.
    Whole,
    /// There are more of them than the bound. How many was not determined.
    Long,
}

/// Runs that a search always reads, regardless of its lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Unlisted {
    /// Runs that changed since they were indexed.
    pub(super) changed: HashSet<RunLocation>,
    /// Runs that were deleted individually, with their start times in ms.
    pub(super) deleted: HashMap<RunLocation, i64>,
}
