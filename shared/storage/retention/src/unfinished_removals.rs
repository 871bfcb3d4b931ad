//! Continues removals that were interrupted.

use std::collections::{BTreeMap, HashSet};

use entities::attributes::WORKSPACE;
use entities::{read_all, workspace_named};
use key_schema::{Key, KeyRange, rows};
use mlflow_api::Result;
use table::{Item, Query};

use crate::deletion_condition::DeletionCondition;
use crate::failures::RemovalFailures;
use crate::report::RemovalReport;
use crate::store::Retention;

impl Retention {
    /// Finishes removals that another process began. That process may have been stopped. If it is
    /// still running, working concurrently is harmless. Sends three requests if there are no
    /// unfinished removals.
    ///
    /// # Errors
    /// Returns failures of the table, after all other removals have been tried.
    pub async fn resume(&self, report: &dyn RemovalReport) -> Result<()> {
        let experiments = self.table.query(Query::of(rows::ExperimentRemoval::all())).await?;
        let experiments = read_all(&experiments, "the removal of an experiment", |item| {
            let workspace = workspace_named(item.get(WORKSPACE)).ok()?;
            Some((rows::ExperimentRemoval::parse(&item.key()?)?.experiment, workspace))
        })?;
        let mut failures = RemovalFailures::default();
        let mut runs = BTreeMap::<_, Vec<_>>::new();
        for row in self.begun(rows::RunRemoval::all().range(), rows::RunRemoval::parse).await? {
            runs.entry(row.experiment).or_default().push(row.run);
        }
        for (experiment, runs) in runs {
            let removed = self.remove_runs(experiment, &runs, DeletionCondition::default(), report).await;
            failures.note(format_args!("runs of experiment {experiment}"), removed.map(drop))?;
        }
        let going: HashSet<_> = experiments.iter().map(|(experiment, _)| *experiment).collect();
        let mut models = BTreeMap::<_, Vec<_>>::new();
        for row in self.begun(rows::LoggedModelRemoval::all().range(), rows::LoggedModelRemoval::parse).await? {
            models.entry(row.experiment).or_default().push(row.model);
        }
        for (experiment, models) in models {
            let which = if going.contains(&experiment) { DeletionCondition::All } else { DeletionCondition::default() };
            let removed = self.remove_models(experiment, &models, which, report).await;
            failures.note(format_args!("logged models of experiment {experiment}"), removed.map(drop))?;
        }
        for (experiment, workspace) in experiments {
            // In a workspace that is being removed with its contents, experiments were not deleted
            // individually. They are removed unconditionally.
            let which = if workspace.is_for_removal() { DeletionCondition::All } else { DeletionCondition::default() };
            let removed = self.remove_experiment(&workspace, experiment, which, report).await;
            failures.note(format_args!("experiment {experiment}"), removed)?;
        }
        failures.finish()
    }

    async fn begun<Row>(&self, range: KeyRange, parse: impl Fn(&Key) -> Option<Row>) -> Result<Vec<Row>> {
        let items = self.table.query(Query::of(range)).await?;
        Ok(items.iter().filter_map(Item::key).filter_map(|key| parse(&key)).collect())
    }
}
