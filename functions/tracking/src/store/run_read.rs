//! Reading runs whole: the document, the metrics, and the rows where a run has any.

use futures::future::try_join_all;
use key_schema::{Key, prefix, rows};
use mlflow_api::tracking::{
    self, KeyValue, LifecycleStage, Metric, RunData, RunInfo, RunInputs, RunOutputs, RunStatus,
};
use mlflow_api::{ExperimentId, Result, RunId};
use table::{Item, Query};

use super::Store;
use super::document::{PARAM_ROWS, PARAMS, TAG_ROWS, TAGS, entries};
use super::experiment::NAME;
use super::gate::{ExperimentState, moment, run_stage};
use super::metric::{WIDE, latest};
use super::output::{OUTPUTS, model_output};
use super::run::{ARTIFACT_URI, END_TIME, START_TIME, STATUS, USER};
use super::run_document::RunLocation;

/// The items of one run.
#[derive(Debug, Default)]
pub(super) struct RunItems {
    pub(super) run: Item,
    /// The metrics document and, of a wide run, its others.
    pub(super) metrics: Vec<Item>,
    pub(super) params: Vec<Item>,
    pub(super) tags: Vec<Item>,
    pub(super) outputs: Vec<Item>,
}

impl Store {
    /// Reads a run. One request; one more for each kind of row it has.
    pub async fn run_get(&self, run_id: &str) -> Result<tracking::Run> {
        let at = self.run_locate(run_id).await?;
        let experiment_key = rows::Experiment::key(&at.experiment);
        let since = moment();
        let mut items = self.table.get_many(&[experiment_key.clone(), at.key(), at.metrics_key()]).await?;
        let (Some(experiment), Some(run)) = (items.remove(&experiment_key), items.remove(&at.key())) else {
            return Err(at.not_found());
        };
        let experiment = self.keep_lease(at.experiment, since, &experiment);
        let metrics = items.remove(&at.metrics_key());
        let items = self.run_items(&at, run, metrics).await?;
        Ok(run_whole(&at, &items, &experiment))
    }

    /// Reads the rows that a run has beside its two documents.
    pub(super) async fn run_items(&self, at: &RunLocation, run: Item, metrics: Option<Item>) -> Result<RunItems> {
        let is_wide = metrics.as_ref().is_some_and(|document| document.has(WIDE));
        let wanted = [
            (is_wide, prefix::run_metrics_buckets(&at.run)),
            (run.has(PARAM_ROWS), prefix::run_params(&at.run)),
            (run.has(TAG_ROWS), prefix::run_tags(&at.run)),
            (run.has(OUTPUTS), prefix::run_outputs(&at.run)),
        ];
        let partition = at.key().pk;
        let queries = wanted.into_iter().map(|(wanted, prefix)| {
            let query = Query::begins_with(&partition, prefix);
            async move { if wanted { self.table.query(query).await } else { Ok(Vec::new()) } }
        });
        let mut parts = try_join_all(queries).await?.into_iter();
        let mut part = || parts.next().unwrap_or_default();
        let buckets = part();
        let metrics = metrics.into_iter().chain(buckets).collect();
        Ok(RunItems { run, metrics, params: part(), tags: part(), outputs: part() })
    }

    /// Rows of a run's tags.
    pub(super) async fn run_tag_rows(&self, at: &RunLocation) -> Result<Vec<Item>> {
        Ok(self.table.query(Query::begins_with(at.key().pk, prefix::run_tags(&at.run))).await?)
    }

    /// Reads several runs of one experiment whole; a run that is gone is left out. Two requests per 100 runs, and one more for
    /// each kind of row of each run that has any.
    pub(super) async fn runs_get(
        &self,
        experiment: ExperimentId,
        runs: &[RunId],
    ) -> Result<Vec<(RunLocation, RunItems)>> {
        let places: Vec<_> = runs.iter().map(|run| RunLocation { experiment, run: run.clone() }).collect();
        let documents: Vec<Key> = places.iter().map(RunLocation::key).collect();
        let metrics: Vec<Key> = places.iter().map(RunLocation::metrics_key).collect();
        let (mut documents, mut metrics) =
            futures::future::try_join(self.table.get_many(&documents), self.table.get_many(&metrics)).await?;
        let whole = places.into_iter().filter_map(|at| {
            let run = documents.remove(&at.key())?;
            let metrics = metrics.remove(&at.metrics_key());
            Some(async move {
                let items = self.run_items(&at, run, metrics).await?;
                Ok::<_, mlflow_api::Error>((at, items))
            })
        });
        try_join_all(whole).await
    }
}

/// A run's info from its item.
pub(super) fn run_info(experiment: ExperimentId, run: &RunId, item: &Item, state: &ExperimentState) -> RunInfo {
    let text = |attribute: &str| item.text(attribute).unwrap_or_default().to_owned();
    let lifecycle_stage: LifecycleStage = run_stage(item, state);
    RunInfo {
        run_uuid: run.to_string(),
        run_id: run.to_string(),
        run_name: text(NAME),
        experiment_id: experiment.to_string(),
        user_id: text(USER),
        status: item.text(STATUS).and_then(RunStatus::from_name).unwrap_or(RunStatus::Running),
        start_time: item.number(START_TIME).unwrap_or_default(),
        end_time: item.number(END_TIME),
        artifact_uri: text(ARTIFACT_URI),
        lifecycle_stage,
    }
}

/// A run from its items.
pub(super) fn run_whole(at: &RunLocation, items: &RunItems, state: &ExperimentState) -> tracking::Run {
    let key_values = |attribute, rows| {
        let entries = entries(&items.run, attribute, rows).into_iter();
        entries.map(|(key, value)| KeyValue { key, value }).collect::<Vec<_>>()
    };
    let mut metrics: Vec<_> = items
        .metrics
        .iter()
        .flat_map(latest)
        .map(|(key, point)| Metric {
            key: key.to_owned(),
            value: point.value,
            timestamp: point.timestamp,
            step: point.step,
            run_id: None,
        })
        .collect();
    metrics.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let data = RunData { metrics, params: key_values(PARAMS, &items.params), tags: key_values(TAGS, &items.tags) };
    let outputs = RunOutputs { model_outputs: items.outputs.iter().filter_map(model_output).collect() };
    let info = run_info(at.experiment, &at.run, &items.run, state);
    tracking::Run { info, data, inputs: RunInputs {}, outputs: Some(outputs) }
}
