//! Moves long metric histories of runs that ended long ago to the archive.

use entities::RunLocation;
use entities::attributes::{ARCHIVE_SCANNED, HISTORIES_ARCHIVED};
use metric_archive::archive_history;
use mlflow_api::{Result, Workspace};

use crate::archive_age::HistoryArchiveAge;
use crate::failures::RemovalFailures;
use crate::policy::RetentionPolicy;
use crate::report::RemovalReport;
use crate::run_scan::RunScan;
use crate::store::Retention;

/// Number of runs whose histories are archived concurrently. Together they use at most 2,000 write
/// units and 500 read units per second, which is 5 % of the default quota of a table. In the four
/// minutes per hour that the housekeeper has, they move about 480 MB.
const CONCURRENCY: usize = 4;

impl Retention {
    /// Moves the long histories of runs that ended longer ago than the setting says to the archive.
    /// Does nothing if there is no archive, if the layout of the table does not support it, or if
    /// the histories expire before. `now` is in ms. May be interrupted at any point and repeated.
    ///
    /// Sends two requests for the settings, one for the list of experiments, two for each experiment
    /// that is scanned (its document and its runs), two more per hundred runs, and one for each run,
    /// in addition to the requests of [`archive_history`].
    ///
    /// # Errors
    /// Returns failures of the table and of the archive, after the other experiments have been
    /// tried. The next scan retries the runs that failed.
    pub async fn archive_histories(&self, workspace: &Workspace, now: i64, report: &dyn RemovalReport) -> Result<()> {
        if !self.archives_histories || !self.archive.exists() {
            return Ok(());
        }
        let Some(age) = HistoryArchiveAge::read(&self.table).await? else { return Ok(()) };
        let before = age.before();
        let expiry = RetentionPolicy::Histories.read(&self.table).await?;
        if expiry.is_some_and(|age| age.before() >= before) {
            return Ok(());
        }
        let scan = RunScan {
            table: &self.table,
            scans: self.looks,
            progress: HISTORIES_ARCHIVED,
            last_full: ARCHIVE_SCANNED,
            concurrency: CONCURRENCY,
        };
        let mut failures = RemovalFailures::default();
        for experiment in self.index.experiments(workspace).await? {
            if self.looks.has_turn(experiment, now) {
                let work = async |at: RunLocation| archive_history(&self.table, &self.archive, &at, before).await;
                let report = |runs| report.archived_histories(experiment, runs);
                let outcome = scan.run(experiment, (now, before), "history", work, report).await;
                failures.note(format_args!("histories of experiment {experiment}"), outcome)?;
            }
        }
        failures.finish()
    }
}
