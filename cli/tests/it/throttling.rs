//! Requests to a throttled partition are answered with 429 and `Retry-After` within a second.
//! Requests to the rest of the table are not affected.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use embedded_engine::Engine;
use embedded_engine::limits::{EngineLimits, Throughput};
use http::header::RETRY_AFTER;
use mlflow_api::Workspace;
use runtime::clock::{Moment, SimulatedClock};
use serde_json::{Value, json};
use table::{RetryPolicy, Table};
use test_site::all_troubles;
use test_site::route_samples::SampleClient;

use crate::test_server::{ROOT, TABLE, send, with_files};

/// Maximum total time that a throttled call may pause. The time for computing is not limited,
/// because the machine may be busy.
const SOON: Duration = Duration::from_secs(1);
/// Maximum number of partitions that a call accesses one after another.
const STEPS: usize = 20;

/// The functions over an engine with throughput limits, and a run that is independent of the tested
/// call.
struct Site {
    limits: EngineLimits,
    router: Router,
    /// Path that reads the independent run.
    bystander: String,
    /// Partitions that are needed to read the independent run.
    aside: BTreeSet<String>,
}

impl Site {
    async fn new(retry: RetryPolicy, directory: &Path) -> Self {
        let limits = EngineLimits::new(&Engine::memory().unwrap());
        let table = Table::new(limits.client(), TABLE).with_retry(retry);
        table.create_if_missing().await.unwrap();
        let store = tracking::store::Store::new(table.clone(), ROOT);
        store.experiment_create_default(&Workspace::default()).await.unwrap();
        let router = with_files(&table, directory).await;
        let mut walk = SampleClient::new(router.clone());
        let experiment = walk.post("experiments/create", json!({ "name": "bystander" })).await;
        let run = walk.post("runs/create", json!({ "experiment_id": experiment["experiment_id"] })).await;
        let bystander = format!("/api/2.0/mlflow/runs/get?run_id={}", run["run"]["info"]["run_id"].as_str().unwrap());
        limits.reset_usage();
        assert_eq!(send(&router, "GET", &bystander, &Value::Null).await.0, 200);
        let used = limits.usage().into_iter().filter(|(_, usage)| usage.read_units > 0.0);
        let aside = used.map(|(partition, _)| partition).collect();
        Self { limits, router, bystander, aside }
    }

    /// Throttles all partitions except the given ones and those of the independent run. If many
    /// partitions of a kind are to be open, all partitions of that kind are opened, because an
    /// experiment that is created again has a different number.
    fn open(&self, open: &BTreeSet<String>) {
        let open: BTreeSet<_> = open.union(&self.aside).cloned().collect();
        let are_many = |kind: &str| open.iter().filter(|partition| kind_of(partition) == kind).count() > 3;
        let kinds: BTreeSet<_> = open.iter().map(|partition| kind_of(partition).to_owned()).collect();
        let kinds: BTreeSet<_> = kinds.into_iter().filter(|kind| are_many(kind)).collect();
        let takes = move |partition: &str| open.contains(partition) || kinds.contains(kind_of(partition));
        self.limits.set_throughput(move |partition| (!takes(partition)).then_some(Throughput::NONE));
        self.limits.reset_usage();
    }

    /// Opens all partitions.
    fn open_all(&self) {
        self.limits.set_throughput(|_| None);
    }

    /// Returns the partitions that have throttled requests since the limits last changed, with the
    /// number of those requests.
    fn throttled(&self) -> Vec<(String, u64)> {
        let counted = self.limits.usage().into_iter();
        let counted = counted.map(|(partition, usage)| (partition, usage.throttled_reads + usage.throttled_writes));
        counted.filter(|(_, requests)| *requests > 0).collect()
    }

    async fn check_bystander(&self) {
        let begin = Moment::now();
        let (status, answer) = send(&self.router, "GET", &self.bystander, &Value::Null).await;
        assert_eq!(status, 200, "a run of another experiment: {answer}");
        assert_eq!(begin.age(), Duration::ZERO, "the independent run must not wait");
    }

    /// Sends a request while all partitions are throttled. Then repeats it until it succeeds, and
    /// each time opens the partitions that have throttled it.
    async fn step_by_step(&self, request: Request, next: Next) -> Response {
        let call = format!("{} {}", request.method(), request.uri());
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let mut open = BTreeSet::new();
        for _ in 0..STEPS {
            self.open(&open);
            let begin = Moment::now();
            let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
            let answer = next.clone().run(request).await;
            let lasted = begin.age();
            let throttled = self.throttled();
            // The deletion of an MCP server or a skill also succeeds if only the removal of its
            // versions is throttled. The housekeeper removes them.
            let has_versions = call.contains("/mcp-servers/") || call.contains("/skills/");
            let is_deleted = call.starts_with("DELETE ") && has_versions && answer.status().is_success();
            if throttled.is_empty() || is_deleted {
                self.open_all();
                return answer;
            }
            assert!(lasted < SOON, "{call}: {lasted:?} for {throttled:?}");
            check_refusal(&call, answer).await;
            if open.is_empty() || all_troubles() {
                self.check_bystander().await;
            }
            open.extend(throttled.into_iter().map(|(partition, _)| partition));
        }
        panic!("{call} is still throttled with these partitions open: {open:?}");
    }
}

/// Returns the method and path of a request, with a placeholder for parts that contain digits.
fn endpoint_of(request: &Request) -> String {
    let is_id = |part: &str| part.contains(|letter: char| letter.is_ascii_digit()) && !part.contains('.');
    let parts: Vec<_> = request.uri().path().split('/').map(|part| if is_id(part) { "{}" } else { part }).collect();
    format!("{} {}", request.method(), parts.join("/"))
}

/// Returns the kind of a partition, such as `EXP` for `EXP#1`.
fn kind_of(partition: &str) -> &str {
    partition.split('#').next().unwrap_or_default()
}

async fn check_refusal(call: &str, answer: Response) {
    let status = answer.status().as_u16();
    let seconds = answer.headers().get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok()?.parse::<u16>().ok());
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = "There are too many requests for the same data at this time. Try again later.";
    if call.ends_with("/graphql") {
        // GraphQL reports errors in the body, and not by the status of the response.
        assert_eq!((status, &body["errors"]), (200, &json!([message])), "{call}: {body}");
        return;
    }
    assert_eq!(status, 429, "{call}: {body}");
    // Exporters of spans have a shorter retry delay than MLflow's client.
    let expected = if call == "POST /v1/traces" { 1..=3 } else { 5..=15 };
    assert!(seconds.is_some_and(|seconds| expected.contains(&seconds)), "{call}: {seconds:?}");
    let expected = json!({
        "error_code": "RESOURCE_EXHAUSTED",
        "message": message,
        "sqlstate": "KAMC3",
        "error_class": "CP_REQUEST_RATE_LIMITED",
    });
    assert_eq!(body, expected, "{call}");
}

/// Runs a test on a simulated clock, which only advances while a task sleeps.
async fn timed(test: impl Future<Output = ()>) {
    let clock = SimulatedClock::begin();
    tokio::select! { () = test => {}, () = clock.drive() => {} }
}

/// Sends requests to all endpoints, with each of the partitions that they need throttled in turn.
/// Every request that was answered with 429 succeeds in the end. A sample covers the first request
/// to each endpoint.
#[tokio::test]
async fn every_endpoint_answers_429_until_the_partitions_it_needs_take_requests() {
    timed(Box::pin(every_endpoint_is_throttled())).await;
}

async fn every_endpoint_is_throttled() {
    let directory = tempfile::tempdir().unwrap();
    let site = Arc::new(Site::new(RetryPolicy::default(), directory.path()).await);
    let (stepped, met) = (Arc::new(Mutex::new(0)), Arc::<Mutex<BTreeSet<String>>>::default());
    let layer = from_fn({
        let (site, stepped) = (Arc::clone(&site), Arc::clone(&stepped));
        move |request: Request, next: Next| {
            let (site, stepped) = (Arc::clone(&site), Arc::clone(&stepped));
            let is_new = met.lock().unwrap().insert(endpoint_of(&request));
            async move {
                if !is_new && !all_troubles() {
                    return next.run(request).await;
                }
                *stepped.lock().unwrap() += 1;
                site.step_by_step(request, next).await
            }
        }
    });
    let mut walk = SampleClient::new(site.router.clone().layer(layer));
    test_site::route_samples::all(&mut walk).await;
    assert!(*stepped.lock().unwrap() > 100);
}

/// Uses the retry settings of functions: three attempts if throttled, and no more.
#[tokio::test]
async fn a_throttled_call_ends_after_three_attempts() {
    timed(Box::pin(calls_are_throttled())).await;
}

async fn calls_are_throttled() {
    let directory = tempfile::tempdir().unwrap();
    let site = Site::new(RetryPolicy::default(), directory.path()).await;
    let mut walk = SampleClient::new(site.router.clone());
    let experiment = walk.post("experiments/create", json!({ "name": "hot" })).await["experiment_id"].clone();
    let run = walk.post("runs/create", json!({ "experiment_id": experiment })).await["run"]["info"]["run_id"].clone();
    // Waits until the leases on the experiment's stage have ended, so that every call starts by
    // accessing the experiment's partition.
    runtime::clock::sleep(Duration::from_millis(350)).await;
    site.open(&BTreeSet::new());
    let metric = json!({ "run_id": run, "key": "loss", "value": 1, "timestamp": 1 });
    for (method, path, body) in [
        ("POST", "/api/2.0/mlflow/runs/log-metric", metric),
        ("GET", "/api/2.0/mlflow/runs/get", json!({ "run_id": run })),
        ("POST", "/api/2.0/mlflow/runs/create", json!({ "experiment_id": experiment })),
        ("POST", "/api/2.0/mlflow/registered-models/create", json!({ "name": "m" })),
        ("GET", "/api/2.0/mlflow/registered-models/get", json!({ "name": "m" })),
        ("GET", "/api/3.0/mlflow/scorers/list", json!({ "experiment_id": experiment })),
        ("GET", "/api/2.0/mlflow/artifacts/list", json!({ "run_id": run })),
    ] {
        site.limits.reset_usage();
        let begin = Moment::now();
        let (status, answer) = send(&site.router, method, path, &body).await;
        let lasted = begin.age();
        assert_eq!(status, 429, "{path}: {answer}");
        assert!(lasted < SOON, "{path}: {lasted:?}");
        let throttled = site.throttled();
        assert!(throttled.iter().any(|(_, attempts)| *attempts == 3), "{path}: {throttled:?}");
        assert!(throttled.iter().all(|(_, attempts)| *attempts <= 3), "{path}: {throttled:?}");
    }
    site.check_bystander().await;
}

/// Runs the startup of a function while the partition of the default experiment is throttled.
#[tokio::test]
async fn a_start_needs_no_partition_of_an_experiment() {
    let limits = EngineLimits::new(&Engine::memory().unwrap());
    let table = Table::new(limits.client(), TABLE);
    table.create_if_missing().await.unwrap();
    tracking::store::Store::new(table.clone(), ROOT).experiment_create_default(&Workspace::default()).await.unwrap();
    limits.set_throughput(|partition| (partition != "CONFIG").then_some(Throughput::NONE));
    assert!(entities::layout::check(&table).await.unwrap());
}
