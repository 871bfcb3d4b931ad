//! The sections of `docs/reference/capacity.md`, and their shared parts.

pub(crate) mod archived_histories;
pub(crate) mod experiments;
pub(crate) mod filled_table;
pub(crate) mod indexing;
pub(crate) mod inputs;
pub(crate) mod large_runs;
pub(crate) mod logged_models;
pub(crate) mod metrics;
pub(crate) mod removal;
pub(crate) mod runs;
pub(crate) mod searches;
pub(crate) mod steady_logging;

use std::ops::Range;
use std::time::Duration;

use embedded_engine::Engine;
use mlflow_api::ExperimentId;
use mlflow_api::requests::runs::SearchRuns;
use mlflow_api::tracking::ViewType;
use table::Table;
use test_site::ledger::MeteredProcesses;
use test_site::sample_metrics;
use tracking::store::{LogBatchData, LoggedMetric, NewExperiment, NewRun, Store};

use crate::calls::Calls;

pub(crate) const TIME: i64 = 1_700_000_000_000;
pub(crate) const ROOT: &str = "s3://bucket/root";
/// A metric of [`sample_metrics`] with noise in every bit.
const DOUBLE_PRECISION: u32 = 8;

/// Creates a table. It has no stream, because records are passed to the indexer directly.
pub(crate) async fn table(engine: &Engine) -> Table {
    let table = Table::new(engine.client(), "capacity");
    table.create_if_missing().await.unwrap();
    engine.end_stream("capacity").await.unwrap();
    table
}

/// Starts a process whose leases outlast the test, so that calls never have to renew them.
pub(crate) fn process(table: Table) -> Calls {
    Calls(Store::with_lease(table, ROOT, Duration::from_hours(1)))
}

/// Starts a process without leases, so that deletions do not have to wait for leases to expire.
pub(crate) fn without_leases(table: Table) -> Calls {
    Calls(Store::with_lease(table, ROOT, Duration::ZERO))
}

pub(crate) async fn bench() -> MeteredProcesses<Calls> {
    MeteredProcesses::new(table(&Engine::memory().unwrap()).await, process)
}

pub(crate) async fn experiment(store: &Calls, name: &str) -> ExperimentId {
    let new = NewExperiment { name: name.to_owned(), ..NewExperiment::default() };
    store.experiment_create(&new).await.unwrap()
}

/// Creates a table with an experiment.
pub(crate) async fn with_experiment() -> (MeteredProcesses<Calls>, ExperimentId) {
    let bench = bench().await;
    let experiment = experiment(&bench.store, "experiment").await;
    (bench, experiment)
}

/// Returns a new run with the four tags that the Python client sets.
pub(crate) fn new_run(start_time: i64) -> NewRun {
    let tags = [
        ("mlflow.user", "somebody"),
        ("mlflow.source.name", "train.py"),
        ("mlflow.source.type", "LOCAL"),
        ("mlflow.runName", "unique-name-123"),
    ];
    NewRun {
        user_id: "somebody".to_owned(),
        name: "unique-name-123".to_owned(),
        start_time,
        tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
    }
}

pub(crate) async fn run(store: &Calls, experiment: ExperimentId, start_time: i64) -> String {
    store.run_create(experiment, &new_run(start_time)).await.unwrap().info.run_id
}

/// Creates two runs with the same start time.
pub(crate) async fn two_runs(bench: &MeteredProcesses<Calls>, experiment: ExperimentId) -> [String; 2] {
    bench.two(async |store| run(store, experiment, TIME).await).await
}

pub(crate) fn metric(key: &str, step: i64) -> LoggedMetric {
    // Names without a number are those of metrics that are logged alone.
    let number = key.rsplit_once('_').map_or(DOUBLE_PRECISION, |(_, number)| number.parse().unwrap());
    let of_step = u32::try_from(step).unwrap();
    let (value, timestamp) = (sample_metrics::value(number, of_step), TIME + sample_metrics::time(of_step, 1_000));
    LoggedMetric { key: key.to_owned(), value, timestamp, step, model: None }
}

/// Returns a batch with one point of each of `count` metrics, at one step.
pub(crate) fn metrics(count: usize, step: i64) -> LogBatchData {
    let metrics = (0..count).map(|number| metric(&format!("metric_{number:04}"), step)).collect();
    LogBatchData { metrics, ..LogBatchData::default() }
}

/// Returns a batch with many steps of one metric.
pub(crate) fn steps(key: &str, steps: Range<i64>) -> LogBatchData {
    LogBatchData { metrics: steps.map(|step| metric(key, step)).collect(), ..LogBatchData::default() }
}

pub(crate) fn params(numbers: Range<usize>, value: &str) -> Vec<(String, String)> {
    numbers.map(|number| (format!("param_{number:04}"), format!("{value}{number}"))).collect()
}

/// Returns a search for the first hundred runs.
pub(crate) fn search(experiment: ExperimentId, filter: &str, order_by: &[&str]) -> SearchRuns {
    SearchRuns {
        experiment_ids: vec![experiment.to_string()],
        filter: filter.to_owned(),
        run_view_type: Some(ViewType::ActiveOnly),
        max_results: Some(100),
        order_by: order_by.iter().map(|&clause| clause.to_owned()).collect(),
        page_token: String::new(),
    }
}
