//! Permanent removal of entities while clients restore them, and while another removal runs.

use serde_json::json;
use table::Table;
use test_site::TABLE;

use crate::test_server::{Outcome, TestServer, collect};

/// Starts a task that permanently removes everything that is deleted. Its requests to the table can
/// be paused by the test.
fn collecting(lab: &TestServer) -> tokio::task::JoinHandle<Outcome> {
    let retention = lab.retention_over(Table::new(lab.site.faults.client(), TABLE));
    tokio::spawn(async move { collect(&retention, None).await })
}

async fn deleted_run(lab: &TestServer, experiment: &str) -> String {
    let run = lab.run(experiment).await;
    lab.post("runs/delete", json!({ "run_id": run })).await;
    run
}

async fn is_whole(lab: &TestServer, run: &str) {
    let found = lab.api.get("runs/get", &[("run_id", run)]).await.ok();
    assert_eq!(found["run"]["data"]["metrics"].as_array().unwrap().len(), 151);
    assert_eq!(lab.artifacts(run).len(), 4);
}

#[tokio::test]
async fn restored_before_its_row_is_written_a_run_stays_whole() {
    let lab = TestServer::new().await;
    let run = deleted_run(&lab, "0").await;
    let mut gate = lab.site.faults.pause_before("BatchWriteItem", 1);
    let collecting = collecting(&lab);
    gate.reached().await;
    lab.post("runs/restore", json!({ "run_id": run })).await;
    gate.open();
    let outcome = collecting.await.unwrap();
    assert!(outcome.removed.is_empty() && outcome.kept.len() == 1, "{outcome:?}");
    is_whole(&lab, &run).await;
    assert!(lab.items("REMOVAL").await.is_empty());
}

#[tokio::test]
async fn behind_its_row_a_run_cannot_be_restored() {
    let lab = TestServer::new().await;
    let run = deleted_run(&lab, "0").await;
    let mut gate = lab.site.faults.pause_after("BatchWriteItem", 1);
    let collecting = collecting(&lab);
    gate.reached().await;
    lab.api.post("runs/restore", json!({ "run_id": run })).await.refused(503, "TEMPORARILY_UNAVAILABLE");
    gate.open();
    assert_eq!(collecting.await.unwrap().removed.len(), 1);
    lab.api.post("runs/restore", json!({ "run_id": run })).await.missing();
    assert!(lab.items(&run).await.is_empty());
}

#[tokio::test]
async fn an_experiment_is_restored_before_or_not_at_all() {
    for is_before in [true, false] {
        let lab = TestServer::new().await;
        let experiment = lab.experiment("e").await;
        let run = lab.run(&experiment).await;
        lab.post("experiments/delete", json!({ "experiment_id": experiment })).await;
        let mut gate = if is_before {
            lab.site.faults.pause_before("BatchWriteItem", 1)
        } else {
            lab.site.faults.pause_after("BatchWriteItem", 1)
        };
        let collecting = collecting(&lab);
        gate.reached().await;
        let restored = lab.api.post("experiments/restore", json!({ "experiment_id": experiment })).await;
        gate.open();
        let outcome = collecting.await.unwrap();
        if is_before {
            restored.ok();
            assert!(outcome.removed.is_empty(), "{outcome:?}");
            is_whole(&lab, &run).await;
        } else {
            restored.refused(503, "TEMPORARILY_UNAVAILABLE");
            assert_eq!(outcome.removed.len(), 2);
            lab.api.post("experiments/restore", json!({ "experiment_id": experiment })).await.missing();
        }
    }
}

/// A run that was deleted individually becomes active again when its experiment is deleted and
/// restored, even during a removal.
#[tokio::test]
async fn a_run_that_its_experiment_restores_meanwhile_stays() {
    let lab = TestServer::new().await;
    let experiment = lab.experiment("e").await;
    let run = deleted_run(&lab, &experiment).await;
    let mut gate = lab.site.faults.pause_before("TransactWriteItems", 1);
    let collecting = collecting(&lab);
    gate.reached().await;
    for verb in ["delete", "restore"] {
        lab.post(&format!("experiments/{verb}"), json!({ "experiment_id": experiment })).await;
    }
    gate.open();
    let outcome = collecting.await.unwrap();
    assert!(outcome.removed.is_empty() && outcome.kept.len() == 1, "{outcome:?}");
    let found = lab.api.get("runs/get", &[("run_id", &run)]).await.ok();
    assert_eq!(found["run"]["info"]["lifecycle_stage"], "active");
    assert!(lab.items("REMOVAL").await.is_empty());
}

#[tokio::test]
async fn two_removals_at_a_time_do_no_harm() {
    for call in 1..12 {
        let lab = TestServer::new().await;
        let (run, other) = (deleted_run(&lab, "0").await, lab.run("0").await);
        let mut gate = lab.site.faults.pause_before("BatchGetItem", call);
        let first = collecting(&lab);
        tokio::select! {
            () = gate.reached() => {}
            () = async { while !first.is_finished() { tokio::task::yield_now().await } } => {}
        }
        lab.collect(None).await;
        gate.open();
        first.await.unwrap();
        assert!(lab.items(&run).await.is_empty());
        assert!(lab.items("REMOVAL").await.is_empty());
        is_whole(&lab, &other).await;
    }
}

/// The indexer writes a run's copy and entries after the run was removed. A record of the stream
/// then triggers their deletion.
#[tokio::test]
async fn what_the_indexer_writes_late_is_cleared_up() {
    let lab = TestServer::new().await;
    let run = deleted_run(&lab, "0").await;
    let mut gate = lab.site.faults.pause_before("PutItem", 1);
    let indexing = lab.index_over(Table::new(lab.site.faults.client(), TABLE));
    let removing = async {
        gate.reached().await;
        assert_eq!(lab.collect(None).await.removed.len(), 1);
        gate.open();
    };
    Box::pin(futures::future::join(indexing, removing)).await;
    assert!(lab.items(&run).await.is_empty());
}
