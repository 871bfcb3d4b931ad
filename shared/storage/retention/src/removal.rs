//! Permanently deletes entities that have been selected for removal.

use mlflow_api::{Result, Workspace};

use crate::deleted_entities::EntitiesToDelete;
use crate::failures::RemovalFailures;
use crate::report::RemovalReport;
use crate::store::Retention;

impl Retention {
    /// Deletes the given entities, runs first and experiments last, after finishing earlier
    /// removals. Entities that cannot be deleted are kept, with the reason in the report. Sends
    /// about nine requests per run, and one per 25 of the run's items. Each item costs at least one
    /// write unit.
    ///
    /// # Errors
    /// Returns failures of the table, after all other entities have been tried. Entities that were
    /// not deleted are unchanged, or are deleted by the next call.
    pub async fn remove(
        &self,
        workspace: &Workspace,
        found: &EntitiesToDelete,
        report: &dyn RemovalReport,
    ) -> Result<()> {
        let mut failures = RemovalFailures::default();
        failures.note("unfinished removals", self.resume(report).await)?;
        for (experiment, runs) in &found.runs {
            let removed = self.remove_runs(*experiment, runs, found.of_runs, report).await;
            failures.note(format_args!("runs of experiment {experiment}"), removed.map(drop))?;
        }
        for (experiment, models) in &found.models {
            let removed = self.remove_models(*experiment, models, found.which, report).await;
            failures.note(format_args!("logged models of experiment {experiment}"), removed.map(drop))?;
        }
        for experiment in &found.experiments {
            let workspace = found.elsewhere.get(experiment).unwrap_or(workspace);
            let removed = self.remove_experiment(workspace, *experiment, found.which, report).await;
            failures.note(format_args!("experiment {experiment}"), removed)?;
        }
        failures.finish()
    }
}
