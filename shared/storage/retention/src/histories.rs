//! Deletes expired metric histories, which are the segments of runs that ended long ago.
//!
//! Documents of runs are not changed, so the latest point of each metric is kept. Chart rows are
//! kept too, so charts of long histories still work. Readers of a history and the indexer read
//! whichever segments exist, so they do not fail when a segment is deleted.
//!
//! Segments that have been archived are deleted as well, with their objects
//! ([`metric_archive::remove_segments`]).

use entities::attributes::{FORGOTTEN, LOOKED};
use entities::{RunLocation, read_segment};
use futures::stream::{self, StreamExt};
use key_schema::{Key, rows};
use metric_archive::{expired_segments, is_over, remove_segments};
use mlflow_api::{ExperimentId, Result, Workspace};
use table::Query;

use crate::failures::RemovalFailures;
use crate::policy::RetentionPolicy;
use crate::report::RemovalReport;
use crate::run_scan::{RunScan, ended, ended_runs};
use crate::store::Retention;

/// Number of runs whose histories are deleted concurrently.
const CONCURRENCY: usize = 8;

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
        let before = age.before();
        let scan = RunScan {
            table: &self.table,
            scans: self.looks,
            progress: FORGOTTEN,
            last_full: LOOKED,
            concurrency: CONCURRENCY,
        };
        let mut failures = RemovalFailures::default();
        for experiment in self.index.experiments(workspace).await? {
            if self.looks.has_turn(experiment, now) {
                let work = async |at: RunLocation| self.remove_history(&at, before).await;
                let report = |runs| report.removed_histories(experiment, runs);
                let outcome = scan.run(experiment, (now, before), "history", work, report).await;
                failures.note(format_args!("histories of experiment {experiment}"), outcome)?;
            }
        }
        failures.finish()
    }

    /// Deletes the segments of a run whose points are all older than `before`, in ms. Keeps the
    /// history of a run that has been resumed, or that has points waiting to be packed. Returns the
    /// number of deleted segments.
    ///
    /// Sends one request for a run without segments. Otherwise sends two per MB of segments and one
    /// per 25 deleted segments. A deletion costs one write unit per KB. If the table may have
    /// archived histories, sends one more, and those of [`expired_segments`] and
    /// [`remove_segments`].
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
        if self.archives_histories {
            let expired = expired_segments(&self.table, at, before).await?;
            remove_segments(&self.table, &expired).await?;
            count += expired.len();
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
                let (runs, _, next) = ended_runs(&self.table, experiment, query).await?;
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
        Ok(self.archives_histories && !expired_segments(&self.table, at, before).await?.is_empty())
    }
}
