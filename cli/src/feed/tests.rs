//! The feed over an engine in memory, with a consumer that does as it is told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use key_schema::IndexEntry;
use key_schema::index::RunsChanged;
use serde_json::json;

use super::*;

const TABLE: &str = "table";

/// Remembers what was delivered; does, for records of a key, what it was told.
#[derive(Clone, Default)]
struct Fake {
    told: Arc<HashMap<&'static str, Told>>,
    seen: Arc<Mutex<Vec<Vec<String>>>>,
}

#[derive(Clone, Copy)]
enum Told {
    /// Name the record as failed, so often.
    Name(usize),
    /// Fail as a whole.
    Fail,
    /// Be away, so often.
    BeAway(usize),
}

impl Fake {
    fn told<const N: usize>(told: [(&'static str, Told); N]) -> Self {
        Self { told: Arc::new(told.into()), seen: Arc::default() }
    }

    fn seen(&self) -> Vec<Vec<String>> {
        self.seen.lock().unwrap().clone()
    }
}

impl Consumer for Fake {
    async fn deliver(&self, records: &[Value]) -> Result<Option<usize>, Trouble> {
        let keys: Vec<_> = records.iter().map(key).collect();
        let mut seen = self.seen.lock().unwrap();
        seen.push(keys.clone());
        for (position, key) in keys.iter().enumerate() {
            let times = seen.iter().filter(|batch| batch.contains(key)).count();
            match self.told.get(key.as_str()) {
                Some(Told::Name(often)) if times <= *often => return Ok(Some(position)),
                Some(Told::Fail) => return Err(Trouble::Failed("told to".to_owned())),
                Some(Told::BeAway(often)) if times <= *often => return Err(Trouble::Unreachable("told to".to_owned())),
                _ => {}
            }
        }
        Ok(None)
    }
}

fn key(record: &Value) -> String {
    record["dynamodb"]["Keys"]["PK"]["S"].as_str().unwrap().to_owned()
}

async fn engine() -> Engine {
    let engine = Engine::memory().unwrap();
    let table = json!({
        "TableName": TABLE,
        "AttributeDefinitions": [{ "AttributeName": "PK", "AttributeType": "S" }],
        "KeySchema": [{ "AttributeName": "PK", "KeyType": "HASH" }],
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" },
    });
    engine.call("CreateTable", table).await.unwrap();
    engine
}

/// Puts an item; one in upper case is none that is indexed.
async fn put(engine: &Engine, key: &str) {
    let mut item = json!({ "PK": { "S": key } });
    if key != key.to_uppercase() {
        item[RunsChanged::INDEX.sort] = json!({ "S": key });
    }
    engine.call("PutItem", json!({ "TableName": TABLE, "Item": item })).await.unwrap();
}

/// A round over these items, once the consumer is there; what is left of the stream.
async fn round(items: &[&str], consumer: &Fake, delay: Duration) -> (Duration, Vec<String>) {
    let engine = engine().await;
    for key in items {
        put(&engine, key).await;
    }
    let stream = engine.stream(TABLE).await.unwrap().unwrap();
    let rounds = Rounds { stream, consumer, delay, back_off: Duration::ZERO };
    let mut pause = rounds.round().await.unwrap();
    while pause == rounds.back_off {
        pause = rounds.round().await.unwrap();
    }
    (pause, rounds.stream.oldest(BATCH).await.unwrap().iter().map(key).collect())
}

async fn seen(items: &[&str], consumer: Fake) -> Vec<Vec<String>> {
    let (_, left) = round(items, &consumer, Duration::ZERO).await;
    assert!(left.is_empty(), "{left:?}");
    consumer.seen()
}

#[tokio::test]
async fn only_what_is_wanted_is_delivered() {
    assert_eq!(seen(&["A", "b", "C", "d", "E"], Fake::default()).await, [["b", "d"]]);
    assert!(seen(&["A", "C"], Fake::default()).await.is_empty(), "an empty batch is not delivered");
    assert!(seen(&[], Fake::default()).await.is_empty());
}

#[tokio::test]
async fn the_batch_goes_on_from_the_first_record_that_failed() {
    let consumer = Fake::told([("c", Told::Name(2))]);
    let expected = [vec!["a", "b", "c", "d"], vec!["c", "d"], vec!["c", "d"]];
    assert_eq!(seen(&["a", "b", "c", "d"], consumer).await, expected);
}

#[tokio::test]
async fn a_record_that_fails_again_and_again_is_left_behind() {
    let consumer = Fake::told([("b", Told::Name(usize::MAX))]);
    let expected = [vec!["a", "b", "c"], vec!["b", "c"], vec!["b", "c"], vec!["c"]];
    assert_eq!(seen(&["a", "b", "c"], consumer).await, expected);
}

#[tokio::test]
async fn a_record_that_fails_the_whole_call_is_found() {
    let consumer = Fake::told([("d", Told::Fail)]);
    let expected = [
        vec!["a", "b", "c", "d", "e"],
        vec!["a", "b"],
        vec!["c", "d", "e"],
        vec!["c"],
        vec!["d", "e"],
        vec!["d"],
        vec!["d"],
        vec!["d"],
        vec!["e"],
    ];
    assert_eq!(seen(&["a", "b", "c", "d", "e"], consumer).await, expected);
}

#[tokio::test]
async fn nothing_is_left_behind_while_the_consumer_is_away() {
    let consumer = Fake::told([("a", Told::BeAway(7))]);
    assert_eq!(seen(&["a", "b"], consumer).await, vec![vec!["a", "b"]; 8]);
}

#[tokio::test]
async fn young_records_wait() {
    let consumer = Fake::default();
    let (pause, left) = round(&["a", "B"], &consumer, Duration::from_hours(1)).await;
    assert_eq!((pause, left), (LONGEST_WAIT, vec!["a".to_owned(), "B".to_owned()]));
    assert!(consumer.seen().is_empty());
    let record = json!({ "dynamodb": { "ApproximateCreationDateTime": 1_000.0 } });
    assert_eq!(ripens(&record, Duration::from_millis(500)), Duration::from_millis(1_001_500));
}

#[tokio::test]
async fn a_feed_runs_until_it_is_stopped() {
    let engine = engine().await;
    let consumer = Fake::default();
    let feed = Feed::start(engine.clone(), TABLE.to_owned(), consumer.clone(), Duration::ZERO);
    for expected in ["a", "b"] {
        put(&engine, expected).await;
        let seen = async {
            while consumer.seen().last().is_none_or(|batch| batch != &[expected]) {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(20), seen).await.unwrap();
    }
    feed.stop().await;
    put(&engine, "c").await;
    let stream = engine.stream(TABLE).await.unwrap().unwrap();
    assert_eq!(stream.oldest(BATCH).await.unwrap().iter().map(key).collect::<Vec<_>>(), ["c"]);
}
