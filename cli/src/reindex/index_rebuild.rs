//! Reindexes runs in portions, and waits until they are indexed.
//!
//! A run is marked as changed until the indexer has processed it, and searches read marked runs
//! from their documents. To keep searches fast, only a limited number of runs is marked at any
//! time, regardless of the size of the table.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use indicatif::ProgressBar;
use key_schema::IndexEntry;
use key_schema::index::RunsByName;
use mlflow_api::{ExperimentId, RunId};
use run_index::{RunIndex, UnmarkedRuns};
use runtime::clock::sleep;
use table::Table;

use super::{ReindexTarget, WaitingLimit, style};
use crate::Failure;

/// Maximum time without progress. The indexer may receive changes up to five minutes late, because
/// they are collected.
const MAX_STALL: Duration = Duration::from_mins(15);
/// Pause before 1,000 waiting runs are checked again. The pause grows with the square of the number
/// of waiting runs, because checking more runs reads more, and because more runs are indexed in
/// larger batches.
const PAUSE_FOR_THOUSAND: Duration = Duration::from_secs(1);
/// Minimum pause. It grows with the time without progress, up to `MAX_SILENT_PAUSE`.
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_SILENT_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Time without progress after which the documents of the waiting runs are read as well. A run that
/// is being written to has a mark most of the time, so only its document shows that it was indexed.
const DOCUMENTS_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum number of runs of one experiment that are marked in succession, if there are other
/// experiments.
const MIN_RUNS_PER_EXPERIMENT: usize = 25;

/// State of a rebuild.
pub(super) struct IndexRebuild<'a> {
    index: &'a RunIndex,
    /// Maximum time without progress: [`MAX_STALL`] except in tests.
    pub(super) max_stall: Duration,
    /// Experiments with runs that are not marked yet.
    unmarked: VecDeque<UnmarkedRuns>,
    /// Runs that are marked, but not indexed yet.
    waiting: HashMap<ExperimentId, HashSet<RunId>>,
    /// Number of runs that were not indexed in time, with one of them as an example. They stay
    /// marked.
    pub(super) unindexed_count: usize,
    pub(super) unindexed_example: Option<RunId>,
}

/// Reindexes all runs of these experiments, with at most as many waiting as the limit allows, and shows the
/// progress towards the estimated `count`. Returns the number of runs that were indexed or no
/// longer exist, and the state with the runs that were not indexed.
pub(super) async fn reindex_experiments<'a>(
    index: &'a RunIndex,
    experiments: &[ExperimentId],
    limit: &WaitingLimit,
    count: u64,
) -> Result<(u64, IndexRebuild<'a>), Failure> {
    let bar = ProgressBar::new(count).with_style(style("{bar:40} {pos}/{len} runs indexed, {eta} left")?);
    let mut runs = IndexRebuild::of(index, experiments);
    runs.finish(limit, &bar).await?;
    let indexed = bar.position();
    bar.finish_and_clear();
    Ok((indexed, runs))
}

/// Returns an estimate of the number of runs. For a table, this is DynamoDB's count of active runs,
/// which may be hours old.
pub(super) async fn count(table: &Table, index: &RunIndex, part: &ReindexTarget) -> Result<u64, Failure> {
    let counted = match part {
        ReindexTarget::Table(_) => table.count_of_index(RunsByName::INDEX.name).await.map(Option::unwrap_or_default),
        ReindexTarget::Experiment(id, _) => index.count_runs(*id).await,
    };
    counted.map_err(|failure| format!("cannot count the runs: {failure:?}").into())
}

impl<'a> IndexRebuild<'a> {
    pub(super) fn of(index: &'a RunIndex, experiments: &[ExperimentId]) -> Self {
        let unmarked = experiments.iter().copied().map(UnmarkedRuns::all).collect();
        Self {
            index,
            max_stall: MAX_STALL,
            unmarked,
            waiting: HashMap::new(),
            unindexed_count: 0,
            unindexed_example: None,
        }
    }

    /// Marks all runs, with at most as many waiting as the limit allows, and waits until they are
    /// indexed. Gives up on runs that are not indexed in time.
    ///
    /// # Errors
    /// Two portions in a row were not indexed in time, and there are more runs: apparently no
    /// indexer is running.
    pub(super) async fn finish(&mut self, limit: &WaitingLimit, bar: &ProgressBar) -> Result<(), Failure> {
        // The time without progress is measured as the sum of the pauses, because the machine may
        // be suspended or its clock adjusted.
        let (mut silence, mut silent_portions) = (Duration::ZERO, 0);
        loop {
            // Runs are marked in groups of at least half the limit, so that the indexer can read
            // many at once.
            let at_once = limit.current();
            if self.waiting() <= at_once / 2 {
                self.mark(at_once).await?;
            }
            let before = self.waiting();
            if before == 0 {
                return Ok(());
            }
            if silent_portions > 1 {
                return Err(self.no_progress_failure());
            }
            let pause = pause_for(before, silence);
            sleep(pause).await;
            self.remove_indexed(silence + pause >= DOCUMENTS_INTERVAL).await?;
            let indexed = before - self.waiting();
            if indexed > 0 {
                (silence, silent_portions) = (Duration::ZERO, 0);
            } else {
                silence += pause;
            }
            bar.inc(indexed as u64);
            bar.set_length(bar.length().unwrap_or_default().max(bar.position() + self.waiting() as u64));
            if silence >= self.max_stall {
                (silence, silent_portions) = (Duration::ZERO, silent_portions + 1);
                self.give_up();
            }
        }
    }

    /// Returns the number of runs that are marked and waiting.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.values().map(HashSet::len).sum()
    }

    /// Marks runs until `at_once` of them are waiting, or all are marked. Takes the experiments in
    /// turn, because their changes may be in different shards of the stream, each with an indexer
    /// of its own.
    pub(super) async fn mark(&mut self, at_once: usize) -> Result<(), Failure> {
        let share = (at_once / self.unmarked.len().max(1)).max(MIN_RUNS_PER_EXPERIMENT);
        while self.waiting() < at_once
            && let Some(mut unmarked) = self.unmarked.pop_front()
        {
            let marked = self.index.mark_runs(&mut unmarked, share.min(at_once - self.waiting())).await;
            let marked = marked.map_err(|failure| format!("cannot mark the runs: {failure:?}"))?;
            if !marked.is_empty() {
                self.waiting.entry(unmarked.experiment()).or_default().extend(marked);
            }
            if !unmarked.is_empty() {
                self.unmarked.push_back(unmarked);
            }
        }
        Ok(())
    }

    /// Removes the runs that have been indexed from those that are waiting. Indexed runs that have
    /// been marked again in the meantime are only detected with `reads_documents`.
    async fn remove_indexed(&mut self, reads_documents: bool) -> Result<(), Failure> {
        for (experiment, runs) in &mut self.waiting {
            let dropped = if reads_documents {
                self.index.drop_rebuilt(*experiment, runs).await
            } else {
                self.index.drop_unmarked(*experiment, runs).await
            };
            dropped.map_err(|failure| format!("cannot read the index: {failure:?}"))?;
        }
        self.waiting.retain(|_, runs| !runs.is_empty());
        Ok(())
    }

    /// Gives up on the runs that are waiting. It may be impossible to index them, but other runs
    /// can still be indexed.
    fn give_up(&mut self) {
        self.unindexed_count += self.waiting();
        let one = self.waiting.drain().flat_map(|(_, runs)| runs).next();
        self.unindexed_example = self.unindexed_example.take().or(one);
    }

    fn no_progress_failure(&self) -> Failure {
        let one = self.unindexed_example.as_ref().map(ToString::to_string).unwrap_or_default();
        format!(
            "none of {} runs was indexed in time, for example {one}, and there are more. The indexer's log has the reason. \
             Then run this command again, with a higher --at-once if many runs cannot be indexed",
            self.unindexed_count
        )
        .into()
    }
}

/// Returns how long to pause before this number of waiting runs are checked again.
#[expect(clippy::cast_precision_loss, reason = "a pause needs few digits")]
fn pause_for(waiting: usize, silence: Duration) -> Duration {
    let thousands = waiting as f64 / 1_000.0;
    let for_runs = PAUSE_FOR_THOUSAND.mul_f64((thousands * thousands).min(MAX_PAUSE.as_secs_f64()));
    for_runs.max((silence / 8).min(MAX_SILENT_PAUSE)).max(MIN_PAUSE)
}
