//! Deletes expired metric histories, which are the segments of runs that ended long ago.
//!
//! Documents of runs are not changed, so the latest point of each metric is kept. Chart rows are
//! kept too, so charts of long histories still work. Readers of a history and the indexer read
//! whichever segments exist, so they do not fail when a segment is deleted.
//!
//! A scan continues where the last one ended. The attribute `forgotten` of the experiment's
//! document records the end time of the last scanned run. Some runs appear later with an earlier
//! end time: imported runs, runs that are indexed with a delay, and runs that receive points after
//! their end. A long-running process therefore scans all runs once a month, and the attribute
//! `looked` records the start of the last full scan.

use entities::attributes::{Attribute, END_TIME, FORGOTTEN, LOOKED, Number, STATUS};
use entities::{MetricsStorage, RUN_ENTITY_TYPE, RunLocation, place_of_metrics, read_segment};
use futures::stream::{self, StreamExt};
use key_schema::index::RunsByEnd;
use key_schema::{Ascending, Key, OwnStage, Segment, rows};
use mlflow_api::tracking::RunStatus;
use mlflow_api::{ExperimentId, Result, Workspace};
use table::{Condition, Failure, Item, Query, Update, number};

use crate::failures::RemovalFailures;
use crate::history_scan::HistoryScans;
use crate::policy::RetentionPolicy;
use crate::report::RemovalReport;
use crate::store::Retention;

/// Number of runs that are listed in one request.
const BATCH_SIZE: usize = 100;
/// Number of runs whose histories are deleted concurrently.
const CONCURRENCY: usize = 8;
/// Interval, in ms, after which all runs of an experiment are scanned again: 30 days.
const FULL_SCAN_INTERVAL_MS: i64 = 30 * 24 * 3_600_000;

/// A scan of the runs of an experiment. Times are in ms.
struct HistoryScan {
    experiment: ExperimentId,
    /// End time up to which earlier scans have deleted the histories of runs.
    forgotten: Option<i64>,
    /// Start time of this scan, if it scans all runs and the experiment's document does not record
    /// it yet.
    looked: Option<i64>,
    /// Whether the scan records its progress.
    notes: bool,
}

impl Retention {
    /// Deletes the histories of runs that ended longer ago than the policy allows. Individually
    /// deleted runs keep their histories, because such a run is later deleted as a whole. `now` is
    /// in ms. May be interrupted at any point and repeated.
    ///
    /// Sends one request if there is no policy. Otherwise sends one for the list of experiments,
    /// two for each experiment that is scanned (its document and its runs), two more per hundred
    /// runs, and one or two for each run, in addition to the requests of
    /// [`Retention::remove_history`].
    ///
    /// # Errors
    /// Returns failures of the table, after the other experiments have been tried. The next scan
    /// retries the runs that failed.
    pub async fn remove_old_histories(
        &self,
        workspace: &Workspace,
        now: i64,
        report: &dyn RemovalReport,
    ) -> Result<()> {
        let Some(age) = RetentionPolicy::Histories.read(&self.table).await? else { return Ok(()) };
        let mut failures = RemovalFailures::default();
        for experiment in self.index.experiments(workspace).await? {
            if self.looks.has_turn(experiment, now) {
                let outcome = self.remove_histories_of(experiment, now, age.before(), report).await;
                failures.note(format_args!("histories of experiment {experiment}"), outcome)?;
            }
        }
        failures.finish()
    }

    async fn remove_histories_of(
        &self,
        experiment: ExperimentId,
        now: i64,
        before: i64,
        report: &dyn RemovalReport,
    ) -> Result<()> {
        let mut look = self.look(experiment, now).await?;
        let since = look.forgotten.filter(|_| look.notes && look.looked.is_none()).unwrap_or(i64::MIN);
        let mut failures = RemovalFailures::default();
        let mut page = ended(experiment, since, before);
        while let Some(query) = page {
            let (runs, through, next) = self.ended(experiment, query).await?;
            let removed: Vec<_> = runs.iter().map(|at| self.remove_history(at, before)).collect();
            let removed: Vec<_> = stream::iter(removed).buffered(CONCURRENCY).collect().await;
            let count = removed.iter().filter(|outcome| outcome.as_ref().is_ok_and(|segments| *segments > 0)).count();
            if let Ok(count @ 1..) = u64::try_from(count) {
                report.removed_histories(experiment, count);
            }
            for (at, outcome) in runs.iter().zip(removed) {
                // After a failure, no further progress is recorded, so that the next scan starts
                // before the run that failed.
                look.notes &= outcome.is_ok();
                failures.note(format_args!("history of run {}", at.run), outcome.map(drop))?;
            }
            if let Some(through) = through {
                self.note(&mut look, through).await?;
            }
            page = next;
        }
        failures.finish()
    }

    async fn look(&self, experiment: ExperimentId, now: i64) -> Result<HistoryScan> {
        let mut look =
            HistoryScan { experiment, forgotten: None, looked: None, notes: self.looks != HistoryScans::AtAll };
        if look.notes {
            let document = self.table.get(&rows::Experiment::key(&experiment)).await?;
            let number = |attribute: Attribute<Number>| document.as_ref().and_then(|document| document.get(attribute));
            look.forgotten = number(FORGOTTEN);
            let is_of_all = number(LOOKED).is_none_or(|looked| now.saturating_sub(looked) >= FULL_SCAN_INTERVAL_MS);
            look.looked = is_of_all.then_some(now);
        }
        Ok(look)
    }

    /// Returns a page of runs, the end time of the last one in ms, and the query for the next page.
    async fn ended(
        &self,
        experiment: ExperimentId,
        query: Query,
    ) -> Result<(Vec<RunLocation>, Option<i64>, Option<Query>)> {
        let page = self.table.query_page(&query).await?;
        let entries: Vec<_> = page.items.iter().filter_map(Item::entry::<RunsByEnd>).collect();
        let through = entries.last().map(|entry| entry.ended.0);
        let runs = entries.into_iter().map(|entry| RunLocation { experiment, run: entry.run }).collect();
        Ok((runs, through, page.next.map(|next| query.starting_at(next))))
    }

    /// Records the progress of a scan, if it has changed.
    async fn note(&self, look: &mut HistoryScan, through: i64) -> Result<()> {
        let looked = look.looked.take_if(|_| look.notes);
        if !look.notes || (looked.is_none() && look.forgotten == Some(through)) {
            return Ok(());
        }
        look.forgotten = Some(through);
        let update = Update::new(rows::Experiment::key(&look.experiment)).set(FORGOTTEN, number(through));
        let update = looked.into_iter().fold(update, |update, looked| update.set(LOOKED, number(looked)));
        match self.table.apply(&update.only_if(Condition::item_exists())).await {
            // The experiment was deleted in the meantime.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Deletes the segments of a run whose points are all older than `before`, in ms. Keeps the
    /// history of a run that has been resumed, or that has points waiting to be packed. Returns the
    /// number of deleted segments.
    ///
    /// Sends one request for a run without segments. Otherwise sends two per MB of segments and one
    /// per 25 deleted segments. A deletion costs one write unit per KB.
    ///
    /// # Errors
    /// Returns failures of the table, and an internal error if a segment cannot be read. An
    /// unreadable segment is kept, because it may have later points.
    pub(crate) async fn remove_history(&self, at: &RunLocation, before: i64) -> Result<usize> {
        let (mut count, mut outcome) = (0, Ok(()));
        let mut page = Some(Query::of(rows::MetricSegment::all(&at.run).range()));
        while let Some(query) = page {
            let (old, unread, next) = self.old_segments(at, query, before).await?;
            self.table.write_many(Vec::new(), &old).await?;
            count += old.len();
            outcome = outcome.and(unread);
            page = next;
        }
        outcome.map(|()| count)
    }

    /// Returns the expired segments of a page, and an error if one of them cannot be read. Also
    /// returns the query for the next page, if the run is over and there is one.
    ///
    /// The run is read after its segments. If a client resumed the run and then wrote a segment,
    /// the run is therefore seen as resumed, and the segment is not returned.
    async fn old_segments(
        &self,
        at: &RunLocation,
        query: Query,
        before: i64,
    ) -> Result<(Vec<Key>, Result<()>, Option<Query>)> {
        let found = self.table.query_page(&query).await?;
        let (mut old, mut unread) = (Vec::new(), Ok(()));
        if found.items.is_empty() {
            return Ok((old, unread, None));
        }
        let Some(run) = self.table.get(&at.key()).await? else { return Ok((old, unread, None)) };
        if !is_over(&run, before) {
            return Ok((old, unread, None));
        }
        for segment in &found.items {
            match read_segment(segment) {
                Ok((points, _)) if points.iter().all(|point| point.timestamp < before) => old.extend(segment.key()),
                Ok(_) => {}
                Err(error) => unread = unread.and(Err(error)),
            }
        }
        Ok((old, unread, found.next.map(|next| query.starting_at(next))))
    }

    /// Returns the experiments of a workspace that have runs with expired histories, with the
    /// number of these runs. Sends the same requests as a removal of all expired histories, without
    /// the deletions.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn old_histories(&self, workspace: &Workspace) -> Result<Vec<(ExperimentId, usize)>> {
        let Some(age) = RetentionPolicy::Histories.read(&self.table).await? else { return Ok(Vec::new()) };
        let mut old = Vec::new();
        for experiment in self.index.experiments(workspace).await? {
            let (mut count, mut page) = (0, ended(experiment, i64::MIN, age.before()));
            while let Some(query) = page {
                let (runs, _, next) = self.ended(experiment, query).await?;
                let there: Vec<_> = runs.iter().map(|at| self.has_old_history(at, age.before())).collect();
                let there: Vec<_> = stream::iter(there).buffered(CONCURRENCY).collect().await;
                for is_there in there {
                    count += usize::from(is_there?);
                }
                page = next;
            }
            if count > 0 {
                old.push((experiment, count));
            }
        }
        Ok(old)
    }

    async fn has_old_history(&self, at: &RunLocation, before: i64) -> Result<bool> {
        let mut page = Some(Query::of(rows::MetricSegment::all(&at.run).range()));
        while let Some(query) = page {
            let (old, _, next) = self.old_segments(at, query, before).await?;
            if !old.is_empty() {
                return Ok(true);
            }
            page = next;
        }
        Ok(false)
    }
}

/// Returns the query for runs of an experiment that ended between two times in ms, ordered by end
/// time. Returns `None` if `since` is not before `before`, which happens after the policy has been
/// extended.
fn ended(experiment: ExperimentId, since: i64, before: i64) -> Option<Query> {
    let ended = RunsByEnd::all(&experiment, &OwnStage::Active, &RUN_ENTITY_TYPE.into()).range();
    let ended = ended.starting(&Ascending(since).text()).until(&Ascending(before).text());
    (since < before).then(|| Query::of(ended).limit(BATCH_SIZE))
}

/// Checks whether a run ended before this time, in ms, has not been resumed, and has no points that
/// wait to be packed. A resumed run keeps its end time.
fn is_over(run: &Item, before: i64) -> bool {
    run.get(STATUS).is_some_and(RunStatus::has_ended)
        && run.get(END_TIME).is_some_and(|ended| ended < before)
        && place_of_metrics(run) != MetricsStorage::Journal
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
