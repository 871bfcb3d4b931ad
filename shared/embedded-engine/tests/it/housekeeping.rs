//! Opening, copying, sweeping.

use std::os::unix::fs::PermissionsExt;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::types::{AttributeValue, TimeToLiveSpecification};
use embedded_engine::{Engine, Error};
use serde_json::json;

use crate::table::{TABLE, create, engine, get, indexed_item, item, key, put, text};

#[tokio::test]
async fn a_directory_keeps_its_table() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("not there/yet");
    let engine = Engine::open(&directory).unwrap();
    create(&engine.client()).await;
    put(&engine.client(), indexed_item("p", "a", 1)).await;
    drop(engine);

    let engine = Engine::open(&directory).unwrap();
    assert_eq!(get(&engine.client(), key("p", "a")).await, Some(indexed_item("p", "a", 1)));
    let second = Engine::open(&directory).unwrap();
    put(&second.client(), key("p", "b")).await;
    assert!(get(&engine.client(), key("p", "b")).await.is_some());
    for file in directory.read_dir().unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[tokio::test]
async fn a_snapshot_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let on_disk = Engine::open(directory.path()).unwrap();
    create(&on_disk.client()).await;
    for engine in [engine().await, on_disk] {
        put(&engine.client(), key("p", "a")).await;
        let snapshot = engine.snapshot().unwrap();
        put(&engine.client(), key("p", "b")).await;
        assert!(get(&snapshot.client(), key("p", "a")).await.is_some());
        assert_eq!(get(&snapshot.client(), key("p", "b")).await, None);
        put(&snapshot.client(), key("p", "c")).await;
        assert_eq!(get(&engine.client(), key("p", "c")).await, None);
    }
}

#[tokio::test]
async fn expired_items_are_swept() {
    let engine = engine().await;
    let client = engine.client();
    let ttl = TimeToLiveSpecification::builder().attribute_name("ttl").enabled(true).build().unwrap();
    client.update_time_to_live().table_name(TABLE).time_to_live_specification(ttl).send().await.unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    for (sort, at) in [("past", now - 60), ("future", now + 60)] {
        let ttl = AttributeValue::N(at.to_string());
        put(&client, item([("PK", text("p")), ("SK", text(sort)), ("ttl", ttl)])).await;
    }
    assert_eq!(engine.sweep_ttl().await.unwrap(), 1);
    assert_eq!(get(&client, key("p", "past")).await, None);
    assert!(get(&client, key("p", "future")).await.is_some());
    let removed = engine.stream(TABLE).await.unwrap().unwrap().oldest(1_000).await.unwrap().pop().unwrap();
    assert_eq!(
        (&removed["eventName"], &removed["userIdentity"]["principalId"]),
        (&json!("REMOVE"), &json!("dynamodb.amazonaws.com"))
    );
}

#[tokio::test]
async fn a_refused_call_is_an_error() {
    let engine = Engine::memory().unwrap();
    let refused = engine.call("DescribeTable", json!({ "TableName": "unknown" })).await.unwrap_err();
    assert!(matches!(&refused, Error::Refused(answer) if answer.contains("ResourceNotFoundException")), "{refused}");
    let unknown = engine.call("ExecuteStatement", json!({})).await.unwrap_err();
    assert!(matches!(&unknown, Error::Refused(answer) if answer.contains("UnknownOperationException")), "{unknown}");
}
