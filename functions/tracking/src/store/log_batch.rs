//! Logging of metrics, params and tags in batches, and of single metrics.

use std::collections::{BTreeSet, HashMap};

use access::Granted;
use entities::documents::{Document, DocumentChange};
use entities::journal::Series;
use entities::points::Point;
use entities::{ModelLocation, RunLocation};
use mlflow_api::{ModelId, Result};

use crate::store::Store;
use crate::store::logged_model::{LoggedModelPoint, missing_model};
use crate::store::run::RunDocument;
use crate::store::run::add_tag;

/// A metric point to log.
#[derive(Clone, Debug, Default)]
pub struct LoggedMetric {
    /// Name of the metric.
    pub key: String,
    /// The value.
    pub value: f64,
    /// Timestamp, in ms.
    pub timestamp: i64,
    /// The step.
    pub step: i64,
    /// The logged model that the metric also belongs to, if any.
    pub model: Option<MeasuredModel>,
}

/// The logged model that a metric belongs to.
#[derive(Clone, Debug)]
pub struct MeasuredModel {
    /// Id of the model.
    pub model: ModelId,
    /// Name of the dataset that the metric was measured on, or empty.
    pub dataset_name: String,
    /// Digest of the dataset that the metric was measured on, or empty.
    pub dataset_digest: String,
}

/// The logged models that a call names, by id. Models that do not exist are missing from the map.
pub type ModelLocations = HashMap<ModelId, Granted<ModelLocation>>;

/// A batch of data to log.
#[derive(Clone, Debug, Default)]
pub struct LogBatchData {
    /// Metrics.
    pub metrics: Vec<LoggedMetric>,
    /// Params.
    pub params: Vec<(String, String)>,
    /// Tags.
    pub tags: Vec<(String, String)>,
}

impl Store {
    /// Logs one point of a metric. Takes one request and one write unit. A call that starts a run's
    /// journal takes two requests. One more request is needed if the lease on the run or its
    /// experiment has expired, and two more if the metric belongs to a logged model. The first
    /// calls of a run write to the run's document instead of the journal.
    pub async fn run_log_metric(
        &self,
        at: &Granted<RunLocation>,
        metric: &LoggedMetric,
        models: &ModelLocations,
    ) -> Result<()> {
        let (experiment, run) = self.run_to_log(at).await?;
        let document = RunDocument { at, experiment: &experiment, single_param: false };
        let metrics = std::slice::from_ref(metric);
        let of_models = metrics_of_models(at, metrics, models)?;
        self.check_models(&document, &of_models).await?;
        self.metrics_log(&document, &run, series(metrics), DocumentChange::default()).await?;
        self.logged_model_log_metrics(&of_models).await
    }

    /// Logs a batch: first params and tags, then metrics. As long as the run's document has room
    /// for the points, the whole batch is a single update. Params and tags are written atomically,
    /// unless more than 99 of them are too large for the document. Logging a batch twice has the
    /// same effect as logging it once.
    pub async fn run_log_batch(
        &self,
        at: &Granted<RunLocation>,
        batch: LogBatchData,
        models: &ModelLocations,
    ) -> Result<()> {
        if batch.metrics.is_empty() {
            return self.run_log_texts(at, batch).await;
        }
        let (experiment, run) = self.run_to_log(at).await?;
        let document = RunDocument { at, experiment: &experiment, single_param: false };
        let of_models = metrics_of_models(at, &batch.metrics, models)?;
        self.check_models(&document, &of_models).await?;
        let change = texts_change(batch.params, batch.tags);
        self.metrics_log(&document, &run, series(&batch.metrics), change).await?;
        self.logged_model_log_metrics(&of_models).await
    }

    /// Logs a batch without metrics.
    async fn run_log_texts(&self, at: &RunLocation, batch: LogBatchData) -> Result<()> {
        let experiment = self.run_experiment(at).await?;
        let document = RunDocument { at, experiment: &experiment, single_param: false };
        let change = texts_change(batch.params, batch.tags);
        if change.params.is_empty() && change.tags.is_empty() && change.set.is_empty() {
            // The batch writes nothing, but the run still has to be checked.
            return document.check(self.table.get(&at.key()).await?.as_ref());
        }
        entities::documents::change(&self.table, &document, change).await?;
        Ok(())
    }

    /// Checks that the run can be written to and that all logged models of the metrics exist,
    /// before anything is written. Takes one request, or none if no metric belongs to a logged
    /// model.
    async fn check_models(&self, document: &RunDocument<'_>, metrics: &[LoggedModelPoint]) -> Result<()> {
        if metrics.is_empty() {
            return Ok(());
        }
        let models: BTreeSet<_> = metrics.iter().map(|metric| &metric.model).collect();
        let keys: Vec<_> = models.iter().map(|at| at.key()).chain([document.key()]).collect();
        let found = self.table.get_many(&keys).await?;
        document.check(found.get(&document.key()))?;
        match models.iter().find(|at| !found.contains_key(&at.key())) {
            Some(at) => Err(missing_model(at.model.as_str())),
            None => Ok(()),
        }
    }
}

/// Returns the change that logs these params and tags.
fn texts_change(params: Vec<(String, String)>, tags: Vec<(String, String)>) -> DocumentChange {
    let mut change = DocumentChange { params, ..DocumentChange::default() };
    for (key, value) in tags {
        add_tag(&mut change, &key, value);
    }
    change
}

/// Returns the metrics that belong to logged models.
fn metrics_of_models(
    at: &RunLocation,
    metrics: &[LoggedMetric],
    models: &ModelLocations,
) -> Result<Vec<LoggedModelPoint>> {
    let of_models = metrics.iter().filter_map(|metric| {
        let MeasuredModel { model, dataset_name, dataset_digest } = metric.model.clone()?;
        let Some(model) = models.get(&model) else { return Some(Err(missing_model(model.as_str()))) };
        Some(Ok(LoggedModelPoint {
            model: model.clone(),
            key: metric.key.clone(),
            value: metric.value,
            timestamp: metric.timestamp,
            step: metric.step,
            run_id: at.run.to_string(),
            dataset_name,
            dataset_digest,
        }))
    });
    of_models.collect()
}

/// Groups the points by metric.
fn series(metrics: &[LoggedMetric]) -> Series {
    let mut series = Series::new();
    for metric in metrics {
        let point = Point::new(metric.timestamp, metric.step, metric.value);
        series.entry(metric.key.clone()).or_default().push(point);
    }
    series
}
