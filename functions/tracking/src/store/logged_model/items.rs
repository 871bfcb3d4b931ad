//! The items of a logged model.

use entities::attributes::{
    ARTIFACT_URI, CREATED, MODEL_STATUS, MODEL_TYPE, NAME, SEGMENTS, SOURCE_RUN, STAGE, UPDATED,
};
use entities::documents::LoggedModelDocument;
use entities::{ModelLocation, ModelPoint, ModelSeries, metric_attribute};
use key_schema::index::{LoggedModelLocation, LoggedModelsByStage, LoggedModelsOfRun};
use key_schema::{Descending, Field, IndexKey, Stage};
use mlflow_api::logged_models::ModelStatus;
use mlflow_api::tracking::LifecycleStage;
use table::{Item, bytes_set, number, text};

use super::metrics::{MAX_UNSEALED_BYTES, packed_size};

/// A logged model to store, without its metrics.
#[derive(Clone, Debug)]
pub struct StoredLoggedModel<'a> {
    /// Experiment and id.
    pub at: &'a ModelLocation,
    /// Name.
    pub name: &'a str,
    /// Type, as given by the client.
    pub model_type: &'a str,
    /// Id of the run that created the model, or empty.
    pub source_run: &'a str,
    /// Status.
    pub status: ModelStatus,
    /// Lifecycle stage.
    pub stage: LifecycleStage,
    /// When the model was created, in ms.
    pub created: i64,
    /// When the model was last changed, in ms.
    pub updated: i64,
    /// Location of the model's artifacts.
    pub artifact_uri: &'a str,
    /// Params. Each key may occur only once.
    pub params: &'a [(String, String)],
    /// Tags. Each key may occur only once.
    pub tags: &'a [(String, String)],
}

impl StoredLoggedModel<'_> {
    /// Returns the model's document, and rows of params and tags that are too large for it.
    #[must_use]
    pub fn items(&self) -> (Item, Vec<Item>) {
        let mut item = Item::new(self.at.key())
            .with(NAME, text(self.name))
            .with(MODEL_TYPE, text(self.model_type))
            .with(SOURCE_RUN, text(self.source_run))
            .with(MODEL_STATUS, number(self.status.number()))
            .with(CREATED, number(self.created))
            .with(UPDATED, number(self.updated))
            .with(ARTIFACT_URI, text(self.artifact_uri));
        let stage = match self.stage {
            LifecycleStage::Active => Stage::Active,
            LifecycleStage::Deleted => {
                item = item.with(STAGE, text(LifecycleStage::Deleted.name()));
                Stage::Deleted { version: 0 }
            }
        };
        let places = index_keys(self.at, self.created, self.source_run, stage);
        item = places.into_iter().fold(item, Item::indexed);
        if self.at.model.experiment().is_none() {
            item = item.indexed(LoggedModelLocation::key(&self.at.model, &self.at.experiment));
        }
        let document = LoggedModelDocument { at: self.at };
        entities::documents::new_document_with_params(item, self.params, self.tags, &document)
    }
}

/// Returns the items of all points of a new model: its metrics document, if it has any points, and
/// segments, if they are too many for the document. Segments have to be written first.
#[must_use]
pub fn logged_model_metric_items(at: &ModelLocation, series: &ModelSeries) -> Vec<Item> {
    if series.values().all(Vec::is_empty) {
        return Vec::new();
    }
    let document = Item::new(at.metrics_key());
    if packed_size(series) > MAX_UNSEALED_BYTES {
        let mut items = at.segments(series);
        items.push(document.with(SEGMENTS, number(1)));
        return items;
    }
    let with_points = |item: Item, (metric, points): (&String, &Vec<ModelPoint>)| {
        let mut packed: Vec<_> = points.iter().map(ModelPoint::pack).collect();
        packed.sort_unstable();
        packed.dedup();
        item.with(metric_attribute(metric), bytes_set(packed))
    };
    vec![series.iter().filter(|(_, points)| !points.is_empty()).fold(document, with_points)]
}

/// Returns a model's index keys: by time, and by the run that created it, if there is one.
pub(super) fn index_keys(at: &ModelLocation, created: i64, run: &str, stage: Stage) -> Vec<IndexKey> {
    let created = Descending(created);
    let mut places = vec![LoggedModelsByStage::key(&stage, &created, &at.model)];
    if !run.is_empty() {
        places.push(LoggedModelsOfRun::key(&stage, &Field::from(run), &created, &at.model));
    }
    places
}
