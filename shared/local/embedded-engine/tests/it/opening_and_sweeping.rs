//! Opening, copying and sweeping.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, TimeToLiveSpecification};
use embedded_engine::{Engine, EngineError};
use serde_json::json;

use crate::table::{Item, TABLE, create, engine, get, indexed_item, item, key, put, text};

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

#[test]
fn an_empty_directory_may_be_opened_by_several_at_the_same_moment() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let all_are_there = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    all_are_there.wait();
                    Engine::open(directory.path()).unwrap();
                });
            }
        });
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

/// Returns an engine in memory and one in a file, each with the table.
async fn both(directory: &Path) -> [Engine; 2] {
    let on_disk = Engine::open(directory).unwrap();
    create(&on_disk.client()).await;
    [engine().await, on_disk]
}

async fn expire_by(client: &Client, attribute: &str, enabled: bool) {
    let ttl = TimeToLiveSpecification::builder().attribute_name(attribute).enabled(enabled).build().unwrap();
    client.update_time_to_live().table_name(TABLE).time_to_live_specification(ttl).send().await.unwrap();
}

/// Returns an item whose `attribute` contains the time that is this number of seconds in the
/// future.
fn expiring(sort: &str, attribute: &str, seconds: i64) -> Item {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let at = AttributeValue::N(now.saturating_add_signed(seconds).to_string());
    item([("PK", text("p")), ("SK", text(sort)), (attribute, at)])
}

#[tokio::test]
async fn expired_items_are_swept() {
    let directory = tempfile::tempdir().unwrap();
    for engine in both(directory.path()).await {
        let client = engine.client();
        // This item is written before the table has a time to live.
        put(&client, expiring("before", "ttl", -3600)).await;
        expire_by(&client, "ttl", true).await;
        put(&client, expiring("past", "ttl", -60)).await;
        put(&client, expiring("future", "ttl", 60)).await;
        put(&client, expiring("of another attribute", "time", -60)).await;
        put(&client, expiring("later", "ttl", -60)).await;
        put(&client, expiring("later", "ttl", 60)).await;
        let in_text = [("PK", text("p")), ("SK", text("text")), ("ttl", text("\"ttl\":{\"N\":\"1\"}"))];
        put(&client, item(in_text)).await;
        let inside = AttributeValue::M([("ttl".to_owned(), AttributeValue::N("1".to_owned()))].into());
        put(&client, item([("PK", text("p")), ("SK", text("inside")), ("map", inside)])).await;
        put(
            &client,
            item([("PK", text("p")), ("SK", text("nul")), ("x", text("\0")), ("ttl", AttributeValue::N("1".into()))]),
        )
        .await;
        assert_eq!(engine.sweep_ttl().await.unwrap(), 3);
        assert_eq!(engine.sweep_ttl().await.unwrap(), 0);
        for (sort, is_left) in [
            ("before", false),
            ("past", false),
            ("nul", false),
            ("future", true),
            ("later", true),
            ("of another attribute", true),
            ("text", true),
            ("inside", true),
        ] {
            assert_eq!(get(&client, key("p", sort)).await.is_some(), is_left, "{sort}");
        }
        let removed = engine.stream(TABLE).await.unwrap().unwrap().oldest(1_000).await.unwrap().pop().unwrap();
        assert_eq!(removed["eventName"], json!("REMOVE"));
    }
}

#[tokio::test]
async fn a_table_without_a_time_to_live_keeps_its_items() {
    let directory = tempfile::tempdir().unwrap();
    for engine in both(directory.path()).await {
        let client = engine.client();
        put(&client, expiring("a", "ttl", -60)).await;
        assert_eq!(engine.sweep_ttl().await.unwrap(), 0);
        expire_by(&client, "ttl", true).await;
        expire_by(&client, "ttl", false).await;
        assert_eq!(engine.sweep_ttl().await.unwrap(), 0);
        expire_by(&client, "time", true).await;
        assert_eq!(engine.sweep_ttl().await.unwrap(), 0);
        put(&client, expiring("b", "time", -60)).await;
        assert_eq!(engine.sweep_ttl().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn many_expired_items_are_swept_in_pages() {
    let engine = engine().await;
    let client = engine.client();
    expire_by(&client, "ttl", true).await;
    for number in 0..250 {
        put(&client, expiring(&number.to_string(), "ttl", -number)).await;
    }
    put(&client, expiring("future", "ttl", 60)).await;
    assert_eq!(engine.sweep_ttl().await.unwrap(), 250);
    assert_eq!(engine.items(TABLE).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_refused_call_is_an_error() {
    let engine = Engine::memory().unwrap();
    let refused = engine.call("DescribeTable", json!({ "TableName": "unknown" })).await.unwrap_err();
    assert!(
        matches!(&refused, EngineError::Refused(answer) if answer.contains("ResourceNotFoundException")),
        "{refused}"
    );
    let unknown = engine.call("ExecuteStatement", json!({})).await.unwrap_err();
    assert!(
        matches!(&unknown, EngineError::Refused(answer) if answer.contains("UnknownOperationException")),
        "{unknown}"
    );
}
