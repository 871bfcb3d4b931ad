//! A server for tests, which runs the function over a private table.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use axum::Router;
use serde_json::{Value, json};
use table::Table;
use test_site::TestClient;
pub(crate) use test_site::{ROOT, TestResponse};
use tracking::store::Store;

use crate::calls::Calls;

/// Length of the leases. It is short, because most tests wait for leases to expire.
pub(crate) const LEASE: Duration = Duration::from_millis(20);

/// A server process.
#[derive(Clone)]
pub(crate) struct Server {
    api: TestClient,
    pub(crate) store: Calls,
}

/// A server over a private table, with an engine that injects faults.
pub(crate) struct Site {
    base: test_site::TestEnvironment,
    /// The server whose requests are subject to the injected faults.
    pub(crate) server: Server,
}

/// A point as `(timestamp, step, value)`.
pub(crate) type Point = (i64, i64, f64);

impl Deref for Site {
    type Target = test_site::TestEnvironment;

    fn deref(&self) -> &test_site::TestEnvironment {
        &self.base
    }
}

impl Site {
    pub(crate) async fn new() -> Self {
        let site = test_site::TestEnvironment::new().await;
        let server = Server::on(&site.faulty(), LEASE).await;
        site.faults.reset_calls();
        Self { base: site, server }
    }

    /// Returns a copy of the site in its current state.
    pub(crate) fn copy(&self) -> Self {
        let base = self.base.copy();
        let server = Server::with(&Store::with_lease(base.faulty(), ROOT, LEASE));
        Self { base, server }
    }

    /// Starts another process on this table, whose requests are not subject to faults.
    pub(crate) async fn other(&self) -> Server {
        Server::on(&self.table, LEASE).await
    }

    /// Starts a server whose requests are subject to the injected faults, and that gives up after
    /// few retries.
    pub(crate) async fn impatient(&self) -> Server {
        Server::on(&self.base.impatient(), LEASE).await
    }
}

impl Deref for Server {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.api
    }
}

impl Server {
    pub(crate) async fn on(table: &Table, lease: Duration) -> Self {
        let store = Store::with_lease(table.clone(), ROOT, lease);
        store.experiment_create_default(&mlflow_api::Workspace::default()).await.unwrap();
        Self::with(&store)
    }

    pub(crate) fn with(store: &Store) -> Self {
        Self { api: TestClient(tracking::router(store, test_site::everybody())), store: Calls(store.clone()) }
    }

    pub(crate) fn router(&self) -> Router {
        self.api.0.clone()
    }

    pub(crate) async fn experiment(&self, name: &str) -> String {
        let answer = self.post("experiments/create", json!({ "name": name })).await.ok();
        answer["experiment_id"].as_str().unwrap().to_owned()
    }

    /// Creates a run with this start time.
    pub(crate) async fn run_at(&self, experiment: &str, start_time: i64) -> String {
        let new = json!({ "experiment_id": experiment, "start_time": start_time });
        let answer = self.post("runs/create", new).await.ok();
        answer["run"]["info"]["run_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn run(&self, experiment: &str) -> String {
        self.run_at(experiment, 1_700_000_000_000).await
    }

    pub(crate) async fn log_metric(&self, run: &str, metric: &str, (timestamp, step, value): Point) -> TestResponse {
        let value = json_number(value);
        let point = json!({ "run_id": run, "key": metric, "value": value, "timestamp": timestamp, "step": step });
        self.post("runs/log-metric", point).await
    }

    pub(crate) async fn log_points(&self, run: &str, points: &[(&str, Point)]) -> TestResponse {
        let metrics: Vec<_> = points.iter().map(|(metric, point)| metric_json(metric, *point)).collect();
        self.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await
    }

    pub(crate) async fn log_param(&self, run: &str, key: &str, value: &str) -> TestResponse {
        self.post("runs/log-parameter", json!({ "run_id": run, "key": key, "value": value })).await
    }

    pub(crate) async fn set_tag(&self, run: &str, key: &str, value: &str) -> TestResponse {
        self.post("runs/set-tag", json!({ "run_id": run, "key": key, "value": value })).await
    }

    pub(crate) async fn run_of(&self, run: &str) -> Value {
        self.get("runs/get", &[("run_id", run)]).await.ok()["run"].clone()
    }

    /// Returns the run's params, tags or metrics, by key.
    pub(crate) async fn data(&self, run: &str, what: &str) -> BTreeMap<String, Value> {
        by_key(&self.run_of(run).await["data"][what])
    }

    /// Returns the whole history of a metric, from one response.
    pub(crate) async fn history(&self, run: &str, metric: &str) -> Vec<Point> {
        points(&self.get("metrics/get-history", &[("run_id", run), ("metric_key", metric)]).await.ok())
    }

    /// Returns the ids of the runs on all pages of a search.
    pub(crate) async fn search(&self, mut search: Value) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            let page = self.post("runs/search", search.clone()).await.ok();
            found.extend(run_ids(&page));
            match page["next_page_token"].as_str() {
                Some(token) => search["page_token"] = token.into(),
                None => return found,
            }
        }
    }
}

/// Encodes a number as MLflow's clients do: JSON has no NaN, so they send a string.
pub(crate) fn json_number(value: f64) -> Value {
    if value.is_nan() { "NaN".into() } else { value.into() }
}

pub(crate) fn metric_json(metric: &str, (timestamp, step, value): Point) -> Value {
    json!({ "key": metric, "value": json_number(value), "timestamp": timestamp, "step": step })
}

/// Returns the points in the `metrics` of a response.
pub(crate) fn points(answer: &Value) -> Vec<Point> {
    let metrics = answer["metrics"].as_array().map(Vec::as_slice).unwrap_or_default();
    metrics.iter().map(point).collect()
}

pub(crate) fn point(metric: &Value) -> Point {
    let value = metric["value"].as_f64().unwrap_or(f64::NAN);
    (metric["timestamp"].as_i64().unwrap(), metric["step"].as_i64().unwrap(), value)
}

/// Returns the elements of a list by their `key`. Panics if a key occurs twice.
pub(crate) fn by_key(list: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for element in list.as_array().map(Vec::as_slice).unwrap_or_default() {
        let key = element["key"].as_str().unwrap().to_owned();
        let value = element.get("timestamp").map_or_else(|| element["value"].clone(), |_| element.clone());
        assert_eq!(found.insert(key.clone(), value), None, "{key} twice");
    }
    found
}

pub(crate) fn run_ids(page: &Value) -> Vec<String> {
    let runs = page["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
    runs.iter().map(|run| run["info"]["run_id"].as_str().unwrap().to_owned()).collect()
}
