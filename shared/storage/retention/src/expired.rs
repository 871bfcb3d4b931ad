//! Removing traces that are kept no longer, day after day: reads hide them from the moment on at which their time is over.

use experiments::{KeptTraces, TraceSetting};
use mlflow_api::{ExperimentId, Result, Workspace};
use trace_blocks::{TracePartition, day_of};

use crate::failures::Failures;
use crate::report::Report;
use crate::store::Retention;

/// A day, in ms.
const DAY: i64 = 86_400_000;

/// Days of an experiment whose traces are kept no longer, all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredTraces {
    /// The experiment.
    pub experiment: ExperimentId,
    /// Traces that began before this time, in ms, are removed.
    pub before: i64,
    /// The days, oldest first, each with the number of its partitions.
    days: Vec<(i64, u32)>,
}

impl Retention {
    /// The experiments of a workspace that still have traces that are kept no longer, with the days
    /// on which these began. It takes the requests of a removal that finds nothing.
    ///
    /// # Errors
    /// Those of the table.
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

    /// The days of all experiments of a workspace whose traces are kept no longer, whether or not
    /// they have been removed. One request for the setting, if all traces are kept for ever.
    /// Otherwise, one more for that, and one for the list of experiments. One more for the days of
    /// each experiment whose traces are not kept for ever, and per fifty with tags of their own.
    async fn expired_days(&self, workspace: &Workspace) -> Result<Vec<ExpiredTraces>> {
        let mut expired = Vec::new();
        if TraceSetting::read(&self.table).await? == TraceSetting::default() {
            return Ok(expired);
        }
        let experiments = self.index.experiments(workspace).await?;
        let kept = KeptTraces::new(self.table.clone()).since(experiments.iter().copied()).await?;
        for experiment in experiments {
            if let Some(since) = kept.of(experiment) {
                expired.extend(self.expired_in(experiment, since).await?);
            }
        }
        Ok(expired)
    }

    /// Removes all traces of days whose traces are all kept no longer, with their spans, marks,
    /// blocks and files. It may be stopped anywhere, and be repeated.
    ///
    /// A day without any traces left costs one request, two where the experiment has a tag, and two
    /// for each of its partitions, each time. Other days cost two per hundred traces, one per
    /// document, and two for the spans of each trace. Those cost a write unit or more.
    ///
    /// # Errors
    /// Those of the table, and an internal one where something cannot be read, after all other days
    /// were tried. The next call removes the rest.
    pub async fn remove_expired_traces(&self, workspace: &Workspace, report: &dyn Report) -> Result<()> {
        let mut failures = Failures::default();
        for ExpiredTraces { experiment, days, .. } in self.expired_days(workspace).await? {
            let mut removed = 0;
            for (day, shards) in days {
                // A change of the setting meanwhile counts: a removal may take hours.
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

    /// When traces of an experiment began that are kept no longer: before this time, in ms. As the table says it now.
    async fn expired_since(&self, experiment: ExperimentId) -> Result<Option<i64>> {
        Ok(KeptTraces::new(self.table.clone()).since([experiment]).await?.of(experiment))
    }

    async fn expired_in(&self, experiment: ExperimentId, since: i64) -> Result<Option<ExpiredTraces>> {
        let last = day_of(since);
        let mut days = self.trace_days(experiment).await?;
        days.retain(|(day, _)| *day < last);
        let before = last.saturating_mul(DAY);
        Ok(Some(ExpiredTraces { experiment, before, days }).filter(|expired| !expired.days.is_empty()))
    }
}
