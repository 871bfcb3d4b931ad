//! Permanently deletes an experiment with all its runs, logged models and traces, including those
//! that were not themselves deleted.

use entities::attributes::{EXPERIMENT, NAME, STAGE_VERSION, UPDATED};
use entities::experiments::forget_settings;
use entities::{experiment_state, in_workspace, read_all};
use key_schema::index::{LoggedModelsByStage, RunsByTime};
use key_schema::rows;
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, Result, Workspace};
use table::{Condition, Failure, Item, Query, Write, text};

use crate::deletion_condition::DeletionCondition;
use crate::report::{RemovalReport, RemovedEntity};
use crate::store::Retention;

impl Retention {
    /// Deletes an experiment if it meets the condition `which`. The experiment is kept if one of
    /// its runs or models is kept, for example a run that has been individually restored since.
    pub(crate) async fn remove_experiment(
        &self,
        workspace: &Workspace,
        experiment: ExperimentId,
        which: DeletionCondition,
        report: &dyn RemovalReport,
    ) -> Result<()> {
        let row = rows::ExperimentRemoval::key(&experiment);
        let claim = self.claim_with(vec![in_workspace(Item::new(row.clone()), workspace)]).await?;
        match self.remove_claimed(workspace, experiment, which, report).await? {
            None => {
                self.finish(&[row]).await?;
                report.removed(RemovedEntity::Experiment(experiment));
            }
            Some(why) => {
                self.release(&claim, row).await?;
                report.kept(RemovedEntity::Experiment(experiment), &why);
            }
        }
        Ok(())
    }

    /// Deletes an experiment whose removal has been claimed. Returns the reason if the experiment
    /// is kept.
    async fn remove_claimed(
        &self,
        workspace: &Workspace,
        experiment: ExperimentId,
        which: DeletionCondition,
        report: &dyn RemovalReport,
    ) -> Result<Option<String>> {
        let key = rows::Experiment::key(&experiment);
        let mut name = String::new();
        // If the item is missing, an earlier removal has already deleted it.
        if let Some(item) = self.table.get(&key).await? {
            let is_deleted = experiment_state(&item).stage == LifecycleStage::Deleted;
            if !which.contains(is_deleted.then(|| item.get(UPDATED).unwrap_or(i64::MAX))) {
                return Ok(Some("it was restored, or deleted again".to_owned()));
            }
            if let kept @ 1.. = self.remove_all_runs(experiment, which, report).await? {
                return Ok(Some(format!("{kept} of its runs could not be deleted")));
            }
            if let kept @ 1.. = self.remove_all_models(experiment, report).await? {
                return Ok(Some(format!("{kept} of its logged models could not be deleted")));
            }
            if let kept @ 1.. = self.remove_all_traces(experiment).await? {
                return Ok(Some(format!("{kept} blocks of its traces cannot be read")));
            }
            self.remove_trace_files_of(experiment, &item, report).await?;
            item.get(NAME).unwrap_or_default().clone_into(&mut name);
            let name_row = rows::ExperimentName::key(&workspace.as_str().into(), &name.as_str().into());
            let version = item.value(STAGE_VERSION).cloned();
            let unchanged =
                version.map_or(Condition::Always, |version| Condition::Equals(STAGE_VERSION.into(), version));
            let is_its = Condition::Equals(EXPERIMENT.into(), text(experiment.to_string()));
            match self.table.transact(&[Write::Delete(key, unchanged), Write::Delete(name_row, is_its)]).await {
                Ok(()) => {}
                Err(Failure::Cancelled(_)) => return Ok(Some("it was changed in the meantime".to_owned())),
                Err(failure) => return Err(failure.into()),
            }
        }
        // Settings apply as long as the experiment exists, so they are deleted after it.
        forget_settings(&self.table, experiment).await?;
        self.index.clear_up_experiment(experiment, workspace, &name).await?;
        Ok(None)
    }

    /// Deletes all runs, page by page. Returns the number of runs that are kept.
    async fn remove_all_runs(
        &self,
        experiment: ExperimentId,
        which: DeletionCondition,
        report: &dyn RemovalReport,
    ) -> Result<usize> {
        let mut query = Query::of(RunsByTime::all(&experiment));
        let mut kept = 0;
        loop {
            let page = self.table.query_page(&query).await?;
            let runs = read_all(&page.items, "a place in the list of runs", Item::entry::<RunsByTime>)?;
            let runs: Vec<_> = runs.into_iter().map(|listed| listed.run).collect();
            kept += self.remove_runs(experiment, &runs, which, report).await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(kept),
            }
        }
    }

    /// Deletes all logged models, page by page. Returns the number of models that are kept.
    async fn remove_all_models(&self, experiment: ExperimentId, report: &dyn RemovalReport) -> Result<usize> {
        let mut query = Query::of(LoggedModelsByStage::all(&experiment));
        let mut kept = 0;
        loop {
            let page = self.table.query_page(&query).await?;
            let models =
                read_all(&page.items, "a place in a list of logged models", Item::entry::<LoggedModelsByStage>)?;
            let models: Vec<_> = models.into_iter().map(|listed| listed.model).collect();
            kept += self.remove_models(experiment, &models, DeletionCondition::All, report).await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(kept),
            }
        }
    }
}
