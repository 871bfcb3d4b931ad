//! The conditions of a search of logged models, and the fields of a model that a search can use.

use entities::listing::FirstEntities;
use entities::{ModelItems, ModelLocation, find, model_whole};
use mlflow_api::Result;
use mlflow_api::logged_models::LoggedModel;
use mlflow_api::tracking::LifecycleStage;
use search::{MeasuredPoint, ModelCode, ModelFields, ModelFilter, ModelOrder, ModelText, ModelTime, SortKey};

use super::lifecycle::is_deleted;

/// The conditions that a model has to meet to be on a page, and where the page starts.
#[derive(Clone, Debug)]
pub(super) struct LoggedModelCriteria {
    pub(super) filter: ModelFilter,
    pub(super) order: ModelOrder,
    pub(super) after: Option<SortKey>,
    pub(super) page_size: usize,
    /// Whether the response omits the runs of the models.
    pub(super) hides_runs: bool,
}

impl LoggedModelCriteria {
    /// Checks whether filter or order use metrics.
    pub(super) fn uses_metrics(&self) -> bool {
        self.filter.asks_for_metrics() || self.order.asks_for_metrics()
    }

    /// Adds a model to `top` if it passes the filter and comes after the previous page.
    pub(super) fn add_if_passing(
        &self,
        at: ModelLocation,
        items: ModelItems,
        top: &mut FirstEntities<SortKey, MatchingModel>,
    ) -> Result<()> {
        if is_deleted(&items.model) {
            return Ok(());
        }
        let model = SearchableLoggedModel::of(&at, &items)?;
        if !self.filter.matches(&model) {
            return Ok(());
        }
        let key = self.order.key(&model);
        if self.after.as_ref().is_none_or(|after| key > *after) {
            let bytes = items.size();
            top.add(key, MatchingModel { at, items }, bytes);
        }
        Ok(())
    }
}

/// A model that passes the filter.
pub(super) struct MatchingModel {
    pub(super) at: ModelLocation,
    pub(super) items: ModelItems,
}

/// The fields of a model that a search can use.
pub(super) struct SearchableLoggedModel(LoggedModel);

impl SearchableLoggedModel {
    pub(super) fn of(at: &ModelLocation, items: &ModelItems) -> Result<Self> {
        model_whole(at, items).map(Self)
    }
}

impl ModelFields for SearchableLoggedModel {
    fn text(&self, attribute: ModelText) -> Option<&str> {
        let info = &self.0.info;
        match attribute {
            ModelText::ModelId => Some(&info.model_id),
            ModelText::Name => Some(&info.name),
            ModelText::ModelType => Some(&info.model_type),
            ModelText::SourceRunId => Some(&info.source_run_id),
            ModelText::ArtifactLocation => Some(&info.artifact_uri),
            ModelText::LifecycleStage => Some(LifecycleStage::Active.name()),
            ModelText::StatusMessage => None,
        }
    }

    fn code(&self, attribute: ModelCode) -> i64 {
        match attribute {
            ModelCode::ExperimentId => self.0.info.experiment_id.parse().unwrap_or_default(),
            ModelCode::Status => self.0.info.status.number(),
        }
    }

    fn time(&self, attribute: ModelTime) -> i64 {
        match attribute {
            ModelTime::Created => self.0.info.creation_timestamp_ms,
            ModelTime::Updated => self.0.info.last_updated_timestamp_ms,
        }
    }

    fn param(&self, key: &str) -> Option<&str> {
        find(&self.0.data.params, key)
    }

    fn tag(&self, key: &str) -> Option<&str> {
        find(&self.0.info.tags, key)
    }

    fn points(&self) -> impl Iterator<Item = MeasuredPoint<'_>> {
        self.0.data.metrics.iter().map(|point| MeasuredPoint {
            metric: &point.key,
            value: point.value,
            timestamp: point.timestamp,
            step: point.step,
            run: &point.run_id,
            dataset_name: &point.dataset_name,
            dataset_digest: &point.dataset_digest,
        })
    }
}
