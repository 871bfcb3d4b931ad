//! Checks that the largest requests stay within DynamoDB's limits on expressions, because the
//! engine enforces these limits only in part.

use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use embedded_engine::{Engine, client_over};
use serde_json::{Value, json};
use table::Table;
use test_site::TABLE;

use crate::server::Server;

/// Maximum size of an expression, in bytes.
const MAX_BYTES: usize = 4_096;
/// Maximum number of operators and functions in an expression.
const MAX_OPERATORS: usize = 300;

/// An HTTP client that keeps a copy of every request.
#[derive(Clone, Debug)]
struct Recorder {
    inner: SharedHttpClient,
    requests: Arc<Mutex<Vec<Value>>>,
}

#[derive(Clone, Debug)]
struct RecordingConnector {
    inner: SharedHttpConnector,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl HttpClient for Recorder {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(RecordingConnector { inner, requests: Arc::clone(&self.requests) })
    }
}

impl HttpConnector for RecordingConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = request.body().bytes().unwrap_or_default();
        self.requests.lock().unwrap().push(serde_json::from_slice(body).unwrap());
        self.inner.call(request)
    }
}

/// Collects all expressions in a request, including those in the parts of a transaction.
fn expressions(request: &Value, found: &mut Vec<String>) {
    match request {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name.ends_with("Expression") => found.push(text.clone()),
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| expressions(element, found)),
        _ => {}
    }
}

/// Returns an upper bound of the number of operators. Each comparison, assignment, logical operator
/// and function is counted as one operator.
fn operators(expression: &str) -> usize {
    let symbols = expression.matches(['=', '<', '>', '+', '-']).count();
    let functions = expression.matches('(').count();
    let words = [" AND ", " OR ", "NOT(", "BETWEEN"].iter().map(|word| expression.matches(word).count());
    // `ADD`, `DELETE` and `REMOVE` are counted separately, because their elements have no operator
    // symbols.
    let added = ["ADD ", "DELETE ", "REMOVE "].iter().filter_map(|word| expression.split_once(word));
    symbols + functions + words.sum::<usize>() + added.map(|(_, rest)| rest.split(',').count()).sum::<usize>()
}

struct RecordedServer {
    server: Server,
    experiment: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl RecordedServer {
    async fn new() -> Self {
        let engine = Engine::memory().unwrap();
        let requests = Arc::default();
        let recorder = Recorder { inner: engine.http_client(), requests: Arc::clone(&requests) };
        let table = Table::new(client_over(SharedHttpClient::new(recorder)), TABLE);
        table.create_if_missing().await.unwrap();
        let server = Server::on(&table, entities::experiments::LEASE_DURATION).await;
        let experiment = server.experiment("e").await;
        Self { server, experiment, requests }
    }

    /// Checks the requests that were sent since the last check, and returns the number of
    /// expressions in them.
    fn check(&self, what: &str) -> usize {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        let mut all = Vec::new();
        for request in &requests {
            expressions(request, &mut all);
        }
        for expression in &all {
            assert!(expression.len() <= MAX_BYTES, "{what}: {} bytes", expression.len());
            assert!(operators(expression) <= MAX_OPERATORS, "{what}: {} operators", operators(expression));
        }
        for request in &requests {
            let parts = request["TransactItems"].as_array().map_or(0, Vec::len);
            assert!(parts <= 100, "{what}: {parts} parts");
        }
        all.len()
    }

    async fn run(&self) -> String {
        self.server.run(&self.experiment).await
    }
}

fn entries(name: &str, count: usize, key: usize, value: usize) -> Vec<Value> {
    let entry = |number: usize| {
        let key = format!("{name}{number:0>width$}", width = key - name.len());
        json!({ "key": key, "value": "v".repeat(value) })
    };
    (0..count).map(entry).collect()
}

#[test]
fn operators_are_counted() {
    assert_eq!(operators("SET #a=:a,#b.#c=:b ADD #d :c,#e :d REMOVE #f"), 5);
    assert_eq!(operators("attribute_exists(#a) AND (attribute_not_exists(#b) OR #c<:a)"), 6);
}

#[tokio::test]
async fn batches_of_params_and_tags() {
    let recorded = RecordedServer::new().await;
    for (params, tags) in [(100, 100), (20, 100), (21, 0), (100, 0), (0, 100)] {
        for (key, value) in [(250, 250), (250, 20), (10, 10), (10, 1_100), (250, 6_000)] {
            let run = recorded.run().await;
            let batch = json!({
                "run_id": run,
                "params": entries("p", params, key, value),
                "tags": entries("t", tags, key, value),
            });
            for attempt in 0..2 {
                recorded.server.post("runs/log-batch", batch.clone()).await.ok();
                let found = recorded.check(&format!("{params} params, {tags} tags, {key} {value}, attempt {attempt}"));
                assert!(found > 1 || attempt > 0);
            }
            // The next value turns inline tags into rows, and vice versa.
            let turned = if value > 1_024 { 10 } else { 1_100 };
            let batch = json!({ "run_id": run, "tags": entries("t", tags, key, turned) });
            recorded.server.post("runs/log-batch", batch).await.ok();
            let data = recorded.server.data(&run, "params").await.len();
            assert_eq!(data, params);
            recorded.check("turned");
        }
    }
}

#[tokio::test]
async fn batches_of_metrics() {
    let recorded = RecordedServer::new().await;
    for metrics in [64, 65, 128, 300, 1_000] {
        let run = recorded.run().await;
        // Calls with many points use `PutItem`, which needs no expression. Only the write that
        // marks the run has one.
        let mut longest = 0;
        for time in 0..11 {
            let points: Vec<_> = (0..metrics)
                .map(|number| json!({ "key": format!("m{number:0>240}"), "value": 1, "timestamp": time, "step": time }))
                .collect();
            if metrics < 200 || time < 2 || metrics == 300 {
                let batch = json!({ "run_id": run, "metrics": points });
                recorded.server.post("runs/log-batch", batch).await.ok();
                longest = longest.max(recorded.check(&format!("{metrics} metrics, time {time}")));
            }
        }
        assert!(longest > 0, "{metrics} metrics");
    }
}

#[tokio::test]
async fn the_other_requests() {
    let recorded = RecordedServer::new().await;
    let run = recorded.run().await;
    let models: Vec<_> = (0..250).map(|number| json!({ "model_id": format!("m-{number}"), "step": number })).collect();
    recorded.server.post("runs/outputs", json!({ "run_id": run, "models": models })).await.ok();
    assert_eq!(recorded.server.run_of(&run).await["outputs"]["model_outputs"].as_array().unwrap().len(), 250);
    recorded.server.post("runs/delete", json!({ "run_id": run })).await.ok();
    recorded.server.post("runs/restore", json!({ "run_id": run })).await.ok();
    assert!(recorded.check("outputs and stages") > 250);
}
