//! A server for tests, which runs the function over a private table.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use artifact_store::{Archive, ArtifactStore};
use serde_json::{Value, json};
use table::Table;
pub(crate) use test_site::TestResponse;
use test_site::{ROOT, TestClient};

/// Length of the leases. It is short, because most tests wait for leases to expire.
const LEASE: Duration = Duration::from_millis(20);
/// Path of the traces in version 3 of the API.
pub(crate) const ALL: &str = "/api/3.0/mlflow/traces";

/// A server process with the function `traces`, and with `tracking` to create experiments.
#[derive(Clone)]
pub(crate) struct Server(pub(crate) TestClient);

/// A server over a private table, with an engine that injects faults.
pub(crate) struct Site {
    base: test_site::TestEnvironment,
    /// The server whose requests are subject to the injected faults.
    pub(crate) server: Server,
}

impl Deref for Site {
    type Target = test_site::TestEnvironment;

    fn deref(&self) -> &test_site::TestEnvironment {
        &self.base
    }
}

impl Site {
    pub(crate) async fn new() -> Self {
        let site = test_site::TestEnvironment::with_stream().await;
        let server = Server::on(&site.faulty()).await;
        site.faults.reset_calls();
        Self { base: site, server }
    }

    /// Returns a copy of the site in its current state, with its own process and its own fault
    /// injection.
    pub(crate) async fn copy(&self) -> Self {
        let base = self.base.copy();
        let server = Server::on(&base.faulty()).await;
        Self { base, server }
    }

    /// Starts another process on this table, whose requests to the table always succeed.
    pub(crate) async fn other(&self) -> Server {
        Server::on(&self.table).await
    }
}

impl Deref for Server {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.0
    }
}

/// Returns the id of the trace with this number.
pub(crate) fn id(number: u32) -> String {
    format!("tr-{number:032x}")
}

/// Returns a span of the trace with this number. `from` and `to` are in ms after a time in 2023.
pub(crate) fn span(trace: u32, number: u64, parent: Option<u64>, from: u64, to: u64) -> Value {
    let nanos = |ms: u64| ((1_700_000_000_000 + ms) * 1_000_000).to_string();
    let mut span = json!({
        "traceId": format!("{trace:032x}"), "spanId": format!("{number:016x}"), "name": format!("step {number}"),
        "startTimeUnixNano": nanos(from), "endTimeUnixNano": nanos(to),
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    span
}

/// Returns an export of these spans.
pub(crate) fn export(spans: &[Value]) -> String {
    json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] }).to_string()
}

/// Returns the request body with which a client starts this trace.
pub(crate) fn info(number: u32, experiment: &str) -> Value {
    json!({
        "trace_id": id(number),
        "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": experiment } },
        "request_time": "2023-11-14T22:13:20.000Z",
        "execution_duration": "1.500s",
        "state": "OK",
    })
}

impl Server {
    /// Starts a process on this table.
    pub(crate) async fn on(table: &Table) -> Self {
        Self::guarded(table, test_site::everybody()).await
    }

    /// Starts a process on this table, with this authorizer for traces.
    pub(crate) async fn guarded(table: &Table, authorizer: Arc<dyn access::Authorizer>) -> Self {
        Self::storing(table, authorizer, ArtifactStore::below(ROOT)).await
    }

    /// Starts a process on this table that stores artifacts in this directory.
    pub(crate) async fn storing_in(table: &Table, directory: &Path) -> Self {
        Self::storing(table, test_site::everybody(), ArtifactStore::in_directory(directory)).await
    }

    /// Starts a server on a table. It reads archived spans from `archive`.
    pub(crate) async fn with_archive(table: &Table, archive: Archive) -> Self {
        let traces = traces::store::Store::with_lease(table.clone(), ArtifactStore::below(ROOT), LEASE);
        Self::of_store(table, test_site::everybody(), &traces.with_archive(archive)).await
    }

    async fn storing(table: &Table, authorizer: Arc<dyn access::Authorizer>, artifacts: ArtifactStore) -> Self {
        let traces = traces::store::Store::with_lease(table.clone(), artifacts, LEASE);
        Self::of_store(table, authorizer, &traces).await
    }

    async fn of_store(table: &Table, authorizer: Arc<dyn access::Authorizer>, traces: &traces::store::Store) -> Self {
        let tracking = tracking::store::Store::with_lease(table.clone(), ROOT, LEASE);
        tracking.experiment_create_default(&mlflow_api::Workspace::default()).await.unwrap();
        Self(TestClient(service::join_routers(
            traces::router(traces, authorizer),
            [tracking::router(&tracking, test_site::everybody())],
        )))
    }

    pub(crate) async fn experiment(&self, name: &str) -> String {
        let answer = self.post("experiments/create", json!({ "name": name })).await.ok();
        answer["experiment_id"].as_str().unwrap().to_owned()
    }

    /// Exports spans to the default experiment.
    pub(crate) async fn export(&self, spans: &[Value]) -> TestResponse {
        self.call_at("POST", "/v1/traces", export(spans)).await
    }

    /// Exports spans to another experiment.
    pub(crate) async fn export_to(&self, experiment: &str, spans: &[Value]) -> TestResponse {
        let request = http::Request::post("/v1/traces").header("content-type", "application/json");
        let request = request.header("x-mlflow-experiment-id", experiment);
        self.send(request.body(axum::body::Body::from(export(spans))).unwrap()).await
    }

    /// Sends a trace without its spans.
    pub(crate) async fn start(&self, info: &Value) -> TestResponse {
        self.call_at("POST", ALL, json!({ "trace": { "trace_info": info } }).to_string()).await
    }

    /// Returns a trace without its spans.
    pub(crate) async fn info(&self, number: u32) -> Value {
        let path = format!("{ALL}/{}", id(number));
        self.get_at(&path, &[]).await.ok()["trace"]["trace_info"].take()
    }

    /// Returns the ids of all traces that a search of these experiments finds, read in pages of
    /// this size.
    pub(crate) async fn found(&self, experiments: &[&str], filter: &str, order: &str, page: u64) -> Vec<String> {
        let places: Vec<_> =
            experiments.iter().map(|id| json!({ "mlflow_experiment": { "experiment_id": id } })).collect();
        let order = if order.is_empty() { json!([]) } else { json!([order]) };
        let mut body = json!({ "locations": places, "filter": filter, "order_by": order, "max_results": page });
        let mut found = Vec::new();
        loop {
            let answer = self.call_at("POST", &format!("{ALL}/search"), body.to_string()).await.ok();
            let traces = answer["traces"].as_array().cloned().unwrap_or_default();
            found.extend(traces.iter().map(|trace| trace["trace_id"].as_str().unwrap().to_owned()));
            match answer["next_page_token"].as_str() {
                Some(token) => body["page_token"] = token.into(),
                None => return found,
            }
        }
    }

    /// Returns the names of a trace's spans.
    pub(crate) async fn spans(&self, number: u32) -> Vec<String> {
        let asked = [("trace_id", id(number)), ("allow_partial", "true".to_owned())];
        let asked = asked.each_ref().map(|(name, value)| (*name, value.as_str()));
        let trace = self.get_at(&format!("{ALL}/get"), &asked).await.ok()["trace"].take();
        let spans = trace["spans"].as_array().cloned().unwrap_or_default();
        spans.iter().map(|span| span["name"].as_str().unwrap().to_owned()).collect()
    }
}
