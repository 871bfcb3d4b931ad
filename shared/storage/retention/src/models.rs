//! Permanently deletes logged models. A logged model cannot be restored, so it needs no second
//! check after it was found deleted.

use entities::ModelLocation;
use entities::attributes::{ARTIFACT_URI, STAGE, UPDATED};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, ModelId, Result};
use table::Item;

use crate::deletion_condition::DeletionCondition;
use crate::report::{RemovalReport, RemovedEntity};
use crate::store::Retention;

/// Number of models whose documents are read, and whose `REMOVAL` rows are written, in one request.
const BATCH_SIZE: usize = 25;
/// Number of models whose artifacts and rows are deleted concurrently.
const CONCURRENCY: usize = 8;

/// Returns the time in ms since which a model has been deleted, or `None` if it is not deleted.
fn deleted_since(model: &Item) -> Option<i64> {
    let is_deleted = model.get(STAGE).unwrap_or_default() == LifecycleStage::Deleted;
    is_deleted.then(|| model.get(UPDATED).unwrap_or(i64::MAX))
}

impl Retention {
    /// Deletes logged models of an experiment. Returns the number of models that are kept.
    pub(crate) async fn remove_models(
        &self,
        experiment: ExperimentId,
        models: &[ModelId],
        which: DeletionCondition,
        report: &dyn RemovalReport,
    ) -> Result<usize> {
        let mut kept = 0;
        for models in models.chunks(BATCH_SIZE) {
            let places: Vec<_> =
                models.iter().map(|model| ModelLocation { experiment, model: model.clone() }).collect();
            kept += self.remove_models_together(&places, which, report).await?;
        }
        Ok(kept)
    }

    async fn remove_models_together(
        &self,
        models: &[ModelLocation],
        which: DeletionCondition,
        report: &dyn RemovalReport,
    ) -> Result<usize> {
        let row = |at: &ModelLocation| rows::LoggedModelRemoval::key(&at.experiment, &at.model);
        let claim = self.claim(&models.iter().map(row).collect::<Vec<_>>()).await?;
        let items = self.table.get_many(&models.iter().map(ModelLocation::key).collect::<Vec<_>>()).await?;
        let items = &items;
        let outcomes = models.iter().map(|at| async move {
            let outcome = match items.get(&at.key()) {
                // An earlier removal has already deleted the document.
                None => Ok(()),
                Some(model) if which.contains(deleted_since(model)) => {
                    self.remove_artifacts(model.get(ARTIFACT_URI).unwrap_or_default(), at.model.as_str()).await
                }
                Some(_) => Err("it is not deleted".to_owned()),
            };
            (at, outcome)
        });
        let outcomes: Vec<_> = stream::iter(outcomes.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).collect().await;
        let (gone, kept): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, outcome)| outcome.is_ok());
        let gone: Vec<_> = gone.into_iter().map(|(at, _)| at).collect();
        self.table.write_many(Vec::new(), &gone.iter().map(|at| at.key()).collect::<Vec<_>>()).await?;
        let cleared = gone.iter().map(|at| self.index.clear_up_model(at));
        stream::iter(cleared.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
        self.finish(&gone.iter().map(|at| row(at)).collect::<Vec<_>>()).await?;
        for at in gone {
            report.removed(RemovedEntity::LoggedModel(at.model.clone()));
        }
        let count = kept.len();
        for (at, outcome) in kept {
            self.release(&claim, row(at)).await?;
            report.kept(RemovedEntity::LoggedModel(at.model.clone()), &outcome.err().unwrap_or_default());
        }
        Ok(count)
    }
}
