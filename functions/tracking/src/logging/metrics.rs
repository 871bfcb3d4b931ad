//! Logging of metrics, and of batches of metrics, params and tags. A metric may also belong to a
//! logged model. In that case, the caller needs permission to update the model as well.

use access::{Action, Needs, Scope, Target};
use mlflow_api::key_value::KeyValue;
use mlflow_api::requests::logging::{self as message, MetricPoint};
use mlflow_api::requests::runs::new_or_old;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Error, ModelId, Request, Result, RunId, limits, python};
use service::Endpoint;

use crate::store::{LogBatchData, LoggedMetric, MeasuredModel, ModelLocations, Store, missing_model};

pub(crate) struct LogMetric {
    run: RunId,
    metric: LoggedMetric,
}

impl Endpoint for LogMetric {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LogMetric = request.read()?;
        let point = MetricPoint {
            key: message.key,
            value: message.value,
            timestamp: message.timestamp,
            step: message.step,
            model_id: message.model_id,
            dataset_name: message.dataset_name,
            dataset_digest: message.dataset_digest,
            run_id: String::new(),
        };
        check_dataset_fields(&point)?;
        check_point(&point, "")?;
        let run = RunId::named(new_or_old(&message.run_id, &message.run_uuid))?;
        Ok(Self { run, metric: logged_metric(point)? })
    }

    fn needs(&self) -> Needs {
        needs(&self.run, std::slice::from_ref(&self.metric))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let run = scope.run(&self.run)?;
        let models = models(scope, std::slice::from_ref(&self.metric))?;
        store.run_log_metric(&run, &self.metric, &models).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct LogBatch {
    run: RunId,
    batch: LogBatchData,
}

impl Endpoint for LogBatch {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LogBatch = request.read()?;
        message.metrics.iter().try_for_each(check_dataset_fields)?;
        limits::run_id(&message.run_id)?;
        for (position, point) in message.metrics.iter().enumerate() {
            check_point(point, &format!("metrics[{position}]"))?;
        }
        let params = checked_entries(message.params, |key, value, place| {
            limits::param(key, value, &format!("params[{place}]"))
        })?;
        let tags =
            checked_entries(message.tags, |key, value, place| limits::run_tag(key, value, &format!("tags[{place}]")))?;
        limits::batch(message.metrics.len(), params.len(), tags.len())?;
        check_params_differ(&params)?;
        let run = RunId::named(&message.run_id)?;
        let metrics = message.metrics.into_iter().map(logged_metric).collect::<Result<_>>()?;
        Ok(Self { run, batch: LogBatchData { metrics, params, tags } })
    }

    fn needs(&self) -> Needs {
        needs(&self.run, &self.batch.metrics)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let run = scope.run(&self.run)?;
        let models = models(scope, &self.batch.metrics)?;
        store.run_log_batch(&run, self.batch, &models).await?;
        Ok(EmptyResponse {})
    }
}

/// Returns the permissions that a logging call needs: on the run, and on the logged models that the
/// call's metrics belong to.
fn needs(run: &RunId, metrics: &[LoggedMetric]) -> Needs {
    let models = metrics.iter().filter_map(|metric| metric.model.as_ref());
    let models = models.map(|measured| Target::LoggedModel(measured.model.clone()));
    Needs::update(Target::Run(run.clone())).and(Action::Update, models)
}

/// Returns the locations of the logged models that the metrics belong to.
fn models(scope: &Scope, metrics: &[LoggedMetric]) -> Result<ModelLocations> {
    let measured = metrics.iter().filter_map(|metric| metric.model.as_ref());
    let models = measured.map(|MeasuredModel { model, .. }| {
        let at = scope.logged_model(model).map_err(|_| missing_model(model.as_str()))?;
        Ok((model.clone(), at))
    });
    models.collect()
}

/// Checks that a metric point has either both the name and the digest of its dataset, or neither.
/// As in MLflow, this check comes before the store's other checks.
fn check_dataset_fields(point: &MetricPoint) -> Result<()> {
    if point.dataset_name.is_empty() == point.dataset_digest.is_empty() {
        return Ok(());
    }
    Err(Error::invalid("Both dataset_name and dataset_digest must be provided if one is provided"))
}

fn check_point(point: &MetricPoint, path: &str) -> Result<()> {
    limits::metric_name(&point.key, &limits::json_path(path, "name"))?;
    limits::metric_timestamp(&point.key, point.value, point.timestamp, path)?;
    limits::at_most("Metric name", limits::MAX_KEY_LENGTH, &point.key)?;
    if point.model_id.is_empty() {
        return Ok(());
    }
    limits::at_most("Dataset name", limits::MAX_DATASET_NAME_LENGTH, &point.dataset_name)?;
    limits::at_most("Dataset digest", limits::MAX_DATASET_DIGEST_LENGTH, &point.dataset_digest)
}

fn logged_metric(point: MetricPoint) -> Result<LoggedMetric> {
    let MetricPoint { key, value, timestamp, step, model_id, dataset_name, dataset_digest, run_id: _ } = point;
    let model = if model_id.is_empty() {
        None
    } else {
        let model = ModelId::parse(&model_id).ok_or_else(|| missing_model(&model_id))?;
        Some(MeasuredModel { model, dataset_name, dataset_digest })
    };
    Ok(LoggedMetric { key, value, timestamp, step, model })
}

/// Checks params or tags, and returns them as they will be stored.
fn checked_entries(
    entries: Vec<KeyValue>,
    check: impl Fn(&str, &str, usize) -> Result<String>,
) -> Result<Vec<(String, String)>> {
    let entries = entries.into_iter().enumerate();
    let entries = entries.map(|(position, KeyValue { key, value })| {
        let value = check(&key, &value, position)?;
        Ok((key, value))
    });
    entries.collect()
}

fn check_params_differ(params: &[(String, String)]) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    let repeated: Vec<_> = params.iter().filter(|(key, _)| !seen.insert(key)).map(|(key, _)| key).collect();
    if repeated.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Duplicate parameter keys have been submitted: {}. Please ensure the request contains only one param value per \
         param key.",
        python::repr_list(&repeated)
    )))
}
