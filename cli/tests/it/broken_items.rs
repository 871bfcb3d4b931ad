//! Unreadable data in the table causes an error, never an incomplete response. The test breaks one
//! attribute of one item at a time, and reads everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::primitives::Blob;
use embedded_engine::Engine;
use fts_indexer::{Indexer, StreamBatch};
use key_schema::definition::{PK, SK};
use key_schema::index::RunsChanged;
use key_schema::rows::RowDescription;
use key_schema::{IndexEntry, Key};
use mlflow_api::Workspace;
use serde_json::{Value as Json, json};
use table::{Condition, Item, RetryPolicy, Table, Value};
use test_site::all_troubles;
use test_site::route_samples::{SAMPLES, SampleClient};

use crate::table_probe::{probed, queried};
use crate::test_server::{ROOT, TABLE, with_files};

/// Returns copies of an item, each with one broken attribute and a description. With all faults
/// enabled, every attribute is broken in every way. Otherwise, each attribute is broken in one way,
/// which varies by attribute.
fn broken(item: &Item, row: &RowDescription) -> Vec<(String, Item)> {
    let mut all = Vec::new();
    for (number, attribute) in row.attributes().enumerate() {
        let names: Vec<_> = item.0.keys().filter(|name| attribute.is_named(name)).cloned().collect();
        for name in names {
            let mut ways = Vec::new();
            let mut add = |how: &str, value: Option<Value>| {
                let mut item = item.clone();
                item.0.remove(&name);
                item.0.extend(value.map(|value| (name.clone(), value)));
                ways.push((format!("{} {} {how}", row.name, attribute.name), item));
            };
            add("of another type", Some(Value::Bool(true)));
            if attribute.is_required {
                add("missing", None);
            }
            let garbage = || Value::B(Blob::new(vec![0xff; 7]));
            match item.0.get(&name) {
                Some(Value::S(_)) if !(attribute.kind.reads)("?") => add("unknown", Some(Value::S("?".to_owned()))),
                Some(Value::N(_)) => add("a fraction", Some(Value::N("1.5".to_owned()))),
                Some(Value::B(bytes)) => {
                    let half = bytes.as_ref().get(..bytes.as_ref().len() / 2).unwrap_or_default().to_vec();
                    add("cut", Some(Value::B(Blob::new(half))));
                    add("garbage", Some(garbage()));
                }
                Some(Value::Bs(set)) => {
                    let set = set.iter().cloned().chain([Blob::new(vec![0xff; 7])]).collect();
                    add("with garbage in it", Some(Value::Bs(set)));
                }
                Some(Value::M(map)) => {
                    let mut map = map.clone();
                    map.insert("strange".to_owned(), Value::Bool(true));
                    add("with something strange in it", Some(Value::M(map)));
                }
                Some(Value::L(list)) => {
                    let list = list.iter().cloned().chain([Value::Bool(true)]).collect();
                    add("with something strange in it", Some(Value::L(list)));
                }
                _ => {}
            }
            let (first, step) = if all_troubles() { (0, 1) } else { (number % ways.len(), ways.len()) };
            all.extend(ways.into_iter().skip(first).step_by(step));
        }
    }
    all
}

/// Indexes one of two marked runs of an experiment. Searches read the other run from its own items,
/// because it has no copy in the index.
async fn index_one(engine: &Engine, table: &Table) {
    let items = engine.items(TABLE).await.unwrap();
    let marked = items.into_iter().filter(|item| item.get(RunsChanged::INDEX.sort).is_some());
    let record = |item: Json| {
        let keys = json!({ "PK": item["PK"], "SK": item["SK"] });
        let change = json!({ "Keys": keys, "NewImage": item, "SequenceNumber": "1" });
        json!({ "eventName": "MODIFY", "dynamodb": change })
    };
    let records: Vec<_> = marked.map(record).collect();
    let run_of = |record: &Json| record["dynamodb"]["Keys"]["SK"]["S"].as_str().unwrap()[..34].to_owned();
    // The two runs are in the same experiment, which searches read.
    let partition_of = |record: &Json| record["dynamodb"]["Keys"]["PK"]["S"].as_str().unwrap().to_owned();
    let is_other = |one: &Json, other: &Json| partition_of(one) == partition_of(other) && run_of(one) != run_of(other);
    let first = records.iter().find(|one| records.iter().any(|other| is_other(one, other))).map(run_of).unwrap();
    let records: Vec<_> = records.into_iter().filter(|record| run_of(record) == first).collect();
    let answer = Indexer::new(table.clone()).as_only_indexer().handle(StreamBatch { records }).await;
    assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
}

/// Number of items of a row type that are broken in each way. Two are needed, because one run is
/// read from its copy in the index, and another one from its own items. A sample breaks only one.
const ITEMS_OF_A_ROW: usize = 2;
/// Minimum number of reads that are tried for each broken item in a sample. Further reads are
/// tried only while no read of the item has failed.
const ENOUGH_READS: usize = 2;
/// Attributes that are only read by writes or the indexer, attributes of an index copy for which the
/// run itself is read instead, and marks without spans, of which the samples have none where they
/// search.
const NOT_ANSWERED: [&str; 11] = [
    " nc ",
    "Config count ",
    "Config layout ",
    "EvaluationInputs ",
    "IndexList ",
    "IndexedCopy link_rows ",
    "ModelHome ",
    "Run room ",
    "TraceMark ",
    "WebhookSubscriptions ",
    "WorkspaceScorer ",
];

fn is_not_answered(what: &str) -> bool {
    NOT_ANSWERED.iter().any(|part| what.contains(part))
}

/// Keys and partitions that a read requests from the table.
#[derive(Default)]
struct Asked {
    /// Partition key and sort key.
    keys: BTreeSet<(String, String)>,
    /// Partitions of the table or of an index.
    partitions: BTreeSet<String>,
}

impl Asked {
    /// Records the keys and partitions that a request refers to.
    fn take(&mut self, operation: &str, body: &Json) {
        // The last three operations occur when a process creates a table that does not exist.
        let expected = ["GetItem", "BatchGetItem", "Query", "DescribeTable", "CreateTable", "UpdateTimeToLive"];
        assert!(expected.contains(&operation), "a read called {operation}");
        match queried(body) {
            Some(partition) => drop(self.partitions.insert(partition.to_owned())),
            None => self.take_keys(body),
        }
    }

    fn take_keys(&mut self, body: &Json) {
        match body {
            Json::Object(object) => match (body[PK]["S"].as_str(), body[SK]["S"].as_str()) {
                (Some(pk), Some(sk)) => drop(self.keys.insert((pk.to_owned(), sk.to_owned()))),
                _ => object.values().for_each(|value| self.take_keys(value)),
            },
            Json::Array(values) => values.iter().for_each(|value| self.take_keys(value)),
            _ => {}
        }
    }

    /// Returns whether a response can contain the item, because it is requested by key, or because
    /// it is in a queried partition.
    fn may_get(&self, key: &Key, item: &Item) -> bool {
        let is_queried = |value: &Value| value.as_s().is_ok_and(|text| self.partitions.contains(text));
        self.keys.contains(&(key.pk.clone(), key.sk.clone())) || item.0.values().any(is_queried)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_an_error_and_never_a_shorter_answer() {
    let engine = Engine::memory().unwrap();
    let pause = Duration::from_millis(1);
    let impatient = RetryPolicy { attempts: 2, first_pause: pause, longest_pause: pause, ..RetryPolicy::default() };
    let asked = Arc::<Mutex<Asked>>::default();
    let asking = probed(&engine, {
        let asked = Arc::clone(&asked);
        move |operation, body| asked.lock().unwrap().take(operation, body)
    });
    let table = Table::new(engine.client(), TABLE).with_retry(impatient);
    table.create_if_missing().await.unwrap();
    engine.end_stream(TABLE).await.unwrap();
    let store = tracking::store::Store::new(table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let router = with_files(&table, directory.path()).await;
    let mut walk = SampleClient::new(router.clone());
    for samples in &SAMPLES {
        (samples.reads)(&mut walk).await;
    }
    index_one(&engine, &table).await;
    let mut expected = Vec::new();
    for read in walk.reads {
        // The process is fresh and has empty caches, so that it requests everything that the
        // response contains.
        *asked.lock().unwrap() = Asked::default();
        let (status, answer) = read.answer(&with_files(&asking, directory.path()).await).await;
        assert_eq!(status, 200, "{} {} {answer}", read.method, read.path);
        expected.push((read, answer, std::mem::take(&mut *asked.lock().unwrap())));
    }
    let (items_of_a_row, enough) = if all_troubles() { (ITEMS_OF_A_ROW, usize::MAX) } else { (1, ENOUGH_READS) };
    let (mut noticed, mut unnoticed) = (BTreeMap::<String, usize>::new(), BTreeSet::new());
    for dumped in engine.items(TABLE).await.unwrap() {
        let part = |name: &str| dumped[name]["S"].as_str().unwrap().to_owned();
        let key = Key { pk: part(PK), sk: part(SK) };
        let row = RowDescription::of(&key).unwrap();
        let whole = table.get(&key).await.unwrap().unwrap();
        for (what, item) in broken(&whole, row) {
            // If no request reads an attribute of one item, none reads it in other items of the row
            // type, so a sample tries it only once.
            let is_known = !all_troubles() && is_not_answered(&what) && unnoticed.contains(&what);
            if is_known || noticed.get(&what).is_some_and(|items| *items >= items_of_a_row) {
                continue;
            }
            let mut is_noticed = false;
            table.put(item, &Condition::Always).await.unwrap();
            // This process also has empty caches, and has not seen the unbroken item.
            let router = with_files(&table, directory.path()).await;
            let reads = expected.iter().filter(|(.., asked)| asked.may_get(&key, &whole));
            for (number, (read, expected, _)) in reads.enumerate() {
                if is_noticed && number >= enough {
                    break;
                }
                let (status, answer) = read.answer(&router).await;
                let call = format!("{what}: {} {} {}", read.method, read.path, read.body);
                if status == 200 {
                    assert_eq!(answer, *expected, "{call}");
                    continue;
                }
                assert_eq!((status, &answer["error_code"]), (500, &json!("INTERNAL_ERROR")), "{call} {answer}");
                let message = "The server met an unexpected condition. Its log has the details.";
                assert_eq!(answer["message"], message, "{call}");
                is_noticed = true;
            }
            if is_noticed {
                *noticed.entry(what).or_default() += 1;
            } else {
                unnoticed.insert(what);
            }
        }
        table.put(whole, &Condition::Always).await.unwrap();
    }
    // An attribute counts as read if any item of the row type has shown it.
    unnoticed.retain(|what| !noticed.contains_key(what) && !is_not_answered(what));
    assert_eq!(unnoticed, BTreeSet::new(), "attributes that are never read");
    let least = if all_troubles() { 200 } else { 80 };
    assert!(noticed.len() > least, "{} ways to break an item", noticed.len());
    for (read, expected, _) in &expected {
        assert_eq!(read.answer(&router).await, (200, expected.clone()), "after the last repair");
    }
}
