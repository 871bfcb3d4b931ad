//! Reading and deleting the records of the stream.

use embedded_engine::{Engine, StreamReader};
use serde_json::{Value, json};

use crate::table::{TABLE, create, engine, indexed_item, item, key, put, text};

async fn reader(engine: &Engine) -> StreamReader {
    engine.stream(TABLE).await.unwrap().unwrap()
}

fn number(record: &Value) -> &str {
    record["dynamodb"]["SequenceNumber"].as_str().unwrap()
}

fn sort_keys(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["dynamodb"]["Keys"]["SK"]["S"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn records_have_the_form_in_which_lambda_delivers_them() {
    let engine = engine().await;
    let client = engine.client();
    put(&client, key("p", "a")).await;
    put(&client, item([("PK", text("p")), ("SK", text("a")), ("name", text("b"))])).await;
    client.delete_item().table_name(TABLE).set_key(Some(key("p", "a"))).send().await.unwrap();

    let mut records = reader(&engine).await.oldest(1_000).await.unwrap();
    let keys = json!({ "PK": { "S": "p" }, "SK": { "S": "a" } });
    let renamed = json!({ "PK": { "S": "p" }, "SK": { "S": "a" }, "name": { "S": "b" } });
    let expected = [
        ("INSERT", json!(null), keys.clone()),
        ("MODIFY", keys.clone(), renamed.clone()),
        ("REMOVE", renamed, json!(null)),
    ];
    for (record, (name, old, new)) in records.iter_mut().zip(expected) {
        assert_eq!(record["eventName"], name);
        assert_eq!(record["eventVersion"], "1.1");
        assert_eq!(record["eventSource"], "aws:dynamodb");
        assert!(record["eventSourceARN"].as_str().unwrap().contains(&format!("table/{TABLE}/stream/")), "{record}");
        assert!(record["eventID"].is_string() && record["awsRegion"].is_string(), "{record}");
        assert_eq!(number(record).len(), 21);
        let change = &mut record["dynamodb"];
        assert_eq!(change["StreamViewType"], "NEW_AND_OLD_IMAGES");
        assert!(change["SizeBytes"].is_u64() && change["ApproximateCreationDateTime"].is_number(), "{change}");
        assert_eq!((change["OldImage"].take(), change["NewImage"].take()), (old, new));
        assert_eq!(change["Keys"], keys);
    }
    assert_eq!(records.len(), 3);
}

#[tokio::test]
async fn records_come_again_until_they_are_forgotten() {
    let engine = engine().await;
    let stream = reader(&engine).await;
    assert!(stream.oldest(1_000).await.unwrap().is_empty());
    let expected: Vec<_> = (0..250).map(|number| format!("{number:03}")).collect();
    for sort in &expected {
        put(&engine.client(), key("p", sort)).await;
    }
    let records = stream.oldest(1_000).await.unwrap();
    assert_eq!(sort_keys(&records), expected);
    assert_eq!(stream.oldest(120).await.unwrap(), records[..120]);

    assert_eq!(stream.forget_through(number(&records[199])).await.unwrap(), 200);
    assert_eq!(stream.oldest(1_000).await.unwrap(), records[200..]);
    assert_eq!(stream.forget_through(number(&records[249])).await.unwrap(), 50);
    assert_eq!(stream.forget_through(number(&records[249])).await.unwrap(), 0);
    assert!(stream.oldest(1_000).await.unwrap().is_empty());

    put(&engine.client(), key("p", "later")).await;
    assert_eq!(sort_keys(&stream.oldest(1_000).await.unwrap()), ["later"]);
    stream.forget_through("7").await.unwrap_err();
}

#[tokio::test]
async fn a_batch_is_no_longer_than_lambda_takes() {
    let engine = engine().await;
    for sort in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
        put(&engine.client(), indexed_item("p", sort, 399_000)).await;
    }
    let stream = reader(&engine).await;
    let records = stream.oldest(1_000).await.unwrap();
    assert_eq!(sort_keys(&records), ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    stream.forget_through(number(&records[9])).await.unwrap();
    assert_eq!(sort_keys(&stream.oldest(1_000).await.unwrap()), ["k", "l"]);
}

#[tokio::test]
async fn a_restart_goes_on_where_the_stream_was_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path()).unwrap();
    create(&engine.client()).await;
    for sort in ["a", "b"] {
        put(&engine.client(), key("p", sort)).await;
    }
    let stream = reader(&engine).await;
    let records = stream.oldest(1).await.unwrap();
    stream.forget_through(number(&records[0])).await.unwrap();
    drop((engine, stream));

    let engine = Engine::open(directory.path()).unwrap();
    assert_eq!(sort_keys(&reader(&engine).await.oldest(1_000).await.unwrap()), ["b"]);
}

#[tokio::test]
async fn a_stream_has_one_reader() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path()).unwrap();
    create(&engine.client()).await;
    let first = reader(&engine).await;
    let second = Engine::open(directory.path()).unwrap();
    assert!(second.stream(TABLE).await.unwrap().is_none());
    drop(first);
    assert!(second.stream(TABLE).await.unwrap().is_some());
}

#[tokio::test]
async fn a_table_without_a_stream_says_so() {
    let error = Engine::memory().unwrap().stream("unknown").await.unwrap_err();
    assert!(error.to_string().contains("unknown"), "{error}");
}
