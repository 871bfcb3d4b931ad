//! Deletes expired traces, day by day. Reads ignore a trace from the moment when it expires, even
//! before it is deleted.

use entities::trace_retention::{TraceRetentionCache, TraceRetentionSetting};
use mlflow_api::{ExperimentId, Result, Workspace};
use trace_blocks::{TracePartition, day_of};

use crate::failures::RemovalFailures;
use crate::report::RemovalReport;
use crate::store::Retention;

/// One day in ms.
const DAY_MS: i64 = 86_400_000;

/// Days of an experiment on which all traces have expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredTraces {
    /// Experiment of the traces.
    pub experiment: ExperimentId,
    /// Traces that began before this time, in ms, are deleted.
    pub before: i64,
    /// Days, oldest first, each with the number of its partitions.
    days: Vec<(i64, u32)>,
}

impl Retention {
    /// Returns the experiments of a workspace that still have expired traces, with the days on
    /// which these traces began. Sends the same requests as [`Retention::remove_expired_traces`]
    /// when there is nothing to delete.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn expired_traces(&self, workspace: &Workspace) -> Result<Vec<ExpiredTraces>> {
        let mut there = Vec::new();
        for mut expired in self.expired_days(workspace).await? {
            let mut days = Vec::new();
            for (day, shards) in std::mem::take(&mut expired.days) {
                for shard in 0..shards {
                    let partition = TracePartition { experiment: expired.experiment, day, shard };
                    if self.holds_traces(partition).await? {
                        days.push((day, shards));
                        break;
                    }
                }
            }
            if !days.is_empty() {
                there.push(ExpiredTraces { days, ..expired });
            }
        }
        Ok(there)
    }

    /// Returns the days on which all traces have expired, for all experiments of a workspace,
    /// whether or not the traces have been deleted.
    ///
    /// Sends one request for the setting. Unless the setting is the default, with which no traces
    /// expire, sends another request for the setting, one for the list of experiments, one per
    /// fifty experiments with a retention tag, and one for the days of each experiment whose traces
    /// expire.
    async fn expired_days(&self, workspace: &Workspace) -> Result<Vec<ExpiredTraces>> {
        let mut expired = Vec::new();
        if TraceRetentionSetting::read(&self.table).await? == TraceRetentionSetting::default() {
            return Ok(expired);
        }
        let experiments = self.index.experiments(workspace).await?;
        let kept = TraceRetentionCache::new(self.table.clone()).since(experiments.iter().copied()).await?;
        for experiment in experiments {
            if let Some(since) = kept.of(experiment) {
                expired.extend(self.expired_in(experiment, since).await?);
            }
        }
        Ok(expired)
    }

    /// Deletes all traces of days on which all traces have expired, with their spans, marks, blocks
    /// and files. May be interrupted at any point and repeated.
    ///
    /// On every call, a day without any traces left costs one request, or two if the experiment has
    /// a retention tag, and two for each of the day's partitions. Any other day costs two requests
    /// per hundred traces, one per document, and two for the spans of each trace. Each deletion
    /// costs at least one write unit.
    ///
    /// # Errors
    /// Returns failures of the table, and an internal error if an item cannot be read, in both
    /// cases after all other days have been tried. The next call deletes what is left.
    pub async fn remove_expired_traces(&self, workspace: &Workspace, report: &dyn RemovalReport) -> Result<()> {
        let mut failures = RemovalFailures::default();
        for ExpiredTraces { experiment, days, .. } in self.expired_days(workspace).await? {
            let mut removed = 0;
            for (day, shards) in days {
                // The setting is read again because a removal can take hours, and the setting may
                // have changed since it began.
                if self.expired_since(experiment).await?.is_none_or(|before| day >= day_of(before)) {
                    break;
                }
                for shard in 0..shards {
                    let partition = TracePartition { experiment, day, shard };
                    let outcome = self.remove_expired_day(partition, report, &mut removed).await;
                    failures.note(format_args!("traces of day {day} of experiment {experiment}"), outcome)?;
                }
            }
            if removed > 0 {
                report.removed_traces(experiment, removed);
            }
        }
        failures.finish()
    }

    /// Returns the time in ms before which traces of an experiment have expired, according to the
    /// settings that the table contains at the time of the call.
    async fn expired_since(&self, experiment: ExperimentId) -> Result<Option<i64>> {
        Ok(TraceRetentionCache::new(self.table.clone()).since([experiment]).await?.of(experiment))
    }

    async fn expired_in(&self, experiment: ExperimentId, since: i64) -> Result<Option<ExpiredTraces>> {
        let last = day_of(since);
        let mut days = self.trace_days(experiment).await?;
        days.retain(|(day, _)| *day < last);
        let before = last.saturating_mul(DAY_MS);
        Ok(Some(ExpiredTraces { experiment, before, days }).filter(|expired| !expired.days.is_empty()))
    }
}
