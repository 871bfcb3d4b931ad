//! Creations whose requests fail in every possible way, see [`test_site::creations`].

use std::collections::BTreeSet;
use std::time::Duration;

use embedded_engine::faults::InjectedFault;
use key_schema::rows;
use serde_json::{Value, json};
use table::{Condition, Item, number};
use test_site::creations::{Creation, CreationSetup};
use test_site::{TableDump, TestClient};
use tokio::time::timeout;

use crate::server::Site;

/// Tests a creation that posts `body` for an experiment's id. `count` returns how many entities of
/// each kind are in the table.
async fn check(path: &'static str, count: fn(&TableDump) -> Vec<usize>, body: fn(&str) -> Value) {
    let ground = async || {
        let site = Site::new().await;
        let other = site.other().await;
        let body = body(&other.experiment("e").await);
        let faulty = TestClient::clone(&*site.impatient().await);
        CreationSetup { faulty, other: TestClient::clone(&other), body, site: test_site::TestEnvironment::clone(&site) }
    };
    Creation { path, count, adds: &[1] }.check(ground).await;
}

/// Returns entries that are each too large for their document.
fn entries(count: usize) -> Vec<Value> {
    (0..count).map(|number| json!({ "key": format!("k{number:03}"), "value": "v".repeat(1_100) })).collect()
}

/// Checks whether a key is a row of this kind in the partition of an experiment, and its sort key
/// has this many parts.
fn is_row(key: &str, kind: &str, parts: usize) -> bool {
    let Some((partition, sort)) = key.split_once(' ') else { return false };
    partition.starts_with("EXP#") && sort.starts_with(kind) && sort.split('#').count() == parts
}

#[tokio::test]
async fn experiments() {
    let count = |dump: &TableDump| vec![dump.keys().filter(|key| key.contains(" EXPNAME#")).count()];
    for body in [|_: &str| json!({ "name": "new" }), |_: &str| json!({ "name": "new", "tags": entries(90) })] {
        check("2.0/mlflow/experiments/create", count, body).await;
    }
}

#[tokio::test]
async fn runs() {
    let count = |dump: &TableDump| vec![dump.keys().filter(|key| is_row(key, "R#", 2)).count()];
    let big = |id: &str| json!({ "experiment_id": id, "tags": entries(120) });
    for body in [|id: &str| json!({ "experiment_id": id }), big] {
        check("2.0/mlflow/runs/create", count, body).await;
    }
}

#[tokio::test]
async fn logged_models() {
    let count = |dump: &TableDump| vec![dump.keys().filter(|key| is_row(key, "LM#", 2)).count()];
    let big = |id: &str| json!({ "experiment_id": id, "name": "m", "params": entries(120) });
    for body in [|id: &str| json!({ "experiment_id": id, "name": "m" }), big] {
        check("2.0/mlflow/logged-models", count, body).await;
    }
}

/// Rows that were written before their document are ignored as long as the document does not exist.
/// Neither a search nor a history shows an incomplete run.
#[tokio::test]
async fn rows_without_their_document_are_nobodys() {
    let site = Site::new().await;
    let other = site.other().await;
    let experiment = other.experiment("e").await;
    let run = other.run(&experiment).await;
    let server = site.impatient().await;
    // Only two requests succeed: the one that reads the experiment, and one of five that write
    // rows. The other four, and the transaction, are throttled.
    site.faults.trouble_at(InjectedFault::Throttled, 3, u64::MAX);
    let body = json!({ "experiment_id": experiment, "tags": entries(200) });
    server.post("runs/create", body).await.refused(429, "RESOURCE_EXHAUSTED");
    site.faults.work_again();
    // The error may be returned while a request is still in flight, so the test waits for its
    // write.
    let are_written = async { while !site.dump().await.keys().any(|key| key.contains("#TAG#")) {} };
    timeout(Duration::from_secs(30), are_written).await.expect("rows are written");
    assert_eq!(other.search(json!({ "experiment_ids": [experiment] })).await, [run]);
}

/// The counter of experiment ids may be too low after a backup was restored.
#[tokio::test]
async fn a_counter_that_was_set_back_catches_up_in_few_steps() {
    let site = Site::new().await;
    let server = &site.server;
    let mut used = BTreeSet::new();
    for number in 0..40 {
        used.insert(server.experiment(&format!("e{number}")).await);
    }
    let counter = Item::new(rows::Config::key(&"experiment_counter".into())).with("count", number(0));
    site.table.put(counter, &Condition::Always).await.unwrap();
    site.faults.reset_calls();
    assert!(used.insert(server.experiment("new").await), "{used:?}");
    assert!(used.insert(server.experiment("newer").await), "{used:?}");
    let updates = site.faults.calls("UpdateItem");
    assert!(updates <= 8, "{updates} numbers");
}
