//! Tests the indexer on a private table: the entries that it derives, repeated attempts, and
//! failing requests.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod concurrent_indexers;
mod failing_batches;
mod index_entries;
mod index_rebuild;
mod postponed_runs;
mod removed_entities;
mod trace_packing;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embedded_engine::Engine;
use embedded_engine::faults::FaultInjector;
use entities::{MarkUpdate, RunCopy, RunLocation, marked_item, metric_attribute, pack_set, points::Point};
use fts_indexer::{Indexer, StreamBatch};
use key_schema::index::{RunsByStage, RunsByTime, RunsChanged};
use key_schema::{Descending, IndexEntry, OwnStage, Stage};
use mlflow_api::{ExperimentId, RunId};
use run_index::RunIndex;
use serde_json::{Value, json};
use table::{Item, Map, RetryPolicy, Table, Update, map, number, text};

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
