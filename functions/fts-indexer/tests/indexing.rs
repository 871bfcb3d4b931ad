//! Tests the indexer on a private table: the entries that it derives, repeated attempts, and
//! failing requests.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod concurrent_indexers;
mod index_rebuild;
mod postponed_runs;
mod trace_packing;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use embedded_engine::Engine;
use embedded_engine::faults::{FaultInjector, InjectedFault};
use entities::{MarkUpdate, RunCopy, RunLocation, marked_item, metric_attribute, pack_set, points::Point};
use fts_indexer::{Indexer, StreamBatch};
use key_schema::index::{RunsByEnd, RunsByStage, RunsByStatus, RunsByTime, RunsChanged};
use key_schema::{Ascending, Descending, Digest, IndexEntry, Name, Ordinal, OwnStage, Stage, WideDigest, rows};
use mlflow_api::{ExperimentId, ModelId, RunId};
use run_index::{MAX_ENTRIES_IN_MEMORY, RunIndex};
use serde_json::{Value, json};
use table::{Condition, Item, Map, RetryPolicy, Table, Update, map, number, text};

/// Replaces libc's allocator, because tests with an embedded engine spent a fifth of their time in
/// it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TABLE: &str = "mlflow";
const TIME: i64 = 1_700_000_000_000;

/// Captured log output.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Logged {
    fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.0.lock().unwrap()).lines().map(str::to_owned).collect()
    }
}

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Site {
    engine: Engine,
    table: Table,
    faults: FaultInjector,
    /// The indexer, whose requests are subject to the injected faults. It indexes every change.
    indexer: Indexer,
}

impl Site {
    async fn new() -> Self {
        let site = Self::on(Engine::memory().unwrap());
        site.table.create_if_missing().await.unwrap();
        site
    }

    /// Returns a copy of the current state, in which no fault has been injected yet.
    fn snapshot(&self) -> Self {
        Self::on(self.engine.snapshot().unwrap())
    }

    fn on(engine: Engine) -> Self {
        let table = Table::new(engine.client(), TABLE);
        let faults = FaultInjector::new(engine.http_client());
        let impatient = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        let indexer = Indexer::new(Table::new(faults.client(), TABLE).with_retry(impatient));
        let indexer = indexer.with_interval(Duration::ZERO);
        Self { engine, table, faults, indexer }
    }

    fn rebuilding(&self) -> RunIndex {
        RunIndex::new(self.table.clone())
    }

    /// Writes a run in the form in which the tracking function writes it.
    async fn run(&self, number_of_run: u64, name: &str) -> RunLocation {
        let experiment = ExperimentId::from_number(1).unwrap();
        let at = RunLocation { experiment, run: RunId::new(1_700_000_000_000 + number_of_run, experiment, 7) };
        let item = Item::new(at.key())
            .with("name", text(name))
            .with("user", text("ada"))
            .with("status", text("RUNNING"))
            .with("start_time", number(TIME))
            .with("artifact_uri", text("s3://bucket/1"))
            .with("params", map(Map::from([("lr".to_owned(), text("0.1"))])))
            .with("tags", map(Map::from([("team".to_owned(), text("red")), ("mlflow.user".to_owned(), text("ada"))])))
            .indexed(RunsByStage::key(&Stage::Active, &Descending(TIME), &at.run))
            .indexed(RunsByTime::key(&Descending(TIME), &at.run));
        self.table.put(marked_item(item, &at.run), &table::Condition::item_missing()).await.unwrap();
        at
    }

    async fn log(&self, at: &RunLocation, metric: &str, step: i64, value: f64) {
        let point = pack_set(&[Point::new(TIME + step, step, value)]);
        let update = Update::new(at.key()).add(metric_attribute(metric), point).marked(&at.run);
        self.table.update(&update).await.unwrap();
    }

    async fn set_stage(&self, at: &RunLocation, stage: &str) {
        let update = Update::new(at.key()).set("stage", text(stage)).marked(&at.run);
        self.table.update(&update).await.unwrap();
    }

    async fn dump(&self) -> BTreeMap<String, Value> {
        let items = self.engine.items(TABLE).await.unwrap();
        let key = |item: &Value, part: &str| item[part]["S"].as_str().unwrap().to_owned();
        items.into_iter().map(|item| (format!("{} {}", key(&item, "PK"), key(&item, "SK")), item)).collect()
    }

    /// Returns the sort keys with this prefix, in any partition.
    async fn sort_keys(&self, prefix: &str) -> Vec<String> {
        let keys = self.dump().await.into_keys().map(|key| key.split_once(' ').unwrap().1.to_owned());
        keys.filter(|key| key.starts_with(prefix)).collect()
    }

    /// Returns the keys with this prefix in the index of experiment 1. Each key is given as the
    /// part of the partition key after the experiment, followed by the sort key.
    async fn keys(&self, prefix: &str) -> Vec<String> {
        let keys = self.dump().await.into_keys();
        keys.filter_map(|key| Some(key.strip_prefix("IX#1#")?.to_owned()))
            .filter(|key| key.starts_with(prefix))
            .collect()
    }

    /// Returns the contents of the index, without the names of indexings.
    async fn index(&self) -> Vec<(String, Value)> {
        let mut items = self.dump().await;
        items.retain(|key, _| key.starts_with("IX#") || key.contains(" IX#"));
        let values = items.into_iter().map(|(key, mut item)| {
            item.as_object_mut().unwrap().retain(|name, _| !["indexed", "stale"].contains(&name.as_str()));
            (key, item)
        });
        values.collect()
    }

    async fn copy(&self, at: &RunLocation, stage: OwnStage) -> Option<RunCopy> {
        self.table.get(&RunCopy::key(at, TIME, stage)).await.unwrap().map(RunCopy)
    }

    async fn handle(&self, records: Vec<Value>) -> Vec<String> {
        let answer = self.indexer.handle(StreamBatch { records }).await;
        answer.batch_item_failures.into_iter().filter_map(|failure| failure.item_identifier).collect()
    }
}

fn record(name: &str, at: &RunLocation, part: &str, number: usize) -> Value {
    let image = json!({ (RunsChanged::INDEX.sort): { "S": "marked" } });
    let old = json!({ "start_time": { "N": TIME.to_string() } });
    json!({
        "eventName": name,
        "dynamodb": {
            "Keys": { "PK": { "S": format!("EXP#{}", at.experiment) }, "SK": { "S": format!("R#{}{part}", at.run) } },
            "NewImage": image,
            "OldImage": old,
            "SequenceNumber": number.to_string(),
        },
    })
}

fn changed(at: &RunLocation) -> Vec<Value> {
    vec![record("MODIFY", at, "", 1)]
}

#[tokio::test]
async fn a_run_stands_in_the_lists_it_belongs_to() {
    let site = Site::new().await;
    let at = site.run(1, "Old newts").await;
    site.log(&at, "loss", 1, 0.5).await;
    site.log(&at, "loss", 2, 0.25).await;
    assert!(site.handle(changed(&at)).await.is_empty());
    assert_eq!(site.keys("M#").await.len(), 1, "one per metric");
    assert_eq!(site.keys("P#lr 0.1#").await.len(), 1, "one per param");
    assert_eq!(site.keys("T#V").await.len(), 1, "the user's tag, not MLflow's");
    let trigrams = site.keys("T#3").await;
    assert!(trigrams.len() == 4 && trigrams.iter().any(|key| key.contains(" d$20n#")), "{trigrams:?}");
    let partitions: BTreeSet<_> = trigrams.iter().map(|key| key.split(' ').next()).collect();
    assert!(partitions.len() > 1, "{partitions:?}");
    let lists = site.dump().await.into_keys().filter(|key| key.starts_with("EXP#1 IX#run#")).count();
    assert_eq!(lists, 4, "each in the directory: a metric, a param, a tag, trigrams of the name");
    let marked = site.dump().await.into_values().filter(|item| item.get(RunsChanged::INDEX.sort).is_some()).count();
    assert_eq!(marked, 0);
    let copy = site.copy(&at, OwnStage::Active).await.unwrap();
    assert!(copy.0.entry::<RunsByStatus>().is_some_and(|listed| listed.status == "RUNNING".into()));
    assert!(copy.0.entry::<RunsByEnd>().is_none(), "it has not ended");
    assert!(copy.into_values().is_some());
}

#[tokio::test]
async fn a_value_that_changes_often_is_moved_once() {
    let site = Site::new().await;
    let at = site.run(1, "x").await;
    for step in 0..50 {
        site.log(&at, "loss", step, 50.0 - f64::from(i32::try_from(step).unwrap())).await;
    }
    let records = (0..50).map(|number| record("MODIFY", &at, "", number)).collect();
    assert!(site.handle(records).await.is_empty());
    let first = site.keys("M#loss").await;
    site.log(&at, "loss", 60, -1.0).await;
    assert!(site.handle(changed(&at)).await.is_empty());
    let second = site.keys("M#loss").await;
    assert!(first.len() == 1 && second.len() == 1 && first != second);
}

#[tokio::test]
async fn a_batch_with_one_poison_record_loses_no_other() {
    Box::pin(no_other_is_lost(150)).await;
}

#[tokio::test]
#[ignore = "indexes a thousand runs; part of `make test-slow`"]
async fn a_batch_of_a_thousand_with_one_poison_record_loses_no_other() {
    Box::pin(no_other_is_lost(1_000)).await;
}

/// Indexes this many runs, with an unreadable record in the middle of their records, and checks
/// that all other runs are indexed.
async fn no_other_is_lost(runs: u64) {
    let site = Site::new().await;
    let mut records = Vec::new();
    for number in 0..runs {
        let at = site.run(number, &format!("run {number}")).await;
        records.push(record("INSERT", &at, "", usize::try_from(number).unwrap()));
    }
    let middle = records.len() / 2;
    let others = records.len() - 1;
    records[middle]["dynamodb"]["Keys"].as_object_mut().unwrap().remove("SK");
    assert_eq!(site.handle(records).await, [middle.to_string()]);
    assert_eq!(site.keys("CA#run ").await.len(), others);
    let marked = site.dump().await.into_values().filter(|item| item.get(RunsChanged::INDEX.sort).is_some()).count();
    assert_eq!(marked, 1, "the run of the unreadable record stays marked, so that searches read it");
}

/// If a run cannot be indexed, the record of that run fails, but the runs that share its requests
/// are indexed.
#[tokio::test]
async fn a_run_that_fails_is_named_and_the_others_are_indexed() {
    let site = Site::new().await;
    let mut records = Vec::new();
    for number in 0..60 {
        let at = site.run(number, "x").await;
        records.push(record("INSERT", &at, "", usize::try_from(number).unwrap()));
        if number == 20 {
            // The value is longer than DynamoDB allows for keys. It simulates a run id of another
            // server, in a copy whose list of stale entries is invalid.
            let stale = vec![table::Value::S("IX#1#P#x ".to_owned() + &"x".repeat(2_000))];
            let copy = Item::new(RunCopy::key(&at, TIME, OwnStage::Active))
                .with("name", text("x"))
                .with("user", text("ada"))
                .with("status", text("RUNNING"))
                .with("start_time", table::number(TIME))
                .with("artifact_uri", text("s3://bucket/1"))
                .with("indexed", text("0"))
                .with("stale", table::Value::L(stale));
            site.table
                .put(copy.with("entries", table::Value::L(Vec::new())), &table::Condition::item_missing())
                .await
                .unwrap();
        }
    }
    assert_eq!(site.handle(records).await, ["20"]);
    assert_eq!(site.keys("T#V").await.len(), 60, "its own entries were written too, but it stays marked");
    let marked = site.dump().await.into_values().filter(|item| item.get(RunsChanged::INDEX.sort).is_some()).count();
    assert_eq!(marked, 1);
}

/// If the table is throttled, it receives no further requests, and the records are delivered again
/// for as long as it is throttled.
#[tokio::test]
async fn a_batch_that_is_throttled_comes_again_from_its_first_unfinished_record() {
    let site = Site::new().await;
    let mut records = Vec::new();
    for number in 0..120 {
        let at = site.run(number, "x").await;
        records.push(record("INSERT", &at, "", usize::try_from(number).unwrap()));
    }
    records.insert(0, record("MODIFY", &site.run(1_000, "first").await, "", 1_000));
    for _ in 0..30 {
        site.faults.reset_calls();
        site.faults.cut_off_at(1);
        assert_eq!(site.handle(records.clone()).await, ["1000"]);
        let calls: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
        assert_eq!(calls, 1);
    }
    site.faults.work_again();
    // Records that have been processed before the failure are not reported.
    site.faults.cut_off_at(150);
    let [again] = &site.handle(records.clone()).await[..] else { panic!("one record is named") };
    assert!(again.parse::<u64>().unwrap() >= 49, "{again}");
    site.faults.work_again();
    assert!(site.handle(records).await.is_empty());
    assert_eq!(site.keys("CA#run ").await.len(), 121);
}

/// A missing permission or a disabled key is not the fault of a record. All records are delivered
/// again until it is fixed, and only unreadable records are given up.
#[tokio::test]
async fn nothing_is_given_up_while_the_table_cannot_be_used() {
    for trouble in [InjectedFault::Denied, InjectedFault::KeyDisabled] {
        let site = Site::new().await;
        let mut unreadable = record("MODIFY", &site.run(1, "x").await, "", 1);
        unreadable["dynamodb"]["Keys"].as_object_mut().unwrap().remove("SK");
        let mut records = vec![unreadable];
        for number in 2..60 {
            let at = site.run(number, "x").await;
            records.push(record("INSERT", &at, "", usize::try_from(number).unwrap()));
        }
        let logged = Logged::default();
        let writer = logged.clone();
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).with_writer(move || writer.clone());
        let guard = tracing::subscriber::set_default(log.finish());
        let begin = Instant::now();
        for call in 0..30 {
            site.faults.reset_calls();
            site.faults.trouble_at(trouble, 1, u64::MAX);
            let expected = if call < 10 { ["1", "2"].as_slice() } else { &["2"] };
            assert_eq!(site.handle(records.clone()).await, expected, "{trouble:?}, call {call}");
            if trouble == InjectedFault::KeyDisabled {
                let calls: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
                assert_eq!(calls, 1, "the rest is not attempted");
            }
        }
        drop(guard);
        let lines = logged.lines();
        let of = |message: &str| lines.iter().filter(|line| line.contains(message)).count();
        // The log must contain at most one line per minute of the test.
        let minutes = usize::try_from(begin.elapsed().as_secs() / 60).unwrap();
        let refusals = of("the table cannot be used");
        assert!((1..=minutes + 1).contains(&refusals), "{lines:#?}");
        assert_eq!(of("a record is left behind"), 1, "{lines:#?}");
        assert_eq!(of("a record of the stream cannot be read"), lines.len() - 1 - refusals, "{lines:#?}");
        site.faults.work_again();
        assert!(site.handle(records).await.is_empty());
        assert_eq!(site.keys("CA#run ").await.len(), 58, "{trouble:?}");
    }
}

/// A record that fails permanently does not block the other records forever.
#[tokio::test]
async fn what_cannot_be_read_is_given_up_after_ten_retries() {
    let site = Site::new().await;
    let mut poisoned = record("MODIFY", &site.run(1, "x").await, "", 1);
    poisoned["dynamodb"]["Keys"].as_object_mut().unwrap().remove("SK");
    let records = vec![poisoned, record("MODIFY", &site.run(2, "x").await, "", 2)];
    for _ in 0..10 {
        assert_eq!(site.handle(records.clone()).await, ["1"]);
    }
    assert!(site.handle(records).await.is_empty());
}

/// No matter where an indexing is interrupted, the next attempt results in the state that an
/// uninterrupted indexing creates.
#[tokio::test]
async fn it_may_stop_anywhere_and_be_done_again() {
    let undisturbed = Site::new().await;
    let same = undisturbed.run(1, "first name").await;
    for (metric, step, value) in [("loss", 1, 0.5), ("loss", 2, 0.25), ("acc", 2, 0.9), ("loss", 3, 0.125)] {
        undisturbed.log(&same, metric, step, value).await;
    }
    assert!(undisturbed.handle(changed(&same)).await.is_empty());
    let expected = undisturbed.index().await;
    let mut cut_off = 0;
    for failing in 1.. {
        let site = Site::new().await;
        let at = site.run(1, "first name").await;
        site.log(&at, "loss", 1, 0.5).await;
        assert!(site.handle(changed(&at)).await.is_empty());
        // The first attempt to index a change is interrupted, and then another change is made.
        site.log(&at, "loss", 2, 0.25).await;
        site.log(&at, "acc", 2, 0.9).await;
        site.faults.reset_calls();
        site.faults.cut_off_at(failing);
        let failed = site.handle(changed(&at)).await;
        site.faults.work_again();
        let calls: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
        cut_off += usize::from(!failed.is_empty());
        site.log(&at, "loss", 3, 0.125).await;
        assert!(site.handle(changed(&at)).await.is_empty());
        assert_eq!(site.index().await, expected, "stopped at request {failing}");
        if calls < failing {
            assert!(failed.is_empty(), "it was not cut off");
            break;
        }
    }
    assert!(cut_off > 1, "{cut_off}");
}

#[tokio::test]
async fn a_run_that_is_gone_leaves_nothing() {
    let site = Site::new().await;
    let at = site.run(1, "gone").await;
    site.log(&at, "loss", 1, 0.5).await;
    let segment = rows::MetricSegment::key(&at.run, &"loss".into(), &Ascending(1), &Ascending(1), &Digest(1));
    site.table.put(Item::new(segment), &table::Condition::item_missing()).await.unwrap();
    let row = rows::MetricChart::key(&at.run, &"loss".into(), &Ordinal(1), &Ordinal(0));
    site.table.put(Item::new(row), &table::Condition::item_missing()).await.unwrap();
    let row = rows::RunTag::key(&at.experiment, &at.run, &"big".into());
    site.table.put(Item::new(row), &table::Condition::item_missing()).await.unwrap();
    // Rows of the registry that refer to the run are kept, because they are not data of the run.
    let version = rows::VersionOfRun::key(&at.run.as_str().into(), &"model".into(), &Ordinal(1));
    let row_of_version = Item::new(version.clone()).with("home", text("model"));
    site.table.put(row_of_version, &table::Condition::item_missing()).await.unwrap();
    let dataset = WideDigest::of(&["iris"]);
    for key in [
        rows::RunInput::key(&at.experiment, &at.run, &dataset),
        rows::DatasetLink::key(&at.experiment, &dataset, &at.run),
    ] {
        site.table.put(Item::new(key), &table::Condition::item_missing()).await.unwrap();
    }
    let other = site.run(2, "stays").await;
    assert!(site.handle([changed(&at), changed(&other)].concat()).await.is_empty());
    // The directory of lists is kept, because it belongs to the experiment and not to the run.
    let stays = |key: &str| key.contains(other.run.as_str()) || key.contains(" IX#");
    let of_other: Vec<_> = site.dump().await.into_iter().filter(|(key, _)| stays(key)).collect();

    site.table.write_many(Vec::new(), &[at.key()]).await.unwrap();
    let removed = record("REMOVE", &at, "", 1);
    // The batch includes a delayed record about the run's metrics, and is delivered twice.
    let late = record("MODIFY", &at, "#METRIC", 2);
    assert!(site.handle(vec![removed.clone(), late]).await.is_empty());
    assert!(site.handle(vec![removed]).await.is_empty());
    assert!(site.table.get(&version).await.unwrap().is_some());
    site.table.write_many(Vec::new(), &[version]).await.unwrap();
    assert_eq!(site.dump().await.into_iter().collect::<Vec<_>>(), of_other);
}

#[tokio::test]
async fn an_experiment_that_is_gone_leaves_nothing() {
    leaves_nothing("default", &json!({ "name": { "S": "gone" } })).await;
    // The experiment's item contains its workspace.
    leaves_nothing("team-a", &json!({ "name": { "S": "gone" }, "workspace": { "S": "team-a" } })).await;
}

async fn leaves_nothing(workspace: &str, image: &Value) {
    let site = Site::new().await;
    let experiment = ExperimentId::from_number(1).unwrap();
    let at = site.run(1, "of it").await;
    site.log(&at, "loss", 1, 0.5).await;
    let deleted = site.run(2, "of it too").await;
    site.set_stage(&deleted, "deleted").await;
    assert!(site.handle([changed(&at), changed(&deleted)].concat()).await.is_empty());
    assert_eq!(site.keys("C").await.len(), 2);
    let (digest, model) = (WideDigest::of(&["iris", "d1"]), ModelId::new(1_700_000_000_000, experiment, 7));
    let dataset = Item::new(rows::Dataset::key(&experiment, &digest));
    // The name of the scorer is so long that its key contains a hash instead of the whole name.
    let scorer = Name::from("ä".repeat(400).as_str());
    let other = ExperimentId::from_number(2).unwrap();
    let foreign = Item::new(rows::DatasetPart::key(&other, &digest, &digest, &Ordinal(0)));
    let of_it = [
        dataset.with("name", text("iris")).with("digest", text("d1")),
        Item::new(rows::DatasetPart::key(&experiment, &digest, &digest, &Ordinal(0))),
        Item::new(rows::RunInput::key(&experiment, &at.run, &digest)),
        Item::new(rows::DatasetLink::key(&experiment, &digest, &at.run)),
        Item::new(rows::LoggedModel::key(&experiment, &model)),
        Item::new(rows::LoggedModelSegment::key(&model, &digest)),
        Item::new(rows::Scorer::key(&experiment, &scorer)).with("name", text(&scorer.0)),
        Item::new(rows::WorkspaceScorer::key(&workspace.into(), &experiment, &scorer)),
        Item::new(rows::ExperimentName::key(&workspace.into(), &"gone".into()))
            .with("experiment", text(experiment.to_string())),
    ];
    site.table.write_many(of_it.into(), &[]).await.unwrap();
    site.table.put(foreign.clone(), &Condition::Always).await.unwrap();
    let keys = json!({ "PK": { "S": format!("EXP#{experiment}") }, "SK": { "S": "E#META" } });
    let change = json!({ "Keys": keys, "OldImage": image, "SequenceNumber": "1" });
    let removed = json!({ "eventName": "REMOVE", "dynamodb": change });
    assert!(site.handle(vec![removed]).await.is_empty());
    // Only another experiment's item remains.
    assert_eq!(site.dump().await.into_keys().collect::<Vec<_>>(), [foreign.key().unwrap().text()]);
}

/// When a run is deleted, its entries leave the lists, and its copy moves to the copies of deleted
/// runs. When the run is restored, copy and entries are as before.
#[tokio::test]
async fn a_run_has_one_copy_whatever_its_stage() {
    let site = Site::new().await;
    let at = site.run(1, "deleted").await;
    site.log(&at, "loss", 1, 0.5).await;
    assert!(site.handle(changed(&at)).await.is_empty());
    let before = site.index().await;
    for _ in 0..2 {
        site.set_stage(&at, "deleted").await;
        // Repeating the batch, for example after a manual intervention, removes nothing.
        for _ in 0..2 {
            assert!(site.handle(changed(&at)).await.is_empty());
            assert_eq!(site.keys("").await.len(), 1, "the copy");
            let copy = site.copy(&at, OwnStage::Deleted).await.unwrap();
            assert!(!copy.0.is_in(RunsByStatus::INDEX) && copy.into_values().is_some());
        }
        assert_eq!(site.rebuilding().sweep(at.experiment, MAX_ENTRIES_IN_MEMORY).await.unwrap(), 0);
        site.set_stage(&at, "active").await;
        assert!(site.handle(changed(&at)).await.is_empty());
        assert!(site.copy(&at, OwnStage::Deleted).await.is_none());
        let mut after = site.index().await;
        for (_, item) in &mut after {
            item.as_object_mut().unwrap().remove("stage");
        }
        assert_eq!(after, before);
    }
    site.set_stage(&at, "deleted").await;
    assert!(site.handle(changed(&at)).await.is_empty());
    site.table.write_many(Vec::new(), &[at.key()]).await.unwrap();
    assert!(site.handle(vec![record("REMOVE", &at, "", 1)]).await.is_empty());
    assert_eq!(site.keys("").await, Vec::<String>::new());
}

/// The row of a list in the directory is written before the list's entries, and only if the process
/// has not cached it. If the process crashes before writing the entries, there is at most one
/// unneeded row.
#[tokio::test]
async fn lists_are_in_the_directory_before_their_entries() {
    for failing in 1..12 {
        let site = Site::new().await;
        let at = site.run(1, "x").await;
        site.log(&at, "loss", 1, 0.5).await;
        site.faults.cut_off_at(failing);
        site.handle(changed(&at)).await;
        site.faults.work_again();
        let entries = site.keys("M#").await.len() + site.keys("P#").await.len() + site.keys("T#").await.len();
        let rows: Vec<_> = site.dump().await.into_keys().filter(|key| key.contains(" IX#run#")).collect();
        assert!(entries == 0 || rows.len() == 3, "stopped at request {failing}: {rows:?}");
        let image = json!({ "name": { "S": "gone" } });
        let keys = json!({ "PK": { "S": "EXP#1" }, "SK": { "S": "E#META" } });
        let removed = json!({ "Keys": keys, "OldImage": image, "SequenceNumber": "1" });
        let removed = json!({ "eventName": "REMOVE", "dynamodb": removed });
        assert!(site.handle(vec![removed]).await.is_empty());
        assert_eq!(site.dump().await.into_keys().collect::<Vec<_>>(), Vec::<String>::new());
    }
}

/// A name of the maximum length that this server generates, which is 20 characters, must result in
/// only a few index entries.
#[tokio::test]
async fn a_default_name_makes_few_entries() {
    let site = Site::new().await;
    let at = site.run(1, "gentle-squirrels-987").await;
    let user = Update::new(at.key()).remove(("tags", "team")).marked(&at.run);
    site.table.update(&user).await.unwrap();
    assert!(site.handle(changed(&at)).await.is_empty());
    let entries = site.keys("T#").await.len() + site.keys("C").await.len();
    assert!(entries <= 14, "{entries}, including the copy");
}
