//! Has runs indexed again, some at a time, and waits for them.
//!
//! Searches read the runs that wait from their documents. So only some are marked at a time,
//! however many there are.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use clock::sleep;
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
/// The pause for each run that waits, before all of them are looked at again.
const PAUSE: Duration = Duration::from_millis(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Runs of one experiment that are marked in a row, at least, where there are others.
const SHARE: usize = 25;

/// The runs that are to be indexed again.
pub(super) struct Rebuilding<'a> {
    index: &'a RunIndex,
    /// [`PATIENCE`] except in tests.
    pub(super) patience: Duration,
    /// The experiments with runs that are not marked yet.
    unmarked: VecDeque<Unmarked>,
    /// The runs that are marked and not indexed yet.
    waiting: HashMap<ExperimentId, HashSet<RunId>>,
    /// How many were not indexed in time, and one of them. They stay marked.
    pub(super) left: usize,
    pub(super) one_left: Option<RunId>,
}

/// Has the runs of these experiments indexed again, at most `at_once` at a time, and shows how far
/// that is, of about so many. Returns how many were indexed, or are gone, and those that were not.
pub(super) async fn index_again<'a>(
    index: &'a RunIndex,
    experiments: &[ExperimentId],
    at_once: usize,
    count: u64,
) -> Result<(u64, Rebuilding<'a>), Failure> {
    let bar = ProgressBar::new(count).with_style(style("{bar:40} {pos}/{len} runs indexed, {eta} left")?);
    let mut runs = Rebuilding::of(index, experiments);
    runs.finish(at_once, &bar).await?;
    let indexed = bar.position();
    bar.finish_and_clear();
    Ok((indexed, runs))
}

/// About how many runs there are. For a table, it is the engine's count of active runs, which may
/// be hours old.
pub(super) async fn count(table: &Table, index: &RunIndex, part: &Part) -> Result<u64, Failure> {
    let counted = match part {
        Part::Table(_) => table.count_of_index(RunsByName::INDEX.name).await.map(Option::unwrap_or_default),
        Part::Experiment(id, _) => index.count_runs(*id).await,
    };
    counted.map_err(|failure| format!("the runs could not be counted: {failure:?}").into())
}

impl<'a> Rebuilding<'a> {
    pub(super) fn of(index: &'a RunIndex, experiments: &[ExperimentId]) -> Self {
        let unmarked = experiments.iter().copied().map(Unmarked::all).collect();
        Self { index, patience: PATIENCE, unmarked, waiting: HashMap::new(), left: 0, one_left: None }
    }

    /// Marks all runs, at most `at_once` before others are indexed, and waits until all are
    /// indexed. Those that no indexer indexes in time are left.
    ///
    /// # Errors
    /// Two portions in a row were left, and there are more runs: no indexer seems to be at work.
    pub(super) async fn finish(&mut self, at_once: usize, bar: &ProgressBar) -> Result<(), Failure> {
        // Time is counted by pauses: a machine may sleep, or set its clock.
        let (mut silence, mut silent_portions) = (Duration::ZERO, 0);
        loop {
            // Half of them at least are marked together, so that the indexer reads many together.
            if self.waiting() <= at_once / 2 {
                self.mark(at_once).await?;
            }
            let before = self.waiting();
            if before == 0 {
                return Ok(());
            }
            if silent_portions > 1 {
                return Err(self.nobody_indexes());
            }
            let for_each = PAUSE * u32::try_from(before).unwrap_or(u32::MAX);
            let pause = for_each.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            sleep(pause).await;
            self.look().await?;
            let indexed = before - self.waiting();
            if indexed > 0 {
                (silence, silent_portions) = (Duration::ZERO, 0);
            } else {
                silence += pause;
            }
            bar.inc(indexed as u64);
            bar.set_length(bar.length().unwrap_or_default().max(bar.position() + self.waiting() as u64));
            if silence >= self.patience {
                (silence, silent_portions) = (Duration::ZERO, silent_portions + 1);
                self.leave();
            }
        }
    }

    /// How many are marked and wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.values().map(HashSet::len).sum()
    }

    /// Marks runs until so many wait, or all are marked. The experiments take turns: their changes
    /// may be in different shards of the stream, with an indexer for each.
    pub(super) async fn mark(&mut self, at_once: usize) -> Result<(), Failure> {
        let share = (at_once / self.unmarked.len().max(1)).max(SHARE);
        while self.waiting() < at_once
            && let Some(mut unmarked) = self.unmarked.pop_front()
        {
            let marked = self.index.mark_runs(&mut unmarked, share.min(at_once - self.waiting())).await;
            let marked = marked.map_err(|failure| format!("runs could not be marked: {failure:?}"))?;
            if !marked.is_empty() {
                self.waiting.entry(unmarked.experiment()).or_default().extend(marked);
            }
            if !unmarked.is_empty() {
                self.unmarked.push_back(unmarked);
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
        self.waiting.retain(|_, runs| !runs.is_empty());
        Ok(())
    }

    /// Waits no longer for those that wait: perhaps they cannot be indexed, and others can.
    fn leave(&mut self) {
        self.left += self.waiting();
        let one = self.waiting.drain().flat_map(|(_, runs)| runs).next();
        self.one_left = self.one_left.take().or(one);
    }

    fn nobody_indexes(&self) -> Failure {
        let one = self.one_left.as_ref().map(ToString::to_string).unwrap_or_default();
        format!(
            "none of {} runs was indexed in time, {one} among them, and there are more. The indexer's log says why. \
             Then call this again; with a greater --at-once, if many runs cannot be indexed",
            self.left
        )
        .into()
    }
}
