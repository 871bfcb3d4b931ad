//! Tests of the feed over an in-memory engine, with a scripted consumer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use embedded_engine::faults::FaultInjector;
use embedded_engine::limits::{EngineLimits, Throughput};
use fts_indexer::Indexer;
use key_schema::IndexEntry;
use key_schema::index::RunsChanged;
use mlflow_api::Workspace;
use serde_json::json;
use table::{RetryPolicy, Table};
use test_site::TestClient;
use tracking::store::Store;

use super::*;

const TABLE: &str = "table";

/// Consumer that collects delivered records, and handles the records of a key as scripted.
#[derive(Clone, Default)]
struct FakeConsumer {
    outcomes: Arc<HashMap<&'static str, ScriptedOutcome>>,
    seen: Arc<Mutex<Vec<Vec<String>>>>,
    ticks: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
enum ScriptedOutcome {
    /// Report the record as failed this many times.
    NameRecord(usize),
    /// Fail the whole call.
    Fail,
    /// Be unreachable this many times.
    Unreachable(usize),
}

impl FakeConsumer {
    fn told<const N: usize>(told: [(&'static str, ScriptedOutcome); N]) -> Self {
        Self { outcomes: Arc::new(told.into()), ..Self::default() }
    }

    fn seen(&self) -> Vec<Vec<String>> {
        self.seen.lock().unwrap().clone()
    }
}

impl Consumer for FakeConsumer {
    async fn deliver(&self, records: &[Value]) -> Result<Option<usize>, DeliveryError> {
        let keys: Vec<_> = records.iter().map(key).collect();
        let mut seen = self.seen.lock().unwrap();
        seen.push(keys.clone());
        for (position, key) in keys.iter().enumerate() {
            let times = seen.iter().filter(|batch| batch.contains(key)).count();
            match self.outcomes.get(key.as_str()) {
                Some(ScriptedOutcome::NameRecord(often)) if times <= *often => return Ok(Some(position)),
                Some(ScriptedOutcome::Fail) => return Err(DeliveryError::Failed("told to".to_owned())),
                Some(ScriptedOutcome::Unreachable(often)) if times <= *often => {
                    return Err(DeliveryError::Unreachable("told to".to_owned()));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    async fn tick(&self) -> Result<(), DeliveryError> {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        Ok(())
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

/// Puts an item. Items with upper case keys are not indexed.
async fn put(engine: &Engine, key: &str) {
    let mut item = json!({ "PK": { "S": key } });
    if key != key.to_uppercase() {
        item[RunsChanged::INDEX.sort] = json!({ "S": key });
    }
    engine.call("PutItem", json!({ "TableName": TABLE, "Item": item })).await.unwrap();
}

/// Puts these items and runs a round of the feed. Returns the last pause and the keys that are left
/// in the stream.
async fn round(items: &[&str], consumer: &FakeConsumer, delay: Duration) -> (Duration, Vec<String>) {
    let engine = engine().await;
    for key in items {
        put(&engine, key).await;
    }
    let stream = engine.stream(TABLE).await.unwrap().unwrap();
    let mut rounds = DeliveryRounds { stream, consumer, delay, back_off: Duration::ZERO, last_rebuild: None };
    let mut pause = rounds.round().await.unwrap();
    while pause == rounds.back_off {
        pause = rounds.round().await.unwrap();
    }
    (pause, rounds.stream.oldest(BATCH_SIZE).await.unwrap().iter().map(key).collect())
}

async fn seen(items: &[&str], consumer: FakeConsumer) -> Vec<Vec<String>> {
    let (_, left) = round(items, &consumer, Duration::ZERO).await;
    assert!(left.is_empty(), "{left:?}");
    consumer.seen()
}

#[tokio::test]
async fn only_what_is_wanted_is_delivered() {
    assert_eq!(seen(&["A", "b", "C", "d", "E"], FakeConsumer::default()).await, [["b", "d"]]);
    assert!(seen(&["A", "C"], FakeConsumer::default()).await.is_empty(), "an empty batch is not delivered");
    assert!(seen(&[], FakeConsumer::default()).await.is_empty());
}

#[tokio::test]
async fn the_batch_goes_on_from_the_first_record_that_failed() {
    let consumer = FakeConsumer::told([("c", ScriptedOutcome::NameRecord(2))]);
    let expected = [vec!["a", "b", "c", "d"], vec!["c", "d"], vec!["c", "d"]];
    assert_eq!(seen(&["a", "b", "c", "d"], consumer).await, expected);
}

#[tokio::test]
async fn a_record_that_is_named_comes_again_as_often_as_it_is() {
    let consumer = FakeConsumer::told([("b", ScriptedOutcome::NameRecord(30))]);
    let mut expected = vec![vec!["a", "b", "c"]];
    expected.extend(vec![vec!["b", "c"]; 30]);
    assert_eq!(seen(&["a", "b", "c"], consumer).await, expected);
}

#[tokio::test]
async fn a_record_that_fails_the_whole_call_is_found() {
    let consumer = FakeConsumer::told([("d", ScriptedOutcome::Fail)]);
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
    let consumer = FakeConsumer::told([("a", ScriptedOutcome::Unreachable(7))]);
    assert_eq!(seen(&["a", "b"], consumer).await, vec![vec!["a", "b"]; 8]);
}

/// Number of attempts that corresponds to more than ten minutes.
const ATTEMPTS_IN_TEN_MINUTES: u64 = 70;
/// Points that each run logs to its journal: enough for a segment.
const POINTS: usize = 16;

/// Returns the tracking function over a table. All points go into journals.
async fn tracking(table: &Table) -> TestClient {
    let store = Store::new(table.clone(), "s3://bucket").with_points_in_document(0);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    TestClient(tracking::router(&store, test_site::everybody()))
}

async fn experiment(api: &TestClient, name: &str) -> String {
    let answer = api.post("experiments/create", json!({ "name": name })).await.ok();
    answer["experiment_id"].as_str().unwrap().to_owned()
}

/// Creates a run with points in its journal, and returns its id.
async fn logged_run(api: &TestClient, experiment: &str) -> String {
    let answer = api.post("runs/create", json!({ "experiment_id": experiment, "start_time": 1 })).await.ok();
    let run = answer["run"]["info"]["run_id"].as_str().unwrap().to_owned();
    for from in (0..POINTS).step_by(8) {
        let point = |at| json!({ "key": "m", "value": at, "timestamp": at, "step": at });
        let metrics: Vec<_> = (from..from + 8).map(point).collect();
        api.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await.ok();
    }
    run
}

/// Returns the number of journal rows, and the number of indexed runs.
async fn counts(engine: &Engine) -> (usize, usize) {
    let items = engine.items(TABLE).await.unwrap();
    let is_journal = |item: &&Value| item["SK"]["S"].as_str().is_some_and(|key| key.starts_with('J'));
    (items.iter().filter(is_journal).count(), items.iter().filter(|item| item.get("due").is_some()).count())
}

async fn check_points(api: &TestClient, runs: &[String]) {
    for run in runs {
        let history = api.get("metrics/get-history", &[("run_id", run), ("metric_key", "m")]).await.ok();
        assert_eq!(history["metrics"].as_array().unwrap().len(), POINTS, "{run}");
    }
}

/// While the table rejects everything for ten minutes, clients continue writing. After the table
/// has recovered, everything is packed and indexed without intervention.
#[tokio::test]
async fn an_indexer_that_is_throttled_for_long_loses_nothing() {
    let engine = Engine::memory().unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    let api = tracking(&table).await;
    let experiment = experiment(&api, "e").await;
    let runs = Mutex::new(Vec::new());
    let new_runs = async |count: usize| {
        for _ in 0..count {
            let run = logged_run(&api, &experiment).await;
            runs.lock().unwrap().push(run);
        }
    };
    // The number of runs exceeds what is indexed in one batch.
    new_runs(52).await;

    let faults = FaultInjector::new(engine.http_client());
    let impatient = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let consumer = LocalIndexer(Indexer::new(Table::new(faults.client(), TABLE).with_retry(impatient)));
    let stream = engine.stream(TABLE).await.unwrap().unwrap();
    let (delay, back_off) = (Duration::ZERO, Duration::ZERO);
    let mut rounds = DeliveryRounds { stream, consumer: &consumer, delay, back_off, last_rebuild: None };
    faults.cut_off_at(1);
    let attempts = || faults.all_calls().iter().map(|(_, calls)| calls).sum::<u64>();
    let meanwhile = async {
        while attempts() < ATTEMPTS_IN_TEN_MINUTES {
            new_runs(1).await;
        }
        faults.work_again();
    };
    let both = async { tokio::join!(rounds.round(), meanwhile).0 };
    timeout(Duration::from_mins(1), both).await.unwrap().unwrap();
    while !rounds.stream.oldest(1).await.unwrap().is_empty() {
        rounds.round().await.unwrap();
    }
    let runs = runs.into_inner().unwrap();
    assert_eq!(counts(&engine).await, (0, runs.len()));
    check_points(&api, &runs).await;
}

/// While the partition of one experiment is throttled for ten minutes, the records of another
/// experiment, which arrive in a shard of their own, are not delayed.
#[tokio::test]
async fn a_hot_partition_holds_up_its_own_records_only() {
    let engine = Engine::memory().unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    let api = tracking(&table).await;
    let (hot, cold) = (experiment(&api, "hot").await, experiment(&api, "cold").await);
    let stream = engine.stream(TABLE).await.unwrap().unwrap();
    let mut runs = Vec::new();
    for of in [&hot, &cold, &hot, &cold] {
        runs.push(logged_run(&api, of).await);
    }
    let records: Vec<_> =
        stream.oldest(BATCH_SIZE).await.unwrap().into_iter().filter(fts_indexer::is_for_indexer).collect();
    let partition = format!("EXP#{hot}");
    let (of_hot, of_cold): (Vec<_>, Vec<_>) = records.into_iter().partition(|record| key(record) == partition);
    let limits = EngineLimits::new(&engine);
    limits.set_throughput(move |of| (of == partition).then_some(Throughput::NONE));
    let impatient = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let consumer = LocalIndexer(Indexer::new(Table::new(limits.client(), TABLE).with_retry(impatient)));
    let (journals, _) = counts(&engine).await;
    for attempt in 0..ATTEMPTS_IN_TEN_MINUTES {
        assert_eq!(consumer.deliver(&of_hot).await.unwrap(), Some(0));
        if attempt == 5 {
            assert_eq!(consumer.deliver(&of_cold).await.unwrap(), None);
            assert_eq!(counts(&engine).await, (journals / 2, 2));
        }
    }
    assert_eq!(counts(&engine).await, (journals / 2, 2));
    check_points(&api, &runs).await;
    limits.set_throughput(|_| None);
    assert_eq!(consumer.deliver(&of_hot).await.unwrap(), None);
    assert_eq!(counts(&engine).await, (0, 4));
    check_points(&api, &runs).await;
}

#[tokio::test]
async fn young_records_wait() {
    let consumer = FakeConsumer::default();
    let (pause, left) = round(&["a", "B"], &consumer, Duration::from_hours(1)).await;
    assert_eq!((pause, left), (MAX_PAUSE, vec!["a".to_owned(), "B".to_owned()]));
    assert!(consumer.seen().is_empty());
    let record = json!({ "dynamodb": { "ApproximateCreationDateTime": 1_000.0 } });
    assert_eq!(due_time(&record, Duration::from_millis(500)), Duration::from_millis(1_001_500));
}

#[tokio::test]
async fn a_feed_runs_until_it_is_stopped() {
    let engine = engine().await;
    let consumer = FakeConsumer::default();
    let feed =
        StreamFeed::start(engine.clone(), TABLE.to_owned(), consumer.clone(), Duration::ZERO, Duration::from_hours(1));
    for expected in ["a", "b"] {
        put(&engine, expected).await;
        let seen = async {
            while consumer.seen().last().is_none_or(|batch| batch != &[expected]) {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_mins(1), seen).await.unwrap();
    }
    feed.stop().await;
    assert_eq!(consumer.ticks.load(Ordering::Relaxed), 1, "at its start, and then every hour");
    put(&engine, "c").await;
    let stream = engine.stream(TABLE).await.unwrap().unwrap();
    assert_eq!(stream.oldest(BATCH_SIZE).await.unwrap().iter().map(key).collect::<Vec<_>>(), ["c"]);
}

#[tokio::test]
async fn the_stream_is_read_often_while_runs_are_rebuilt() {
    let engine = engine().await;
    let (consumer, delay, back_off) = (FakeConsumer::default(), Duration::ZERO, Duration::ZERO);
    let stream = engine.stream(TABLE).await.unwrap().unwrap();
    let mut rounds = DeliveryRounds { stream, consumer: &consumer, delay, back_off, last_rebuild: None };
    put(&engine, "a").await;
    assert_eq!(rounds.round().await.unwrap(), IDLE_PAUSE);
    let run = json!({ "PK": { "S": "b" }, (RunsChanged::INDEX.sort): { "S": "b" }, (REBUILD.name()): { "N": "1" } });
    engine.call("PutItem", json!({ "TableName": TABLE, "Item": run })).await.unwrap();
    for _ in 0..2 {
        assert_eq!(rounds.round().await.unwrap(), REBUILD_PAUSE);
    }
    rounds.last_rebuild = Instant::now().checked_sub(REBUILD_DURATION);
    assert_eq!(rounds.round().await.unwrap(), IDLE_PAUSE);
}
