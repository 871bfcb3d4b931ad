//! Requests that wait for the disk do not hold up other requests.

use std::time::{Duration, Instant};

use axum::Router;
use embedded_engine::Engine;
use rusqlite::Connection;
use serde_json::{Value, json};
use table::Table;

use crate::test_server::{TABLE, functions, send};

/// Tests health checks while writes wait for the disk. The test runs on a single thread, so that a
/// blocking call would hold up everything else.
#[tokio::test]
async fn health_is_answered_while_writes_wait() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path()).unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    let router = functions(&table).await;
    let holder = Connection::open(directory.path().join("dynamodb.sqlite")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writes: Vec<_> = (0..20)
        .map(|number| {
            let router = router.clone();
            let new = json!({ "name": format!("experiment {number}") });
            tokio::spawn(async move { send(&router, "POST", "/api/2.0/mlflow/experiments/create", &new).await })
        })
        .collect();
    // Each write has started, and waits for the disk's lock.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(send(&router, "GET", "/health", &json!(null)).await.0, 200);
    assert!(writes.iter().all(|write| !write.is_finished()), "the writes did not wait");
    holder.execute_batch("ROLLBACK").unwrap();
    for write in writes {
        let (status, answer) = write.await.unwrap();
        assert_eq!(status, 200, "{answer}");
    }
}

/// A search that never yields would hold up all other requests until it has read its page. The test
/// runs on a single thread, so that this would be noticed.
#[tokio::test]
async fn health_is_answered_while_a_search_computes() {
    let table = Table::new(Engine::memory().unwrap().client(), TABLE);
    table.create_if_missing().await.unwrap();
    let router = functions(&table).await;
    let post = async |path: &str, body: Value| {
        let (status, answer) = send(&router, "POST", &format!("/api/2.0/mlflow/{path}"), &body).await;
        assert_eq!(status, 200, "{answer}");
        answer
    };
    let experiment = post("experiments/create", json!({ "name": "e" })).await["experiment_id"].clone();
    // Every run has to be compared with all patterns, because only the last one does not match.
    let note = format!("{}b", "a".repeat(4_000));
    for number in 0..100 {
        let tags = json!([{ "key": "note", "value": note }]);
        post("runs/create", json!({ "experiment_id": experiment, "start_time": number, "tags": tags })).await;
    }
    let matching = format!("tags.note LIKE '%{}b%' AND ", "a_".repeat(300));
    let filter = format!("{}tags.note LIKE '%c%'", matching.repeat(20));
    let wanted = json!({ "experiment_ids": [experiment], "filter": filter });
    // Other programs may occupy the processor during one round, but are unlikely to do so during
    // all rounds.
    let mut rounds = Vec::new();
    loop {
        let (longest, searched) = while_it_searches(&router, &wanted).await;
        if longest * 3 < searched {
            break;
        }
        rounds.push((longest, searched));
        assert!(rounds.len() < 20, "longest wait of /health and duration of the search, per round: {rounds:?}");
    }
}

/// Returns the longest response time of `/health` during a search without results, and the duration
/// of the search.
async fn while_it_searches(router: &Router, wanted: &Value) -> (Duration, Duration) {
    let (searching, wanted) = (router.clone(), wanted.clone());
    let began = Instant::now();
    let search = tokio::spawn(async move {
        let found = send(&searching, "POST", "/api/2.0/mlflow/runs/search", &wanted).await;
        (found, began.elapsed())
    });
    let (mut longest, mut last) = (Duration::ZERO, Instant::now());
    while !search.is_finished() {
        assert_eq!(send(router, "GET", "/health", &json!(null)).await.0, 200);
        longest = longest.max(last.elapsed());
        last = Instant::now();
        tokio::task::yield_now().await;
    }
    let ((status, found), searched) = search.await.unwrap();
    assert_eq!((status, &found["runs"]), (200, &Value::Null), "{found}");
    (longest, searched)
}
