//! Logging metrics, params and tags, many at a time or one metric alone.

use entities::points::Point;
use entities::{ModelLocation, RunLocation};
use mlflow_api::{Error, Result, limits, python};

use super::Store;
use super::logged_model_metrics::{ModelMetric, missing_model};
use super::metric::Series;
use super::run_document::RunDocument;
use super::run_tag::add_tag;
use std::collections::BTreeSet;

use documents::{Change, Document};

/// A metric as a client logs it.
#[derive(Clone, Debug, Default)]
pub struct LoggedMetric {
    /// Name.
    pub key: String,
    /// Value.
    pub value: f64,
    /// In ms.
    pub timestamp: i64,
    /// Step.
    pub step: i64,
    /// The logged model it is of, beside the run.
    pub model: Option<MeasuredModel>,
}

/// The logged model a metric is of.
#[derive(Clone, Debug, Default)]
pub struct MeasuredModel {
    /// Its id, as the client says.
    pub model_id: String,
    /// Name of the dataset it was measured on; empty for none.
    pub dataset_name: String,
    /// Digest of that dataset; empty for none.
    pub dataset_digest: String,
}

/// What a batch logs.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Metrics.
    pub metrics: Vec<LoggedMetric>,
    /// Params.
    pub params: Vec<(String, String)>,
    /// Tags.
    pub tags: Vec<(String, String)>,
}

impl Store {
    /// Logs one point of a metric. 1.2 requests and 1.7 write units in the mean of a run with ten metrics, and one request for the experiment
    /// where no lease lasts. Two more if it is of a logged model.
    pub async fn run_log_metric(&self, run_id: &str, metric: &LoggedMetric) -> Result<()> {
        check_metric(metric, "")?;
        let (at, experiment) = self.run_locate_with_experiment(run_id).await?;
        let document = RunDocument { at: &at, experiment: &experiment, single_param: false };
        let metrics = std::slice::from_ref(metric);
        let of_models = of_models(&at, metrics);
        self.check_models(&document, &of_models).await?;
        self.metrics_log(&at, &experiment, series(metrics)).await?;
        self.logged_model_log_metrics(&of_models).await
    }

    /// Logs a batch: first params and tags, then metrics. Params and tags are written together or not at all, unless more than
    /// 99 of them are too big for the document. Sent twice, it has the same effect as once.
    pub async fn run_log_batch(&self, run_id: &str, batch: &Batch) -> Result<()> {
        let (params, tags) = check(run_id, batch)?;
        let (at, experiment) = self.run_locate_with_experiment(run_id).await?;
        let document = RunDocument { at: &at, experiment: &experiment, single_param: false };
        let of_models = of_models(&at, &batch.metrics);
        self.check_models(&document, &of_models).await?;
        let mut change = Change { params, ..Change::default() };
        for (key, value) in tags {
            add_tag(&mut change, &key, value);
        }
        if !change.params.is_empty() || !change.tags.is_empty() {
            documents::change(&self.table, &document, change).await?;
        } else if batch.metrics.is_empty() {
            // Nothing to write, but still something to refuse.
            document.check(self.table.get(&at.key()).await?.as_ref())?;
        }
        if !batch.metrics.is_empty() {
            self.metrics_log(&at, &experiment, series(&batch.metrics)).await?;
        }
        self.logged_model_log_metrics(&of_models).await
    }

    /// Refuses metrics of logged models that are not there, and of a run that may not be written to, before anything is
    /// written. No request without such metrics, else one.
    async fn check_models(&self, document: &RunDocument<'_>, metrics: &[ModelMetric]) -> Result<()> {
        if metrics.is_empty() {
            return Ok(());
        }
        let ids: BTreeSet<_> = metrics.iter().map(|metric| metric.model.as_str()).collect();
        let models = self.logged_models_locate(ids.into_iter()).await?;
        let keys: Vec<_> = models.iter().map(ModelLocation::key).chain([document.key()]).collect();
        let found = self.table.get_many(&keys).await?;
        document.check(found.get(&document.key()))?;
        match models.iter().find(|at| !found.contains_key(&at.key())) {
            Some(at) => Err(missing_model(at.model.as_str())),
            None => Ok(()),
        }
    }
}

/// The metrics that are of logged models.
fn of_models(at: &RunLocation, metrics: &[LoggedMetric]) -> Vec<ModelMetric> {
    let of_models = metrics.iter().filter_map(|metric| {
        let MeasuredModel { model_id, dataset_name, dataset_digest } = metric.model.clone()?;
        Some(ModelMetric {
            model: model_id,
            key: metric.key.clone(),
            value: metric.value,
            timestamp: metric.timestamp,
            step: metric.step,
            run_id: at.run.to_string(),
            dataset_name,
            dataset_digest,
        })
    });
    of_models.collect()
}

type Entries = Vec<(String, String)>;

/// Checks a batch in MLflow's order, before anything is written; returns params and tags as they are kept.
fn check(run_id: &str, batch: &Batch) -> Result<(Entries, Entries)> {
    limits::run_id(run_id)?;
    for (position, metric) in batch.metrics.iter().enumerate() {
        check_metric(metric, &format!("metrics[{position}]"))?;
    }
    let params =
        batch.params.iter().enumerate().map(|(position, (key, value))| {
            Ok((key.clone(), limits::param(key, value, &format!("params[{position}]"))?))
        });
    let params = params.collect::<Result<Entries>>()?;
    let tags =
        batch.tags.iter().enumerate().map(|(position, (key, value))| {
            Ok((key.clone(), limits::run_tag(key, value, &format!("tags[{position}]"))?))
        });
    let tags = tags.collect::<Result<Entries>>()?;
    limits::batch(batch.metrics.len(), params.len(), tags.len())?;
    let repeated: Vec<_> = params
        .iter()
        .enumerate()
        .filter(|(position, (key, _))| params[..*position].iter().any(|(earlier, _)| earlier == key))
        .map(|(_, (key, _))| key)
        .collect();
    if !repeated.is_empty() {
        return Err(Error::invalid(format!(
            "Duplicate parameter keys have been submitted: {}. Please ensure the request contains only one param value per \
             param key.",
            python::repr_list(&repeated)
        )));
    }
    Ok((params, tags))
}

fn check_metric(metric: &LoggedMetric, path: &str) -> Result<()> {
    limits::metric_name(&metric.key, &limits::json_path(path, "name"))?;
    limits::metric_timestamp(&metric.key, metric.value, metric.timestamp, path)?;
    limits::at_most("Metric name", limits::KEY, &metric.key)?;
    metric.model.iter().try_for_each(|model| {
        limits::at_most("Dataset name", limits::DATASET_NAME, &model.dataset_name)?;
        limits::at_most("Dataset digest", limits::DATASET_DIGEST, &model.dataset_digest)
    })
}

/// The points by metric.
fn series(metrics: &[LoggedMetric]) -> Series {
    let mut series = Series::new();
    for metric in metrics {
        let point = Point::new(metric.timestamp, metric.step, metric.value);
        series.entry(metric.key.clone()).or_default().push(point);
    }
    series
}
