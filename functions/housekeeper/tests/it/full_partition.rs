//! An experiment whose partition has reached its maximum size.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use embedded_engine::limits::EngineLimits;
use retention::NamedEntities;
use serde_json::{Value, json};
use table::Table;
use test_site::TABLE;
use tracing::subscriber::DefaultGuard;

use crate::test_server::{TestServer, collect, remove_named, text};

/// Limits the partition of the experiment to one byte, so that it is larger than allowed from now
/// on.
fn full(lab: TestServer, experiment: &str) -> (TestServer, Table) {
    let limits = EngineLimits::new(&lab.site.engine);
    let partition = format!("EXP#{experiment}");
    limits.set_collection_limit(move |of| (of == partition).then_some(1));
    let table = Table::new(limits.client(), TABLE);
    (lab.over(&table), table)
}

async fn refused(lab: &TestServer, path: &str, body: Value) {
    let message = lab.api.post(path, body).await.refused(400, "BAD_REQUEST");
    assert!(message.contains("10 GB") && message.contains("mlflow-serverless gc"), "{path}: {message}");
}

#[tokio::test]
async fn logging_is_refused_and_a_run_can_be_ended() {
    let lab = TestServer::new().await;
    let experiment = lab.experiment("e").await;
    let (indexed, marked) = (lab.run(&experiment).await, lab.run(&experiment).await);
    lab.index().await;
    lab.post("runs/set-tag", json!({ "run_id": marked, "key": "k", "value": "v" })).await;
    let (lab, _) = full(lab, &experiment);
    refused(&lab, "runs/create", json!({ "experiment_id": experiment })).await;
    for run in [&indexed, &marked] {
        refused(&lab, "runs/log-metric", json!({ "run_id": run, "key": "x", "value": 1, "timestamp": 1, "step": 1 }))
            .await;
        refused(&lab, "runs/log-parameter", json!({ "run_id": run, "key": "x", "value": "y" })).await;
        let end = json!({ "run_id": run, "status": "FINISHED", "end_time": 1_700_000_000_000_i64 });
        lab.post("runs/update", end.clone()).await;
        let found = lab.api.get("runs/get", &[("run_id", run)]).await.ok();
        assert_eq!(found["run"]["info"]["status"], "FINISHED");
        assert_eq!(found["run"]["info"]["end_time"], 1_700_000_000_000_i64);
        // The request is sent again, as by a client that received no response.
        lab.post("runs/update", end).await;
    }
    let asked = json!({ "experiment_ids": [experiment], "filter": "attributes.status = 'FINISHED'" });
    assert_eq!(lab.post("runs/search", asked).await["runs"].as_array().unwrap().len(), 2);
    let running = json!({ "experiment_ids": [experiment], "filter": "attributes.status = 'RUNNING'" });
    assert_eq!(lab.post("runs/search", running).await.get("runs"), None);
}

/// A writer that collects the log as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Captures the log of this thread from now on. No other test runs on this thread.
    fn begin() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).without_time().finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// Returns the lines of the log about partitions that are nearly full.
    fn said(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains("a partition is nearly full")).map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn the_log_tells_of_a_partition_that_is_nearly_full() {
    let lab = TestServer::new().await;
    let experiment = lab.experiment("e").await;
    let limits = EngineLimits::new(&lab.site.engine);
    let partition = format!("EXP#{experiment}");
    limits.set_collection_limit(move |of| (of == partition).then_some(100_000));
    let table = Table::new(limits.client(), TABLE).telling_of_full_partitions();
    let lab = lab.over(&table);
    let (log, _logging) = Log::begin();
    let mut size = 0;
    while size < 90_000 {
        lab.run(&experiment).await;
        size = limits.collection_bytes(TABLE, &format!("EXP#{experiment}")).await.unwrap();
        assert_eq!(log.said().is_empty(), size < 80_000, "{size} bytes");
    }
    let said = log.said();
    assert_eq!(said.len(), 1, "once in 20 minutes");
    assert!(said[0].contains(&format!("EXP#{experiment}")) && said[0].contains("gigabytes=8"), "{said:?}");
}

/// Only the indexer writes to the partitions of lists, and only in batches. A warning must also be
/// logged if one of these partitions is nearly full.
#[tokio::test]
async fn the_log_tells_of_a_list_that_is_nearly_full() {
    let lab = TestServer::new().await;
    let experiment = lab.experiment("e").await;
    let limits = EngineLimits::new(&lab.site.engine);
    let partition = format!("IX#{experiment}#M#loss");
    let list = partition.clone();
    limits.set_collection_limit(move |of| (of == list).then_some(1_000));
    let table = Table::new(limits.client(), TABLE).telling_of_full_partitions();
    let (log, _logging) = Log::begin();
    let mut size = 0;
    while size < 900 {
        // This run appears in a single list.
        let new = json!({ "experiment_id": experiment, "start_time": 1 });
        let run = text(&lab.post("runs/create", new).await["run"]["info"]["run_id"]);
        let point = |at: i64| json!({ "key": "loss", "value": at, "timestamp": at, "step": at });
        let metrics: Vec<_> = (0..12).map(point).collect();
        lab.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await;
        lab.index_over(table.clone()).await;
        size = limits.collection_bytes(TABLE, &partition).await.unwrap();
        assert_eq!(log.said().is_empty(), size < 800, "{size} bytes");
    }
    let said = log.said();
    assert_eq!(said.len(), 1, "once in 20 minutes");
    assert!(said[0].contains(&partition), "{said:?}");
}

#[tokio::test]
async fn removing_makes_room_for_runs_and_points() {
    let lab = TestServer::new().await;
    let experiment = lab.experiment("e").await;
    let (deleted, active) = (lab.run(&experiment).await, lab.run(&experiment).await);
    lab.post("runs/delete", json!({ "run_id": deleted })).await;
    lab.index().await;
    let partition = format!("EXP#{experiment}");
    let limits = EngineLimits::new(&lab.site.engine);
    let size = usize::try_from(limits.collection_bytes(TABLE, &partition).await.unwrap()).unwrap();
    // From here on, the partition is at its maximum size.
    limits.set_collection_limit(move |of| (of == partition).then_some(size));
    let table = Table::new(limits.client(), TABLE);
    let lab = lab.over(&table);
    let tag = json!({ "run_id": active, "key": "k", "value": "v" });
    let point = json!({ "run_id": active, "key": "x", "value": 1, "timestamp": 1, "step": 1 });
    let new = json!({ "experiment_id": experiment });
    for (path, body) in [("runs/set-tag", &tag), ("runs/log-metric", &point), ("runs/create", &new)] {
        refused(&lab, path, body.clone()).await;
    }
    assert_eq!(collect(&lab.retention_over(table), None).await.removed.len(), 1);

    lab.post("runs/set-tag", tag).await;
    lab.post("runs/log-metric", point).await;
    let run = text(&lab.post("runs/create", new).await["run"]["info"]["run_id"]);
    lab.post("runs/log-metric", json!({ "run_id": run, "key": "x", "value": 2, "timestamp": 2, "step": 2 })).await;
    for run in [&active, &run] {
        let history = lab.api.get("metrics/get-history", &[("run_id", run), ("metric_key", "x")]).await.ok();
        assert_eq!(history["metrics"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn removing_makes_room() {
    let lab = TestServer::new().await;
    let experiment = lab.experiment("e").await;
    let (deleted, active, model) = (lab.run(&experiment).await, lab.run(&experiment).await, lab.run(&experiment).await);
    let model = lab.model(&experiment, &model).await;
    lab.post("runs/delete", json!({ "run_id": deleted })).await;
    lab.delete_model(&model).await;
    lab.index().await;
    let (lab, table) = full(lab, &experiment);
    let retention = lab.retention_over(table);
    assert_eq!(collect(&retention, None).await.removed.len(), 2);
    assert!(lab.items(&deleted).await.is_empty() && lab.items(&model).await.len() <= 1);

    // Deleting a run fails, because it adds data to the partition. Permanent deletion does not add
    // data.
    refused(&lab, "runs/delete", json!({ "run_id": active })).await;
    let named = NamedEntities { runs: vec![active.clone()], even_active: true, ..NamedEntities::default() };
    assert_eq!(remove_named(&retention, &named).await.removed.len(), 1);
    assert!(lab.items(&active).await.is_empty());
    lab.api.get("runs/get", &[("run_id", &active)]).await.missing();

    lab.post("experiments/delete", json!({ "experiment_id": experiment })).await;
    assert_eq!(collect(&retention, None).await.kept, []);
    assert!(lab.items(&format!("EXP#{experiment}")).await.is_empty());
}
