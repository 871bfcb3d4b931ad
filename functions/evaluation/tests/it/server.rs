//! A server in the test's own process, on a table of its own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use embedded_engine::Engine;
use embedded_engine::faults::FaultInjector;
use fts_indexer::{Batch, Indexer};
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use key_schema::Key;
use key_schema::definition::{PK, SK};
use key_schema::rows::RowDescription;
use serde_json::{Value, json};
use table::{Retry, Table};
use tower::ServiceExt;

const ROOT: &str = "s3://bucket/artifacts";
pub(crate) const TABLE: &str = "mlflow";
/// Short, as most tests only wait for it.
const LEASE: Duration = Duration::from_millis(20);

/// One process of the server: this function, and the one that keeps experiments.
#[derive(Clone)]
pub(crate) struct Server {
    router: Router,
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

    /// Feeds the indexer with records of the stream; all of them have to be carried over.
    pub(crate) async fn index(&self, records: Vec<Value>) {
        let answer = Indexer::new(self.table.clone()).handle(Batch { records }).await;
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
    }

    /// All items, by their keys, as DynamoDB writes them. None holds what is not declared of its row.
    pub(crate) async fn dump(&self) -> BTreeMap<String, Value> {
        let items = self.engine.items(TABLE).await.unwrap();
        let undeclared: Vec<_> = items.iter().flat_map(undeclared).collect();
        assert_eq!(undeclared, Vec::<String>::new());
        let items = items.iter().map(|item| (key_of(item), sorted_sets(item)));
        items.map(|(Key { pk, sk }, item)| (format!("{pk} {sk}"), item)).collect()
    }
}

/// The key of an item as DynamoDB writes it.
fn key_of(item: &Value) -> Key {
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
    async fn on(table: &Table, lease: Duration) -> Self {
        let tracking = tracking::store::Store::with_lease(table.clone(), ROOT, lease);
        tracking.experiment_create_default(&mlflow_api::Workspace::default()).await.unwrap();
        let evaluation = evaluation::store::Store::with_lease(table.clone(), lease);
        Self { router: service::joined(evaluation::router(&evaluation), [tracking::router(&tracking)]) }
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        let request = Request::post(format!("/api/2.0/mlflow/{path}")).header(CONTENT_TYPE, "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
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

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let _ = write!(encoded, "%{byte:02X}");
        encoded
    })
}
