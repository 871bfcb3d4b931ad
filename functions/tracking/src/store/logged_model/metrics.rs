//! Metrics of logged models.
//!
//! A model's metrics document holds, for each metric, the set of its points. Logging adds to the
//! sets. So it needs no knowledge of their content, and may be repeated. Every point is part of
//! every answer about the model, so none has to be found again on its own. A document that has
//! grown beyond [`SEAL_AT`] is **sealed** as a whole. Its points are written as segments in a
//! partition of the model's own, and then taken out of the document. A crash in between leaves
//! points in both, and readers count each once.
//!
//! Where MLflow's table refuses a second value of a metric at the same time and step of one run,
//! both are kept here.

use std::collections::BTreeMap;

use access::Granted;
use entities::attributes::SEGMENTS;
use entities::{ModelLocation, ModelPoint, ModelSeries, metric_attribute, waiting_model_points};
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::{Error, ErrorCode, ModelId, Result};
use table::{Condition, Failure, Item, Update, Write, bytes_set, number};

use crate::store::Store;

/// Size, in bytes, from which on a metrics document is sealed. Every logged point costs a write
/// unit per KB of it. A model whose points all wait in it is read with one request less. It holds
/// some 200 points.
const SEAL_AT: usize = 8 << 10;
/// Metrics that one update names: an expression has 4 KB.
const UPDATE_METRICS: usize = 256;
/// Models written at a time.
const AT_ONCE: usize = 16;

/// A point of a logged model's metric, as it was logged.
#[derive(Clone, Debug)]
pub struct ModelMetric {
    /// The model.
    pub model: Granted<ModelLocation>,
    /// Name of the metric.
    pub key: String,
    /// Value; NaN is kept as 0, as in MLflow.
    pub value: f64,
    /// In ms.
    pub timestamp: i64,
    /// Step.
    pub step: i64,
    /// The run that logs it.
    pub run_id: String,
    /// Name of the dataset it was measured on; empty for none.
    pub dataset_name: String,
    /// Digest of that dataset; empty for none.
    pub dataset_digest: String,
}

impl Store {
    /// Logs points to one or several logged models, deleted ones included. One request a model; two more for the first points
    /// of a model and where points are sealed. A write unit per KB of the model's metrics document, 5 in the mean.
    ///
    /// # Errors
    /// `BAD_REQUEST` for a model that is not there, like a foreign key of MLflow's table.
    pub async fn logged_model_log_metrics(&self, points: &[ModelMetric]) -> Result<()> {
        let mut by_model: BTreeMap<&Granted<ModelLocation>, ModelSeries> = BTreeMap::new();
        for point in points {
            let series = by_model.entry(&point.model).or_default();
            series.entry(point.key.clone()).or_default().push(point.packed());
        }
        let logged: Vec<_> = by_model.iter().map(|(at, series)| self.model_metrics_add(at, series)).collect();
        stream::iter(logged).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    /// Adds points to a model, and seals its metrics document if that is large enough.
    async fn model_metrics_add(&self, at: &ModelLocation, series: &ModelSeries) -> Result<()> {
        // Much at once goes straight into segments; before they are written, the document says that there are some.
        let is_bulk = packed_size(series) > SEAL_AT || series.len() > UPDATE_METRICS;
        let changed = |update: Update| {
            if is_bulk { update.set(SEGMENTS, number(1)) } else { with_points(update, series, Update::add) }
        };
        let document = match self.table.update(&changed(Update::new(at.metrics_key()))).await {
            Ok(document) => Some(document),
            Err(Failure::Refused { .. }) => {
                // These are the first points of the model, or there is no model. If another request
                // makes the document first, these points are added to its sets.
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
            Some(document) if document.size() > SEAL_AT => self.model_metrics_seal(at, &document).await,
            _ => Ok(()),
        }
    }

    /// Moves the points of a metrics document into segments.
    async fn model_metrics_seal(&self, at: &ModelLocation, document: &Item) -> Result<()> {
        let series = waiting_model_points(document)?;
        self.table.write_many(at.segments(&series), &[]).await?;
        let mut rest: Vec<_> = series.into_iter().collect();
        while !rest.is_empty() {
            let part: ModelSeries = rest.drain(..rest.len().min(UPDATE_METRICS)).collect();
            let removal = Update::new(at.metrics_key()).set(SEGMENTS, number(1));
            match self.table.apply(&with_points(removal, &part, Update::delete)).await {
                // The model is gone, its points with it.
                Ok(()) | Err(Failure::Refused { .. }) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(())
    }
}

impl ModelMetric {
    fn packed(&self) -> ModelPoint {
        let named = !self.dataset_name.is_empty() || !self.dataset_digest.is_empty();
        let dataset = named.then(|| (self.dataset_name.clone(), self.dataset_digest.clone()));
        ModelPoint::new(self.timestamp, self.step, self.value, &self.run_id, dataset)
    }
}

/// An update with one change of a set for each metric.
fn with_points(update: Update, series: &ModelSeries, change: fn(Update, String, table::Value) -> Update) -> Update {
    series.iter().fold(update, |update, (metric, points)| {
        let mut packed: Vec<_> = points.iter().map(ModelPoint::pack).collect();
        packed.sort_unstable();
        packed.dedup();
        change(update, metric_attribute(metric), bytes_set(packed))
    })
}

fn packed_size(series: &ModelSeries) -> usize {
    series
        .iter()
        .map(|(metric, points)| metric.len() + points.iter().map(|point| point.pack().len()).sum::<usize>())
        .sum()
}

/// To MLflow, a point of a model that is not there breaks a constraint of its table.
pub(crate) fn missing_model(model: &str) -> Error {
    Error::new(ErrorCode::BadRequest, ModelId::not_found(model).message)
}
