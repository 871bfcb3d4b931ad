//! What waits for the disk holds nobody up who does not.

use embedded_engine::Engine;
use rusqlite::Connection;
use serde_json::json;
use table::Table;

use crate::site::{TABLE, functions, send};

/// On one thread, so that a single call that blocked it would hold up everything.
#[tokio::test]
async fn health_is_answered_while_writes_wait() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path()).unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    let router = functions(&table);
    let holder = Connection::open(directory.path().join("dynamodb.sqlite")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writes: Vec<_> = (0..20)
        .map(|number| {
            let router = router.clone();
            let new = json!({ "name": format!("experiment {number}") });
            tokio::spawn(async move { send(&router, "POST", "/api/2.0/mlflow/experiments/create", &new).await })
        })
        .collect();
    // Each of them begins, and waits for what is held.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(send(&router, "GET", "/health", &json!(null)).await.0, 200);
    assert!(writes.iter().all(|write| !write.is_finished()), "they were answered before");
    holder.execute_batch("ROLLBACK").unwrap();
    for write in writes {
        let (status, answer) = write.await.unwrap();
        assert_eq!(status, 200, "{answer}");
    }
}
