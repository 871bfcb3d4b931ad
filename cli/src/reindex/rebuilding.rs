//! Has runs indexed again, some at a time, and waits for them.
//!
//! Searches read the runs that wait from their documents. So only some are marked at a time,
//! however many there are.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use clock::{Moment, sleep};
use indicatif::ProgressBar;
use key_schema::IndexEntry;
use key_schema::index::RunsByName;
use mlflow_api::{ExperimentId, RunId};
use run_index::{RunIndex, Unmarked};
use table::Table;

use super::{Part, style};
use crate::Failure;

/// How long to wait while no run is indexed: changes may be gathered for five minutes before the
/// indexer gets them.
const PATIENCE: Duration = Duration::from_mins(15);
/// The shortest pause before the runs that wait are looked at again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
/// The pause for each run that waits, where they are many: a look reads them all.
const PAUSE: Duration = Duration::from_millis(1);

/// What became of the runs.
pub(super) struct Outcome {
    /// As many are indexed.
    pub(super) indexed: u64,
    /// These are not.
    pub(super) left: Vec<RunId>,
}

/// The runs that are not indexed yet.
pub(super) struct Rebuilding<'a> {
    index: &'a RunIndex,
    /// [`PATIENCE`] except in tests.
    pub(super) patience: Duration,
    unmarked: VecDeque<Unmarked>,
    /// They are marked, and wait.
    waiting: Vec<(ExperimentId, HashSet<RunId>)>,
}

/// Has the runs of these experiments indexed again, at most `at_once` at a time, and shows how far
/// that is.
pub(super) async fn index_again(
    table: &Table,
    index: &RunIndex,
    part: &Part,
    experiments: &[ExperimentId],
    at_once: usize,
) -> Result<Outcome, Failure> {
    let bar = ProgressBar::new(count(table, index, part).await?);
    let bar = bar.with_style(style("{bar:40} {pos}/{len} runs indexed, {eta} left")?);
    let outcome = Rebuilding::of(index, experiments).finish(at_once, &bar).await;
    bar.finish_and_clear();
    outcome
}

/// About how many runs there are: of a whole table, as it counted those that are not deleted some
/// hours ago.
async fn count(table: &Table, index: &RunIndex, part: &Part) -> Result<u64, Failure> {
    let counted = match part {
        Part::Table(_) => table.count_of_index(RunsByName::INDEX.name).await.map(Option::unwrap_or_default),
        Part::Experiment(id, _) => index.count_runs(*id).await,
    };
    counted.map_err(|failure| format!("the runs could not be counted: {failure:?}").into())
}

impl<'a> Rebuilding<'a> {
    pub(super) fn of(index: &'a RunIndex, experiments: &[ExperimentId]) -> Self {
        let unmarked = experiments.iter().copied().map(Unmarked::all).collect();
        Self { index, patience: PATIENCE, unmarked, waiting: Vec::new() }
    }

    /// Marks all runs, at most `at_once` of them before others are indexed, and waits until all
    /// are. Those that no indexer indexes in time are left.
    pub(super) async fn finish(mut self, mut at_once: usize, bar: &ProgressBar) -> Result<Outcome, Failure> {
        let mut moved = Moment::now();
        loop {
            // Half of them at least are marked together, so that the indexer reads many together.
            if self.waiting() <= at_once / 2 {
                self.mark(at_once).await?;
            }
            let before = self.waiting();
            let is_silent = moved.age() > self.patience;
            if before == 0 || (is_silent && self.unmarked.is_empty()) {
                break;
            }
            if is_silent {
                // These cannot be indexed, perhaps others can.
                (at_once, moved) = (usize::MAX, Moment::now());
            }
            sleep(SHORTEST_PAUSE.max(PAUSE * u32::try_from(before).unwrap_or(u32::MAX))).await;
            self.look().await?;
            let indexed = before - self.waiting();
            if indexed > 0 {
                moved = Moment::now();
            }
            bar.inc(indexed as u64);
            bar.set_length(bar.length().unwrap_or_default().max(bar.position() + self.waiting() as u64));
        }
        Ok(Outcome { indexed: bar.position(), left: self.waiting.into_iter().flat_map(|(_, runs)| runs).collect() })
    }

    /// How many are marked and wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.iter().map(|(_, runs)| runs.len()).sum()
    }

    /// Marks runs until so many wait, or all are marked.
    pub(super) async fn mark(&mut self, at_once: usize) -> Result<(), Failure> {
        while self.waiting() < at_once
            && let Some(unmarked) = self.unmarked.front_mut()
        {
            let room = at_once - self.waiting.iter().map(|(_, runs)| runs.len()).sum::<usize>();
            let marked = self.index.mark_runs(unmarked, room).await;
            let marked = marked.map_err(|failure| format!("runs could not be marked: {failure:?}"))?;
            let (experiment, is_done) = (unmarked.experiment(), unmarked.is_empty());
            match self.waiting.last_mut() {
                Some((last, runs)) if *last == experiment => runs.extend(marked),
                _ => self.waiting.push((experiment, marked)),
            }
            if is_done {
                self.unmarked.pop_front();
            }
        }
        Ok(())
    }

    /// Drops those that have been indexed.
    async fn look(&mut self) -> Result<(), Failure> {
        for (experiment, runs) in &mut self.waiting {
            let dropped = self.index.drop_rebuilt(*experiment, runs).await;
            dropped.map_err(|failure| format!("the index could not be read: {failure:?}"))?;
        }
        self.waiting.retain(|(_, runs)| !runs.is_empty());
        Ok(())
    }
}
