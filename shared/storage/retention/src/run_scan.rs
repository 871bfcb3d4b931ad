//! Scans of the runs that ended long ago, ordered by their end time.
//!
//! A scan continues where the last one ended. An attribute of the experiment's document records the
//! end time of the last scanned run. Some runs appear later with an earlier end time: imported runs,
//! runs that are indexed with a delay, and runs that receive points after their end. A long-running
//! process therefore scans all runs once a month, and another attribute records the start of the
//! last full scan.

use entities::attributes::{Attribute, Number};
use entities::{RUN_ENTITY_TYPE, RunLocation};
use futures::stream::{self, StreamExt};
use key_schema::index::RunsByEnd;
use key_schema::{Ascending, OwnStage, Segment, rows};
use mlflow_api::{ExperimentId, Result};
use table::{Condition, Failure, Item, Query, Table, Update, number};

use crate::failures::RemovalFailures;
use crate::history_scan::HistoryScans;

/// Number of runs that are listed in one request.
const BATCH_SIZE: usize = 100;
/// Interval, in ms, after which all runs of an experiment are scanned again: 30 days.
const FULL_SCAN_INTERVAL_MS: i64 = 30 * 24 * 3_600_000;

/// A kind of scan. Each kind records its progress separately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunScan<'a> {
    pub(crate) table: &'a Table,
    pub(crate) scans: HistoryScans,
    /// End time of the last scanned run, in ms.
    pub(crate) progress: Attribute<Number>,
    /// Start time of the last full scan, in ms.
    pub(crate) last_full: Attribute<Number>,
    /// Number of runs that are processed concurrently.
    pub(crate) concurrency: usize,
}

/// The progress of a scan of one experiment. Times are in ms.
struct ScanProgress {
    experiment: ExperimentId,
    /// End time up to which earlier scans have processed runs.
    done: Option<i64>,
    /// Start time of this scan, if it scans all runs and the experiment's document does not record
    /// it yet.
    full: Option<i64>,
    /// Whether the scan records its progress.
    notes: bool,
}

impl RunScan<'_> {
    /// Calls `work` for each run of an experiment that ended before `before`, in ms, and has not
    /// been scanned yet. Calls `report` for each page of runs, with the number of runs for which
    /// `work` returned a positive number. `what` describes the work in the log.
    ///
    /// Takes two requests, and two more per hundred runs, in addition to those of `work`.
    ///
    /// # Errors
    /// Returns failures of the table, and the first failure of `work`, after the other runs have
    /// been processed. The next scan retries the runs that failed.
    pub(crate) async fn run<F: Future<Output = Result<usize>>>(
        &self,
        experiment: ExperimentId,
        (now, before): (i64, i64),
        what: &str,
        work: impl Fn(RunLocation) -> F,
        report: impl Fn(u64),
    ) -> Result<()> {
        let mut progress = self.begin(experiment, now).await?;
        let since = progress.done.filter(|_| progress.notes && progress.full.is_none()).unwrap_or(i64::MIN);
        let mut failures = RemovalFailures::default();
        let mut page = ended(experiment, since, before);
        while let Some(query) = page {
            let (runs, through, next) = ended_runs(self.table, experiment, query).await?;
            let outcomes: Vec<_> = runs.iter().cloned().map(&work).collect();
            let outcomes: Vec<_> = stream::iter(outcomes).buffered(self.concurrency).collect().await;
            let count = outcomes.iter().filter(|outcome| outcome.as_ref().is_ok_and(|count| *count > 0)).count();
            if let Ok(count @ 1..) = u64::try_from(count) {
                report(count);
            }
            for (at, outcome) in runs.iter().zip(outcomes) {
                // After a failure, no further progress is recorded, so that the next scan starts
                // before the run that failed.
                progress.notes &= outcome.is_ok();
                failures.note(format_args!("{what} of run {}", at.run), outcome.map(drop))?;
            }
            if let Some(through) = through {
                self.note(&mut progress, through).await?;
            }
            page = next;
        }
        failures.finish()
    }

    async fn begin(&self, experiment: ExperimentId, now: i64) -> Result<ScanProgress> {
        let notes = self.scans != HistoryScans::AtAll;
        let mut progress = ScanProgress { experiment, done: None, full: None, notes };
        if notes {
            let document = self.table.get(&rows::Experiment::key(&experiment)).await?;
            let number = |attribute: Attribute<Number>| document.as_ref().and_then(|document| document.get(attribute));
            progress.done = number(self.progress);
            let is_full = number(self.last_full).is_none_or(|full| now.saturating_sub(full) >= FULL_SCAN_INTERVAL_MS);
            progress.full = is_full.then_some(now);
        }
        Ok(progress)
    }

    /// Records the progress of a scan, if it has changed.
    async fn note(&self, progress: &mut ScanProgress, through: i64) -> Result<()> {
        let full = progress.full.take_if(|_| progress.notes);
        if !progress.notes || (full.is_none() && progress.done == Some(through)) {
            return Ok(());
        }
        progress.done = Some(through);
        let update = Update::new(rows::Experiment::key(&progress.experiment)).set(self.progress, number(through));
        let update = full.into_iter().fold(update, |update, full| update.set(self.last_full, number(full)));
        match self.table.apply(&update.only_if(Condition::item_exists())).await {
            // The experiment was deleted in the meantime.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Returns a page of runs, the end time of the last one in ms, and the query for the next page.
pub(crate) async fn ended_runs(
    table: &Table,
    experiment: ExperimentId,
    query: Query,
) -> Result<(Vec<RunLocation>, Option<i64>, Option<Query>)> {
    let page = table.query_page(&query).await?;
    let entries: Vec<_> = page.items.iter().filter_map(Item::entry::<RunsByEnd>).collect();
    let through = entries.last().map(|entry| entry.ended.0);
    let runs = entries.into_iter().map(|entry| RunLocation { experiment, run: entry.run }).collect();
    Ok((runs, through, page.next.map(|next| query.starting_at(next))))
}

/// Returns the query for runs of an experiment that ended between two times in ms, ordered by end
/// time. Returns `None` if `since` is not before `before`, which happens after the age has been
/// extended.
pub(crate) fn ended(experiment: ExperimentId, since: i64, before: i64) -> Option<Query> {
    let ended = RunsByEnd::all(&experiment, &OwnStage::Active, &RUN_ENTITY_TYPE.into()).range();
    let ended = ended.starting(&Ascending(since).text()).until(&Ascending(before).text());
    (since < before).then(|| Query::of(ended).limit(BATCH_SIZE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_range_ends_before_it_begins() {
        let experiment = ExperimentId::from_number(49).unwrap();
        assert!(ended(experiment, 5, 5).is_none() && ended(experiment, 6, 5).is_none());
        assert!(ended(experiment, i64::MIN, 5).is_some());
    }
}
