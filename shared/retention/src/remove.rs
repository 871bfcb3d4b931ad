//! Removing what was found.

use mlflow_api::{Result, Workspace};

use crate::failures::Failures;
use crate::find::Found;
use crate::report::Report;
use crate::store::Retention;

impl Retention {
    /// Removes what was found, runs first and experiments last, after all that an earlier removal has left unfinished. What cannot be
    /// removed stays, and the report says why. About nine requests a run, and one per 25 of its items, by which it costs a write unit or
    /// more each.
    ///
    /// # Errors
    /// Those of the table, after all others were tried. What was not removed then stays as it was, or is removed by the next call.
    pub async fn remove(&self, workspace: &Workspace, found: &Found, report: &dyn Report) -> Result<()> {
        let mut failures = Failures::default();
        failures.note("what was begun", self.resume(report).await)?;
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
