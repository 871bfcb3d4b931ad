//! Entities that an operator names. All of them are checked before anything is deleted, and the
//! error messages are those of MLflow.

use std::collections::{BTreeMap, HashMap};

use entities::attributes::{STAGE, UPDATED, WORKSPACE};
use entities::{experiment_state, locate_model, locate_run, run_deleted_since, workspace_named};
use key_schema::{Key, rows};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{Error, ExperimentId, ModelId, Result, RunId, Workspace, python};
use table::Item;

use crate::age::DeletionAge;
use crate::deleted_entities::EntitiesToDelete;
use crate::deletion_condition::DeletionCondition;
use crate::store::Retention;

/// IDs as the operator gave them.
#[derive(Clone, Debug, Default)]
pub struct NamedEntities {
    /// IDs of runs.
    pub runs: Vec<String>,
    /// IDs of experiments.
    pub experiments: Vec<String>,
    /// IDs of logged models.
    pub models: Vec<String>,
    /// Whether active runs are accepted too.
    pub even_active: bool,
}

impl NamedEntities {
    /// Checks whether no entity was named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.experiments.is_empty() && self.models.is_empty()
    }
}

impl Retention {
    /// Returns the named entities if all of them are deleted and, if `age` is given, were deleted
    /// at least that long ago. Sends one request for each entity, and one more for a run or a
    /// logged model whose ID this server did not generate.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` for an entity that does not exist, and
    /// `INVALID_PARAMETER_VALUE` for one that is not deleted or not old enough.
    pub async fn named(&self, named: &NamedEntities, age: Option<&DeletionAge>) -> Result<EntitiesToDelete> {
        let which = DeletionCondition::Deleted { before: age.map(DeletionAge::before) };
        let only = age.map(DeletionAge::as_str).unwrap_or_default();
        let of_runs = if named.even_active { DeletionCondition::All } else { which };
        let elsewhere: BTreeMap<_, _> =
            self.experiments_named(&named.experiments, which, only).await?.into_iter().collect();
        Ok(EntitiesToDelete {
            experiments: elsewhere.keys().copied().collect(),
            elsewhere,
            runs: self.runs_named(&named.runs, of_runs, only).await?,
            models: self.models_named(&named.models, which, only).await?,
            which,
            of_runs,
        })
    }

    async fn experiments_named(
        &self,
        ids: &[String],
        which: DeletionCondition,
        only: &str,
    ) -> Result<Vec<(ExperimentId, Workspace)>> {
        let ids = ids.iter().map(|id| ExperimentId::parse(id)).collect::<Result<Vec<_>>>()?;
        let keys: Vec<_> = ids.iter().map(rows::Experiment::key).collect();
        let items = self.table.get_many(&keys).await?;
        let (mut active, mut young) = (Vec::new(), Vec::new());
        for (id, key) in ids.iter().zip(&keys) {
            let item = items.get(key).ok_or_else(|| id.not_found())?;
            if experiment_state(item).stage != LifecycleStage::Deleted {
                active.push(python::repr(&id.to_string()));
            } else if !which.contains(Some(item.get(UPDATED).unwrap_or(i64::MAX))) {
                young.push(python::repr(&id.to_string()));
            }
        }
        if !active.is_empty() {
            return Err(Error::invalid(format!(
                "Experiments [{}] are not in the deleted lifecycle stage. Only experiments in the deleted lifecycle stage can be hard-deleted.",
                active.join(", ")
            )));
        }
        if !young.is_empty() {
            return Err(Error::invalid(format!(
                "Experiments [{}] are not older than the required age. Only experiments older than {only} can be deleted.",
                young.join(", ")
            )));
        }
        let workspace = |key| workspace_named(items.get(key).and_then(|item| item.get(WORKSPACE)));
        ids.iter().zip(&keys).map(|(id, key)| Ok((*id, workspace(key).map_err(Error::internal)?))).collect()
    }

    async fn runs_named(
        &self,
        ids: &[String],
        which: DeletionCondition,
        only: &str,
    ) -> Result<BTreeMap<ExperimentId, Vec<RunId>>> {
        let mut found = BTreeMap::<_, Vec<_>>::new();
        for id in ids {
            let at = locate_run(&self.table, id).await?;
            let experiment = rows::Experiment::key(&at.experiment);
            let items: HashMap<Key, Item> = self.table.get_many(&[at.key(), experiment.clone()]).await?;
            let (Some(run), Some(experiment)) = (items.get(&at.key()), items.get(&experiment)) else {
                return Err(at.not_found());
            };
            let since = run_deleted_since(run, experiment);
            if since.is_none() && which != DeletionCondition::All {
                return Err(Error::invalid(format!(
                    "Run {id} is not in `deleted` lifecycle stage. Only runs in `deleted` lifecycle stage can be deleted."
                )));
            }
            if !which.contains(since) {
                return Err(Error::invalid(format!(
                    "Run {id} is not older than the required age. Only runs older than {only} can be deleted."
                )));
            }
            found.entry(at.experiment).or_default().push(at.run);
        }
        Ok(found)
    }

    async fn models_named(
        &self,
        ids: &[String],
        which: DeletionCondition,
        only: &str,
    ) -> Result<BTreeMap<ExperimentId, Vec<ModelId>>> {
        let mut found = BTreeMap::<_, Vec<_>>::new();
        for id in ids {
            let at = locate_model(&self.table, id).await?.ok_or_else(|| ModelId::not_found(id))?;
            let model = self.table.get(&at.key()).await?.ok_or_else(|| at.not_found())?;
            if model.get(STAGE).unwrap_or_default() != LifecycleStage::Deleted {
                return Err(Error::invalid(format!(
                    "Logged model {id} is not in `deleted` lifecycle stage. \
                     Only logged models in `deleted` lifecycle stage can be deleted."
                )));
            }
            if !which.contains(Some(model.get(UPDATED).unwrap_or(i64::MAX))) {
                return Err(Error::invalid(format!(
                    "Logged model {id} is not older than the required age. \
                     Only logged models older than {only} can be deleted."
                )));
            }
            found.entry(at.experiment).or_default().push(at.model);
        }
        Ok(found)
    }
}
