//! Finds entities that were deleted long enough ago.

use std::collections::{BTreeMap, HashSet};

use entities::attributes::UPDATED;
use entities::{experiment_state, read_all, run_deleted_since};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::{ExperimentsByStage, RunsByStage};
use key_schema::{Key, KeyRange, Name, Stage, ranges, rows};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, ModelId, Result, RunId, Workspace};
use table::{Item, Query};

use crate::deletion_condition::DeletionCondition;
use crate::report::RemovedEntity;
use crate::store::Retention;

/// Number of experiments that are searched concurrently.
const CONCURRENCY: usize = 8;

/// The entities to delete permanently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntitiesToDelete {
    /// Individually deleted runs, by experiment.
    pub runs: BTreeMap<ExperimentId, Vec<RunId>>,
    /// Logged models, by experiment.
    pub models: BTreeMap<ExperimentId, Vec<ModelId>>,
    /// Experiments, which are deleted with all their contents.
    pub experiments: Vec<ExperimentId>,
    /// Workspaces of the experiments that an operator has named. They may differ from the workspace
    /// that is passed to the removal.
    pub(crate) elsewhere: BTreeMap<ExperimentId, Workspace>,
    /// Condition that an experiment or a logged model must still meet at the time when it is
    /// deleted.
    pub(crate) which: DeletionCondition,
    /// Condition that a run must still meet at the time when it is deleted.
    pub(crate) of_runs: DeletionCondition,
}

impl EntitiesToDelete {
    /// Returns the entities to delete. Runs and models that are only deleted as part of an
    /// experiment are not included.
    pub fn entities(&self) -> impl Iterator<Item = RemovedEntity> {
        let runs = self.runs.values().flatten().cloned().map(RemovedEntity::Run);
        let models = self.models.values().flatten().cloned().map(RemovedEntity::LoggedModel);
        runs.chain(models).chain(self.experiments.iter().copied().map(RemovedEntity::Experiment))
    }
}

impl Retention {
    /// Returns the deleted entities of a workspace. With `before`, returns only those that were
    /// deleted before that time, in ms since 1970. Sends one request for the list of experiments,
    /// and three for each experiment. With `before`, each deleted entity costs at least one
    /// additional read unit.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn deleted(&self, workspace: &Workspace, before: Option<i64>) -> Result<EntitiesToDelete> {
        let which = DeletionCondition::Deleted { before };
        let experiments = self.experiments_deleted(workspace, which).await?;
        let going: HashSet<_> = experiments.iter().copied().collect();
        let others = self.index.experiments(workspace).await?.into_iter().filter(|id| !going.contains(id));
        let others: Vec<_> = others.map(|experiment| self.deleted_in(experiment, which)).collect();
        let mut others = stream::iter(others).buffered(CONCURRENCY);
        let mut found = EntitiesToDelete { experiments, which, of_runs: which, ..EntitiesToDelete::default() };
        while let Some((experiment, runs, models)) = others.try_next().await? {
            if !runs.is_empty() {
                found.runs.insert(experiment, runs);
            }
            if !models.is_empty() {
                found.models.insert(experiment, models);
            }
        }
        Ok(found)
    }

    /// Returns the entities of a workspace that was deleted with its contents. No request can refer
    /// to these entities any more, so all of them are to be deleted.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn removed_with(&self, workspace: &Workspace) -> Result<EntitiesToDelete> {
        let experiments = self.index.experiments(workspace).await?;
        Ok(EntitiesToDelete {
            experiments,
            which: DeletionCondition::All,
            of_runs: DeletionCondition::All,
            ..EntitiesToDelete::default()
        })
    }

    async fn experiments_deleted(&self, workspace: &Workspace, which: DeletionCondition) -> Result<Vec<ExperimentId>> {
        let range = ranges::experiments_deleted(&Name::from(workspace.as_str()));
        let listed = self.table.query(Query::of(range)).await?;
        let listed = read_all(&listed, "the name of an experiment", Item::entry::<ExperimentsByStage>)?;
        let keys: Vec<_> = listed.iter().map(|listed| rows::Experiment::key(&listed.experiment)).collect();
        let items = self.table.get_many(&keys).await?;
        let is_old = |key: &Key| items.get(key).is_some_and(|item| which.contains(item.get(UPDATED)));
        let old = listed.into_iter().zip(keys).filter(|(_, key)| is_old(key));
        Ok(old.map(|(listed, _)| listed.experiment).collect())
    }

    /// Returns the deleted runs and logged models of an experiment that is not itself deleted. The
    /// runs of a deleted experiment are deleted together with it when it is old enough.
    async fn deleted_in(
        &self,
        experiment: ExperimentId,
        which: DeletionCondition,
    ) -> Result<(ExperimentId, Vec<RunId>, Vec<ModelId>)> {
        let mut runs = Vec::new();
        let item = self.table.get(&rows::Experiment::key(&experiment)).await?;
        if let Some(item) = item {
            let state = experiment_state(&item);
            // Individually deleted runs are selected by the experiment's current stage version. A
            // run that was deleted before the experiment was last restored is active again.
            let range = RunsByStage::all(&experiment).stage(&Stage::Deleted { version: state.version });
            if state.stage == LifecycleStage::Active {
                runs = self.old(range.range(), which, |run| run_deleted_since(run, &item)).await?;
            }
        }
        let models = ranges::logged_models_deleted(&experiment);
        let models = self.old(models, which, |model| model.get(UPDATED)).await?;
        let runs = runs.iter().filter_map(rows::Run::parse).map(|row| row.run).collect();
        let models = models.iter().filter_map(rows::LoggedModel::parse).map(|row| row.model).collect();
        Ok((experiment, runs, models))
    }

    /// Returns, page by page, the keys of those items in a range that were deleted long enough ago.
    /// Reads the items only if there is a minimum age.
    async fn old(
        &self,
        range: KeyRange,
        which: DeletionCondition,
        since: impl Fn(&Item) -> Option<i64>,
    ) -> Result<Vec<Key>> {
        let query = Query::of(range).for_removal();
        let is_any = which == DeletionCondition::default();
        let mut query = if is_any { query } else { query.whole() };
        let mut keys = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            let is_old = |item: &&Item| is_any || which.contains(since(item));
            keys.extend(page.items.iter().filter(is_old).filter_map(Item::key));
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(keys),
            }
        }
    }
}
