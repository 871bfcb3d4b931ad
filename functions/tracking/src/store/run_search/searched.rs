//! An experiment to search in, and which of its runs the index says nothing of.

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

/// Marks that a search reads at most: eight requests, and 1,700 read units. It may be a few more
/// where experiments are read side by side. Some experiments have more marks than are left, or more
/// runs that were deleted on their own. They are read as if they had no index.
const MOST_MARKS: usize = 64_000;
/// Marks that a search reads beforehand which looks only at the runs on its page. Where there are more, it reads those of its candidates.
const FEW_MARKS: usize = 256;
/// Marks that are read for each candidate at most: a run has one.
const MARKS_PER_RUN: usize = 4;
/// So many runs are looked at one by one in any case: for these, nobody finds out how long the experiment is.
const FEW_RUNS: usize = 100;
/// A run that is looked at by itself costs one to three read units, for its document and its metrics document. Where all are read in one range, it
/// costs 0.2 to 0.7. So an experiment of at most so many runs for each one to look at is read whole. A run with a journal costs a request and
/// some four read units more either way: that says nothing for one or the other.
const TIMES_AS_MANY: usize = 3;

/// What a search does in long experiments where much is not indexed. Tests use other numbers.
#[derive(Clone, Copy, Debug)]
pub struct SearchBounds {
    /// An experiment with more marks is long: to look at its marked runs costs a read unit or more
    /// for each of them.
    pub marks: usize,
    /// So many runs are then looked at in the order of their times, if the search has that order.
    /// They cost at most three read units each. If fewer than one in four pass, and the page is not
    /// full, the search begins again with its lists.
    pub newest: usize,
}

impl Default for SearchBounds {
    fn default() -> Self {
        Self { marks: 5_000, newest: 1_000 }
    }
}

/// How many marks a search may still read, over all its experiments.
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
        // An error means that the closure returned none.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(marks)));
    }
}

/// An experiment to search in.
#[derive(Clone, Debug)]
pub(super) struct SearchedExperiment {
    pub(super) id: ExperimentId,
    pub(super) state: ExperimentState,
}

impl SearchedExperiment {
    /// Whether the index of stages says exactly which runs a view shows. Once the experiment has been deleted, its runs' own
    /// stages may be overruled, and each candidate's items decide.
    pub(super) fn index_is_exact(&self, view: ViewType) -> bool {
        view == ViewType::All || self.state.version == 0
    }

    /// The copies among which those of all runs are that a view shows.
    pub(super) fn copies(&self, view: ViewType) -> &'static [OwnStage] {
        match view {
            ViewType::ActiveOnly if self.state.version == 0 => &[OwnStage::Active],
            ViewType::DeletedOnly if self.state.stage == LifecycleStage::Active => &[OwnStage::Deleted],
            // Of runs that were deleted on their own, some may be active again; of a deleted experiment, all are deleted.
            _ => &OwnStage::ALL,
        }
    }

    /// The lists that a plan reads. If that is only the list of all runs, it has those of the
    /// stages that the view shows.
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

    /// Which of the runs that were deleted on their own, and so are in no list, a view may show.
    fn deleted_keys(&self, view: ViewType) -> Option<KeyRange> {
        match (view, self.state.stage) {
            (ViewType::ActiveOnly, LifecycleStage::Active) if self.state.version == 0 => None,
            // Overruled since: the experiment was deleted and restored.
            (ViewType::ActiveOnly, LifecycleStage::Active) => {
                Some(ranges::runs_deleted_before(&self.id, self.state.version))
            }
            _ => Some(ranges::runs_deleted(&self.id)),
        }
    }

    /// The runs that were changed since the indexer had them; `None` if they are more than few. One request.
    pub(super) async fn changed(&self, table: &Table) -> Result<Option<HashSet<RunLocation>>> {
        let range = RunsChanged::all(&self.id).into();
        let changed = self.runs(table, range, FEW_MARKS, &Marks::default(), |key| self.run(key)).await?;
        Ok(changed.map(HashSet::from_iter))
    }

    /// The runs among these that were changed since they were indexed, or may have been. One
    /// request: ids begin with the time of creation. So runs that are close in a list have close
    /// ids.
    pub(super) async fn changed_among(&self, table: &Table, runs: &[&RunLocation]) -> Result<HashSet<RunLocation>> {
        let ids = || runs.iter().map(|at| at.run.as_str());
        let (Some(first), Some(last)) = (ids().min(), ids().max()) else { return Ok(HashSet::new()) };
        let range = RunsChanged::all(&self.id).range().starting(first).until(last);
        let limit = FEW_MARKS.max(runs.len() * MARKS_PER_RUN);
        let page = table.query_page(&Query::of(range.clone()).limit(limit)).await?;
        let known = read(&page.items, &range, |key| self.run(key))?;
        // There may be more marks after the last one that was read.
        let known_until = page.next.and_then(|_| known.last().cloned());
        let known: HashSet<_> = known.into_iter().collect();
        let is_changed =
            |at: &RunLocation| known.contains(at) || known_until.as_ref().is_some_and(|until| at.run > until.run);
        Ok(runs.iter().copied().filter(|at| is_changed(at)).cloned().collect())
    }

    /// The runs whose state the index does not know, or not in a way that counts. Where a bound is
    /// given, an experiment with more marks is long, and nothing else is found out. One request per
    /// 8,000 marks, and as many if runs that were deleted on their own may be shown. For more than
    /// few runs, one more per 8,000 runs of the experiment, up to three times as many as are to be
    /// looked at.
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

    /// Whether the experiment has no more runs than this.
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

    /// The run of a mark, or of a list.
    fn run(&self, key: &str) -> Option<RunLocation> {
        place::run(key).map(|run| self.at(run))
    }

    /// The run of a list, and when it began.
    fn started_and_run(&self, key: &str) -> Option<(RunLocation, i64)> {
        place::started_and_run(key).map(|(started, run)| (self.at(run), started))
    }

    /// The values in the keys of a range; `None` if it has more items than `most`, or than the
    /// search may still read.
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

/// The values in the keys of items.
fn read<T>(items: &[Item], range: &KeyRange, of: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    read_all(items, "a place in a list of runs", |item| of(item.sort_key(range)?))
}

/// What a search knows of the runs that the index does not tell of.
#[derive(Clone, Debug)]
pub(super) enum Unindexed {
    /// All of them.
    Known(Unlisted),
    /// Reading the whole experiment is cheaper than reading them.
    Whole,
    /// They are many, and nobody has found out how many.
    Long,
}

/// Runs that a search looks at whatever its lists say.
#[derive(Clone, Debug, Default)]
pub(super) struct Unlisted {
    /// Changed since they were indexed.
    pub(super) changed: HashSet<RunLocation>,
    /// Deleted on their own, and when they began, in ms.
    pub(super) deleted: HashMap<RunLocation, i64>,
}
