//! A server in the test's own process, on a table of its own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use embedded_engine::Engine;
use embedded_engine::faults::FaultInjector;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use key_schema::Key;
use key_schema::definition::{PK, SK};
use key_schema::rows::RowDescription;
use serde_json::{Value, json};
use table::{Retry, Table};
use tower::ServiceExt;
use tracking::store::Store;

use crate::calls::Calls;

pub(crate) const ROOT: &str = "s3://bucket/artifacts";
pub(crate) const TABLE: &str = "mlflow";
/// Short, as most tests only wait for it.
const LEASE: Duration = Duration::from_millis(20);

/// One process of the server.
#[derive(Clone)]
pub(crate) struct Server {
    router: Router,
    pub(crate) store: Calls,
}

/// An answer as it came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// A server over an engine of its own, with faults between them.
pub(crate) struct Site {
    pub(crate) engine: Engine,
    pub(crate) faults: FaultInjector,
    /// The table without faults.
    pub(crate) table: Table,
    /// The server whose requests meet the faults.
    pub(crate) server: Server,
}

/// A point as (timestamp, step, value).
pub(crate) type Point = (i64, i64, f64);

impl Site {
    pub(crate) async fn new() -> Self {
        let engine = Engine::memory().unwrap();
        let table = Table::new(engine.client(), TABLE);
        table.create_if_missing().await.unwrap();
        let faults = FaultInjector::new(engine.http_client());
        let server = Server::on(&Table::new(faults.client(), TABLE), LEASE).await;
        faults.reset_calls();
        Self { engine, faults, table, server }
    }

    /// Another process on the same table, whose requests meet no fault.
    pub(crate) async fn other(&self) -> Server {
        Server::on(&self.table, LEASE).await
    }

    /// A server whose requests meet the faults and that soon gives up.
    pub(crate) async fn impatient(&self) -> Server {
        let pause = Duration::from_millis(1);
        let retry = Retry { attempts: 2, first_pause: pause, longest_pause: pause, ..Retry::default() };
        Server::on(&Table::new(self.faults.client(), TABLE).with_retry(retry), LEASE).await
    }

    /// All items, as DynamoDB writes them. None holds what is not declared of its row.
    pub(crate) async fn items(&self) -> Vec<Value> {
        let items = self.engine.items(TABLE).await.unwrap();
        let undeclared: Vec<_> = items.iter().flat_map(undeclared).collect();
        assert_eq!(undeclared, Vec::<String>::new());
        items
    }

    /// The same by their keys.
    pub(crate) async fn dump(&self) -> BTreeMap<String, Value> {
        let items = self.items().await.into_iter().map(|item| (key_of(&item), sorted_sets(&item)));
        items.map(|(Key { pk, sk }, item)| (format!("{pk} {sk}"), item)).collect()
    }
}

/// The key of an item as DynamoDB writes it.
pub(crate) fn key_of(item: &Value) -> Key {
    let part = |name: &str| item[name]["S"].as_str().unwrap().to_owned();
    Key { pk: part(PK), sk: part(SK) }
}

/// What of an item `key-schema` does not declare of its row.
fn undeclared(item: &Value) -> Vec<String> {
    let code = |value: &'_ Value| value.as_object().unwrap().keys().next().unwrap().clone();
    let attributes: Vec<_> =
        item.as_object().unwrap().iter().map(|(name, value)| (name.clone(), code(value))).collect();
    RowDescription::undeclared(&key_of(item), attributes.iter().map(|(name, code)| (name.as_str(), code.as_str())))
}

/// The item with its sets in order: a set has none. Without its revision, as a write that is repeated counts twice, and without
/// its nonce, which is drawn.
fn sorted_sets(item: &Value) -> Value {
    let mut item = item.clone();
    item.as_object_mut().unwrap().remove("rev");
    item.as_object_mut().unwrap().remove("nonce");
    for value in item.as_object_mut().unwrap().values_mut() {
        if let Some(set) = value.get_mut("BS").and_then(Value::as_array_mut) {
            set.sort_by_key(ToString::to_string);
        }
    }
    item
}

impl Server {
    pub(crate) async fn on(table: &Table, lease: Duration) -> Self {
        let store = Store::with_lease(table.clone(), ROOT, lease);
        store.experiment_create_default(&mlflow_api::Workspace::default()).await.unwrap();
        Self::with(&store)
    }

    pub(crate) fn with(store: &Store) -> Self {
        Self { router: tracking::router(store), store: Calls(store.clone()) }
    }

    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.post_text(path, body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, body: String) -> Answer {
        let request = Request::post(format!("/api/2.0/mlflow/{path}")).header(CONTENT_TYPE, "application/json");
        self.send(request.body(Body::from(body)).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str, arguments: &[(&str, &str)]) -> Answer {
        self.get_at(&format!("/api/2.0/mlflow/{path}"), arguments).await
    }

    pub(crate) async fn get_at(&self, path: &str, arguments: &[(&str, &str)]) -> Answer {
        let arguments: Vec<_> =
            arguments.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let uri = format!("{path}?{}", arguments.join("&"));
        self.send(Request::get(uri).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = || Value::from(String::from_utf8_lossy(&body).into_owned());
        Answer { status, body: serde_json::from_slice(&body).unwrap_or_else(|_| text()) }
    }

    pub(crate) async fn experiment(&self, name: &str) -> String {
        let answer = self.post("experiments/create", json!({ "name": name })).await.ok();
        answer["experiment_id"].as_str().unwrap().to_owned()
    }

    /// A run of this start time.
    pub(crate) async fn run_at(&self, experiment: &str, start_time: i64) -> String {
        let new = json!({ "experiment_id": experiment, "start_time": start_time });
        let answer = self.post("runs/create", new).await.ok();
        answer["run"]["info"]["run_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn run(&self, experiment: &str) -> String {
        self.run_at(experiment, 1_700_000_000_000).await
    }

    pub(crate) async fn log_metric(&self, run: &str, metric: &str, (timestamp, step, value): Point) -> Answer {
        let value = json_number(value);
        let point = json!({ "run_id": run, "key": metric, "value": value, "timestamp": timestamp, "step": step });
        self.post("runs/log-metric", point).await
    }

    pub(crate) async fn log_points(&self, run: &str, points: &[(&str, Point)]) -> Answer {
        let metrics: Vec<_> = points.iter().map(|(metric, point)| metric_json(metric, *point)).collect();
        self.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await
    }

    pub(crate) async fn log_param(&self, run: &str, key: &str, value: &str) -> Answer {
        self.post("runs/log-parameter", json!({ "run_id": run, "key": key, "value": value })).await
    }

    pub(crate) async fn set_tag(&self, run: &str, key: &str, value: &str) -> Answer {
        self.post("runs/set-tag", json!({ "run_id": run, "key": key, "value": value })).await
    }

    pub(crate) async fn run_of(&self, run: &str) -> Value {
        self.get("runs/get", &[("run_id", run)]).await.ok()["run"].clone()
    }

    /// The run's params, tags or metrics by key.
    pub(crate) async fn data(&self, run: &str, what: &str) -> BTreeMap<String, Value> {
        by_key(&self.run_of(run).await["data"][what])
    }

    /// The whole history of a metric in one answer.
    pub(crate) async fn history(&self, run: &str, metric: &str) -> Vec<Point> {
        points(&self.get("metrics/get-history", &[("run_id", run), ("metric_key", metric)]).await.ok())
    }

    /// The ids of the runs on all pages of a search.
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

impl Answer {
    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }

    /// A refusal with this code; its message.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> String {
        let found = (self.status, self.body["error_code"].as_str().unwrap_or_default());
        assert_eq!(found, (status, code), "{}", self.body);
        self.body["message"].as_str().unwrap().to_owned()
    }

    /// The refusal of a write to what is deleted.
    #[track_caller]
    pub(crate) fn refused_as_deleted(self) {
        let message = self.refused(400, "INVALID_PARAMETER_VALUE");
        assert!(message.ends_with("must be in the 'active' state. Current state is deleted."), "{message}");
    }
}

/// JSON has no NaN; MLflow's clients send a text.
pub(crate) fn json_number(value: f64) -> Value {
    if value.is_nan() { "NaN".into() } else { value.into() }
}

pub(crate) fn metric_json(metric: &str, (timestamp, step, value): Point) -> Value {
    json!({ "key": metric, "value": json_number(value), "timestamp": timestamp, "step": step })
}

/// The points in an answer's `metrics`.
pub(crate) fn points(answer: &Value) -> Vec<Point> {
    let metrics = answer["metrics"].as_array().map(Vec::as_slice).unwrap_or_default();
    metrics.iter().map(point).collect()
}

pub(crate) fn point(metric: &Value) -> Point {
    let value = metric["value"].as_f64().unwrap_or(f64::NAN);
    (metric["timestamp"].as_i64().unwrap(), metric["step"].as_i64().unwrap(), value)
}

/// The elements of a list by their `key`; no key may come twice.
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

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let _ = write!(encoded, "%{byte:02X}");
        encoded
    })
}
