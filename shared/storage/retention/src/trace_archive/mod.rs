//! Archives the spans of old traces: moves them from the table to objects of the archive, one per
//! block of traces. The documents of the traces stay in the table, so searches find archived traces
//! as before.
//!
//! Each experiment is checked once per day. For each day of traces that is older than the archive age,
//! [`partition`] archives the blocks of all partitions. The day's row then records that the day is
//! archived, so that later checks skip it, until the indexer packs traces of that day again. Traces
//! that are too few to be packed are packed on request.
//!
//! An archiver may stop after any request. While an experiment is being archived, a row names it, so
//! that the next call continues with it. The objects follow the protocol in
//! [`entities::archived_objects`], and [`sweep`] completes it after an interruption.

mod check;
mod partition;
mod references;
mod sweep;

pub use check::ArchiveDifferences;

use entities::attributes::{ARCHIVED, PACKINGS, SHARDS, WORKSPACE};
use entities::{experiment_state, in_workspace, workspace_named};
use key_schema::{Ascending, Segment, rows};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, Result, Workspace};
use table::{Condition, Failure, Item, Query, Update, number};
use trace_blocks::{TracePartition, day_of};

use crate::failures::RemovalFailures;
use crate::store::{ArchiveAge, Retention};

/// Interval, in ms, after which an archived day is checked for traces that were not packed: 30 days.
const CHECK_INTERVAL_MS: i64 = 30 * 24 * 3_600_000;

/// A day of traces that is older than the archive age.
struct OldDay {
    day: i64,
    shards: u32,
    /// The day's row.
    row: Item,
    /// Whether all blocks of the day are archived, so that only its marks have to be checked.
    is_archived: bool,
}

impl Retention {
    /// Archives the spans of old traces: first those of experiments with which an earlier call did not
    /// finish, and then those of the experiments of a workspace that have their turn now. `now` is in
    /// ms. May be interrupted at any point and repeated. Does nothing if the server stores no
    /// artifacts.
    ///
    /// Sends one request for unfinished experiments, one for the list of experiments, and two for each
    /// experiment that has its turn: for its settings and for its days. The last one costs one read
    /// unit per 50 days. [`partition`] describes what archiving a block costs.
    ///
    /// # Errors
    /// Returns failures of the table and of the archive, after other experiments have been tried. The
    /// next call retries what has failed.
    pub async fn archive_traces(&self, workspace: &Workspace, now: i64) -> Result<()> {
        if !self.archive.exists() || !self.may_archive {
            return Ok(());
        }
        let mut failures = RemovalFailures::default();
        let unfinished = self.unfinished_archiving(workspace).await?;
        for experiment in &unfinished {
            let outcome = self.archive_experiment(workspace, *experiment, now).await;
            failures.note(format_args!("the archiving of experiment {experiment}"), outcome)?;
        }
        for experiment in self.index.experiments(workspace).await? {
            if self.looks.has_turn(experiment, now) && !unfinished.contains(&experiment) {
                let outcome = self.archive_experiment(workspace, experiment, now).await;
                failures.note(format_args!("the archiving of experiment {experiment}"), outcome)?;
            }
        }
        failures.finish()
    }

    /// Returns the experiments of a workspace with which an earlier call did not finish.
    async fn unfinished_archiving(&self, workspace: &Workspace) -> Result<Vec<ExperimentId>> {
        let rows = self.table.query(Query::of(rows::ArchivingExperiment::all())).await?;
        let is_here = |row: &&Item| workspace_named(row.get(WORKSPACE)).is_ok_and(|of| of == *workspace);
        let parsed = rows.iter().filter(is_here).filter_map(|row| rows::ArchivingExperiment::parse(&row.key()?));
        Ok(parsed.map(|row| row.experiment).collect())
    }

    async fn archive_experiment(&self, workspace: &Workspace, experiment: ExperimentId, now: i64) -> Result<()> {
        let row = rows::ArchivingExperiment::key(&experiment);
        let days = match self.archive_age(experiment).await? {
            Some(age) => self.days_to_archive(experiment, now, age).await?,
            None => Vec::new(),
        };
        // Traces of a deleted experiment are archived if it is restored.
        if days.is_empty() || !self.is_active(experiment).await? {
            return Ok(());
        }
        let item = in_workspace(Item::new(row.clone()), workspace);
        self.table.put(item, &Condition::Always).await?;
        let mut failures = RemovalFailures::default();
        for day in days {
            let outcome = self.archive_day(experiment, &day, now).await;
            failures.note(format_args!("the archiving of day {} of experiment {experiment}", day.day), outcome)?;
        }
        // After a failure, the next attempt is made when the experiment has its turn again.
        self.table.write_many(Vec::new(), &[row]).await?;
        failures.finish()
    }

    /// Checks whether an experiment exists and is not deleted. Sends one request.
    pub(super) async fn is_active(&self, experiment: ExperimentId) -> Result<bool> {
        let document = self.table.get(&rows::Experiment::key(&experiment)).await?;
        Ok(document.is_some_and(|document| experiment_state(&document).stage == LifecycleStage::Active))
    }

    /// Returns the age in ms from which the spans of an experiment are archived, or `None` if they are
    /// not archived, or if the traces are archived to files (`mlflow_archival`). Sends one request, and
    /// at most two per minute for the settings of the server and of the workspace.
    async fn archive_age(&self, experiment: ExperimentId) -> Result<Option<i64>> {
        if let ArchiveAge::Fixed(age) = self.archive_age {
            return Ok(age);
        }
        let archival = self.trace_archival.experiments(&[experiment]).await?.remove(&experiment);
        let Some(archival) = archival else { return Ok(None) };
        let is_filed = archival.location.is_some_and(|location| self.artifacts.at(&location).is_ok());
        Ok(archival.retention.filter(|_| !is_filed).map(|retention| retention.ms()))
    }

    /// Returns the days that ended longer ago than `age`, oldest first, except for those that were
    /// archived recently. Times are in ms.
    async fn days_to_archive(&self, experiment: ExperimentId, now: i64, age: i64) -> Result<Vec<OldDay>> {
        let last = day_of(now.saturating_sub(age)).saturating_sub(1);
        let until = rows::TraceDay::all(&experiment).range().until(&Ascending(last).text());
        let rows = self.table.query(Query::of(until)).await?;
        let days = rows.into_iter().filter_map(|row| {
            let day = row.key().as_ref().and_then(rows::TraceDay::parse)?.day.0;
            let archived = row.get(ARCHIVED);
            let is_due = archived.is_none_or(|archived| archived <= now.saturating_sub(CHECK_INTERVAL_MS));
            let (shards, is_archived) = (row.get(SHARDS).unwrap_or(1), archived.is_some());
            is_due.then_some(OldDay { day, shards, row, is_archived })
        });
        Ok(days.collect())
    }

    /// Archives a day, and records in the day's row if all of its blocks are archived then.
    async fn archive_day(&self, experiment: ExperimentId, day: &OldDay, now: i64) -> Result<()> {
        let mut is_complete = true;
        for shard in 0..day.shards {
            let partition = TracePartition { experiment, day: day.day, shard };
            if !day.is_archived {
                is_complete &= self.archive_partition(partition).await?;
            }
            self.request_packing(partition).await?;
        }
        if !is_complete {
            return Ok(());
        }
        // If traces of the day have been packed or the day has got more partitions since its row was
        // read, there may be blocks that were not archived. The next call archives them.
        let is_same = Condition::unchanged(&day.row, PACKINGS).and(Condition::unchanged(&day.row, SHARDS));
        let key = rows::TraceDay::key(&experiment, &Ascending(day.day));
        match self.table.apply(&Update::new(key).set(ARCHIVED, number(now)).only_if(is_same)).await {
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}
