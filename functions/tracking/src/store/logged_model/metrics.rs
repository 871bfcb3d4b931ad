//! Metrics of logged models.
//!
//! A model's metrics document holds, for each metric, the set of its points. Logging adds to the
//! sets. This needs no read, and has no further effect when it is repeated. Responses about a model
//! contain all of its points, so single points never have to be looked up.
//!
//! When a document grows beyond [`MAX_UNSEALED_BYTES`], all of it is **sealed**: its points are
//! written as segments to a separate partition of the model, and then removed from the document. A
//! crash in between leaves points in both places, and readers deduplicate them.
//!
//! MLflow's table rejects a second value of a metric with the run, timestamp and step of an earlier
//! one. Here, both values are stored.

use std::collections::BTreeMap;

use access::Granted;
use entities::attributes::SEGMENTS;
use entities::{ModelLocation, ModelPoint, ModelSeries, metric_attribute, waiting_model_points};
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::{Error, ErrorCode, ModelId, Result};
use table::{Condition, Failure, Item, Update, Write, bytes_set, number};

use crate::store::Store;

/// Size, in bytes, above which a metrics document is sealed. The size is a trade-off: every logged
/// point costs one write unit per KB of the document, but reading a model takes one request less if
/// all its points are in the document. A document of this size holds about 200 points.
pub(super) const MAX_UNSEALED_BYTES: usize = 8 << 10;
/// Maximum number of metrics in one update. An update expression can have up to 4 KB.
const MAX_UPDATE_METRICS: usize = 256;
/// Number of models that are written concurrently.
const CONCURRENCY: usize = 16;

/// A point of a logged model's metric to log.
#[derive(Clone, Debug)]
pub struct LoggedModelPoint {
    /// The model.
    pub model: Granted<ModelLocation>,
    /// Name of the metric.
    pub key: String,
    /// Value. NaN is stored as 0, as in MLflow.
    pub value: f64,
    /// Timestamp, in ms.
    pub timestamp: i64,
    /// Step.
    pub step: i64,
    /// Id of the run that logs the point.
    pub run_id: String,
    /// Name of the dataset that the metric was measured on, or empty.
    pub dataset_name: String,
    /// Digest of that dataset, or empty.
    pub dataset_digest: String,
}

impl Store {
    /// Logs points to one or more logged models, including deleted ones. Takes one request per
    /// model, and two more for the first points of a model, or when the model's points are sealed.
    /// Costs one write unit per KB of the model's metrics document, 5 on average.
    ///
    /// # Errors
    /// Returns `BAD_REQUEST` if a model does not exist, because MLflow reports a violated foreign
    /// key with this code.
    pub async fn logged_model_log_metrics(&self, points: &[LoggedModelPoint]) -> Result<()> {
        let mut by_model: BTreeMap<&Granted<ModelLocation>, ModelSeries> = BTreeMap::new();
        for point in points {
            let series = by_model.entry(&point.model).or_default();
            series.entry(point.key.clone()).or_default().push(point.packed());
        }
        let logged: Vec<_> = by_model.iter().map(|(at, series)| self.model_metrics_add(at, series)).collect();
        stream::iter(logged).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    /// Adds points to a model, and seals its metrics document if the document has become large
    /// enough.
    async fn model_metrics_add(&self, at: &ModelLocation, series: &ModelSeries) -> Result<()> {
        // Large batches become segments immediately. Before the segments are written, the document
        // records that the model has segments, so that readers never miss them.
        let is_bulk = packed_size(series) > MAX_UNSEALED_BYTES || series.len() > MAX_UPDATE_METRICS;
        let changed = |update: Update| {
            if is_bulk { update.set(SEGMENTS, number(1)) } else { with_points(update, series, Update::add) }
        };
        let document = match self.table.update(&changed(Update::new(at.metrics_key()))).await {
            Ok(document) => Some(document),
            Err(Failure::Refused { .. }) => {
                // The update is refused if these are the first points of the model, or if the model
                // does not exist. If another request creates the document first, these points are
                // added to its sets.
                let model_exists = Write::Check(at.key(), Condition::item_exists());
                let writes = [model_exists, Write::Update(changed(Update::upsert(at.metrics_key())))];
                match self.table.transact(&writes).await {
                    Ok(()) => None,
                    Err(Failure::Cancelled(_)) => return Err(missing_model(at.model.as_str())),
                    Err(failure) => return Err(failure.into()),
                }
            }
            Err(failure) => return Err(failure.into()),
        };
        if is_bulk {
            self.table.write_many(at.segments(series), &[]).await?;
        }
        match document {
            Some(document) if document.size() > MAX_UNSEALED_BYTES => self.model_metrics_seal(at, &document).await,
            _ => Ok(()),
        }
    }

    /// Moves the points of a metrics document to segments.
    async fn model_metrics_seal(&self, at: &ModelLocation, document: &Item) -> Result<()> {
        let series = waiting_model_points(document)?;
        self.table.write_many(at.segments(&series), &[]).await?;
        let mut rest: Vec<_> = series.into_iter().collect();
        while !rest.is_empty() {
            let part: ModelSeries = rest.drain(..rest.len().min(MAX_UPDATE_METRICS)).collect();
            let removal = Update::new(at.metrics_key()).set(SEGMENTS, number(1));
            match self.table.apply(&with_points(removal, &part, Update::delete)).await {
                // The write is refused if the model was removed together with its points in the
                // meantime.
                Ok(()) | Err(Failure::Refused { .. }) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(())
    }
}

impl LoggedModelPoint {
    fn packed(&self) -> ModelPoint {
        let named = !self.dataset_name.is_empty() || !self.dataset_digest.is_empty();
        let dataset = named.then(|| (self.dataset_name.clone(), self.dataset_digest.clone()));
        ModelPoint::new(self.timestamp, self.step, self.value, &self.run_id, dataset)
    }
}

/// Adds changes to an update: for each metric, one change to its set of points.
fn with_points(update: Update, series: &ModelSeries, change: fn(Update, String, table::Value) -> Update) -> Update {
    series.iter().fold(update, |update, (metric, points)| {
        let mut packed: Vec<_> = points.iter().map(ModelPoint::pack).collect();
        packed.sort_unstable();
        packed.dedup();
        change(update, metric_attribute(metric), bytes_set(packed))
    })
}

pub(super) fn packed_size(series: &ModelSeries) -> usize {
    series
        .iter()
        .map(|(metric, points)| metric.len() + points.iter().map(|point| point.pack().len()).sum::<usize>())
        .sum()
}

/// Returns the error about a point of a model that does not exist. In MLflow, such a point violates
/// a foreign key.
pub(crate) fn missing_model(model: &str) -> Error {
    Error::new(ErrorCode::BadRequest, ModelId::not_found(model).message)
}
