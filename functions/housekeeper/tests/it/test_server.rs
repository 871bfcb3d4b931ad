//! A server with artifacts in a directory, and the data of its clients.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use artifact_store::{Archive, ArtifactStore};
use embedded_engine::StreamReader;
use fts_indexer::{Indexer, StreamBatch};
use mlflow_api::{ExperimentId, Workspace};
use retention::{NamedEntities, RemovalReport, RemovedEntity, Retention};
use runtime::clock::now_ms;
use serde_json::{Value, json};
use table::Table;
use tempfile::TempDir;
use test_site::{TABLE, TableDump, TestClient, TestEnvironment};
use tracking::store::Store;

/// Length of the leases. It is as short as possible, because every deletion waits for this time.
const LEASE: Duration = Duration::from_millis(2);

pub(crate) struct TestServer {
    pub(crate) site: TestEnvironment,
    pub(crate) api: TestClient,
    stream: StreamReader,
    directory: TempDir,
}

/// The entities that a removal has reported as removed or kept.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) removed: BTreeSet<String>,
    pub(crate) kept: Vec<(String, String)>,
}

struct Log(Mutex<Outcome>);

impl RemovalReport for Log {
    fn removed(&self, entity: RemovedEntity) {
        self.0.lock().unwrap().removed.insert(entity.to_string());
    }

    fn removed_traces(&self, experiment: ExperimentId, traces: u64) {
        self.0.lock().unwrap().removed.insert(format!("{traces} traces of {experiment}"));
    }

    fn removed_histories(&self, experiment: ExperimentId, runs: u64) {
        self.0.lock().unwrap().removed.insert(format!("histories of {runs} runs of {experiment}"));
    }

    fn archived_traces(&self, _: ExperimentId, _: u64) {}

    fn archived_histories(&self, experiment: ExperimentId, runs: u64) {
        self.0.lock().unwrap().removed.insert(format!("archived histories of {runs} runs of {experiment}"));
    }

    fn kept_files(&self, experiment: ExperimentId, why: &str) {
        self.0.lock().unwrap().kept.push((format!("files of {experiment}"), why.to_owned()));
    }

    fn kept(&self, entity: RemovedEntity, why: &str) {
        self.0.lock().unwrap().kept.push((entity.to_string(), why.to_owned()));
    }
}

impl TestServer {
    pub(crate) async fn new() -> Self {
        let site = TestEnvironment::with_stream().await;
        let directory = tempfile::tempdir().unwrap();
        let store = store(&site.table).with_artifacts(ArtifactStore::in_directory(directory.path()));
        store.experiment_create_default(&Workspace::default()).await.unwrap();
        let stream = site.engine.stream(TABLE).await.unwrap().unwrap();
        Self { site, api: TestClient(tracking::router(&store, test_site::everybody())), stream, directory }
    }

    /// Returns this server, changed to access the table through the given handle.
    pub(crate) fn over(self, table: &Table) -> Self {
        Self { api: TestClient(tracking::router(&store(table), test_site::everybody())), ..self }
    }

    pub(crate) fn retention(&self) -> Retention {
        self.retention_over(self.site.table.clone())
    }

    pub(crate) fn retention_over(&self, table: Table) -> Retention {
        Retention::new(table, ArtifactStore::in_directory(self.directory.path()))
    }

    /// Returns the API of a server that accesses the table through the given handle.
    pub(crate) fn api_over(&self, table: &Table) -> TestClient {
        let store = store(table).with_artifacts(ArtifactStore::in_directory(self.directory.path()));
        TestClient(tracking::router(&store, test_site::everybody()))
    }

    /// Returns the API of a server with another archive.
    pub(crate) fn api_with(&self, archive: Archive) -> TestClient {
        TestClient(tracking::router(&store(&self.site.table).with_archive(archive), test_site::everybody()))
    }

    /// Permanently removes all deleted entities, or only those that were deleted before the given
    /// time.
    pub(crate) async fn collect(&self, before: Option<i64>) -> Outcome {
        collect(&self.retention(), before).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        self.api.post(path, body).await.ok()
    }

    pub(crate) async fn experiment(&self, name: &str) -> String {
        text(&self.post("experiments/create", json!({ "name": name })).await["experiment_id"])
    }

    /// Creates a run with every kind of row, and an artifact.
    pub(crate) async fn run(&self, experiment: &str) -> String {
        let new = json!({ "experiment_id": experiment, "start_time": 1, "tags": [{ "key": "big", "value": "t".repeat(1_100) }] });
        let run = text(&self.post("runs/create", new).await["run"]["info"]["run_id"]);
        let metrics: Vec<_> = (0..200)
            .map(|at| json!({ "key": format!("m{}", at % 150), "value": at, "timestamp": at, "step": at }))
            .collect();
        let many: Vec<_> =
            (0..12).map(|at| json!({ "key": "loss", "value": at, "timestamp": at, "step": at })).collect();
        let params = json!([{ "key": "p", "value": "1" }, { "key": "big", "value": "p".repeat(1_100) }]);
        self.post("runs/log-batch", json!({ "run_id": run, "metrics": many })).await;
        self.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics, "params": params })).await;
        let dataset = json!({ "name": "d", "digest": "1", "source_type": "s", "source": "s", "profile": noise() });
        let inputs = json!({ "run_id": run, "datasets": [{ "dataset": dataset, "tags": [] }], "models": [{ "model_id": "m-1" }] });
        self.post("runs/log-inputs", inputs).await;
        self.write(&format!("{experiment}/{run}/artifacts/model/weights"));
        run
    }

    /// Creates a logged model with every kind of row, and an artifact.
    pub(crate) async fn model(&self, experiment: &str, run: &str) -> String {
        let entries = |prefix: &str| json!([{ "key": format!("{prefix}big"), "value": "v".repeat(1_100) }]);
        let new = json!({
            "experiment_id": experiment, "name": "m", "source_run_id": run, "params": entries("p"), "tags": entries("t"),
        });
        let model = text(&self.post("logged-models", new).await["model"]["info"]["model_id"]);
        // The model gets more points than its metrics document has room for.
        for portion in 0..2 {
            let point = |at: i64| json!({ "key": format!("{:0>200}", at), "value": at, "timestamp": at, "step": portion, "model_id": model });
            let metrics: Vec<_> = (0..100).map(point).collect();
            self.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await;
        }
        self.write(&format!("{experiment}/models/{model}/artifacts/weights"));
        model
    }

    pub(crate) async fn delete_model(&self, model: &str) {
        self.api.call("DELETE", &format!("logged-models/{model}"), json!({})).await.ok();
    }

    fn write(&self, path: &str) {
        let path = self.directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }

    /// Returns the paths of artifacts that contain this text.
    pub(crate) fn artifacts(&self, text: &str) -> Vec<PathBuf> {
        let mut directories = vec![self.directory.path().to_owned()];
        let mut found = Vec::new();
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path.clone());
                }
                found.extend(path.to_str().unwrap().contains(text).then_some(path));
            }
        }
        found
    }

    /// Feeds everything in the stream to the indexer.
    pub(crate) async fn index(&self) {
        self.index_over(self.site.table.clone()).await;
    }

    /// Lets time pass until ended runs have been packed, and all of their points are in segments.
    pub(crate) async fn rest(&self) {
        for _ in 0..3 {
            runtime::clock::sleep(Duration::from_mins(2)).await;
            Indexer::new(self.site.table.clone()).as_only_indexer().tick().await.unwrap();
            self.index().await;
        }
    }

    /// Feeds everything in the stream to an indexer whose requests are subject to the injected
    /// faults.
    pub(crate) async fn index_over(&self, table: Table) {
        loop {
            let records = self.stream.oldest(1_000).await.unwrap();
            let Some(last) = records.last().map(|last| text(&last["dynamodb"]["SequenceNumber"])) else { return };
            let answer = Indexer::new(table.clone()).as_only_indexer().handle(StreamBatch { records }).await;
            assert!(answer.batch_item_failures.is_empty(), "{:?}", answer.batch_item_failures);
            self.stream.forget_through(&last).await.unwrap();
        }
    }

    /// Returns all items, except the indexer's rows of postponed runs, which are deleted when they
    /// are due.
    pub(crate) async fn dump(&self) -> TableDump {
        let mut dump = self.site.dump().await;
        dump.retain(|key, _| !key.starts_with("LATER#"));
        dump
    }

    /// Returns the keys of the items that contain this text anywhere.
    pub(crate) async fn items(&self, text: &str) -> Vec<String> {
        let items = self.dump().await.into_iter();
        items.filter(|(key, item)| key.contains(text) || item.to_string().contains(text)).map(|(key, _)| key).collect()
    }
}

/// Returns a text that does not compress well.
fn noise() -> String {
    let next = |last: &u32| Some(last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(7), next).take(6_000).map(|number| number.to_string()).collect()
}

fn store(table: &Table) -> Store {
    Store::with_lease(table.clone(), "mlflow-artifacts:/", LEASE)
}

pub(crate) async fn collect(retention: &Retention, before: Option<i64>) -> Outcome {
    let found = retention.deleted(&Workspace::default(), before).await.unwrap();
    let log = Log(Mutex::default());
    retention.remove(&Workspace::default(), &found, &log).await.unwrap();
    log.0.into_inner().unwrap()
}

pub(crate) async fn remove_named(retention: &Retention, named: &NamedEntities) -> Outcome {
    let found = retention.named(named, None).await.unwrap();
    let log = Log(Mutex::default());
    retention.remove(&Workspace::default(), &found, &log).await.unwrap();
    log.0.into_inner().unwrap()
}

pub(crate) async fn remove_histories(retention: &Retention) -> Outcome {
    let log = Log(Mutex::default());
    retention.remove_old_histories(&Workspace::default(), now_ms(), &log).await.unwrap();
    log.0.into_inner().unwrap()
}

pub(crate) async fn apply_policy(retention: &Retention) -> (bool, Outcome) {
    let log = Log(Mutex::default());
    let is_set = retention.apply_policy(&Workspace::default(), &log).await.unwrap();
    (is_set, log.0.into_inner().unwrap())
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
