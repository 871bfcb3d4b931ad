//! A table with many runs, and an indexer for them.

use embedded_engine::Engine;
use entities::RunLocation;
use entities::attributes::{CALLS, DUE, LEASED, OVERDUE, REVISION, SEEN, STATUS};
use entities::journal::{SealedSegments, Series, pack_call};
use entities::points::Point;
use fts_indexer::{Indexer, StreamBatch as Records};
use futures::stream::{self, StreamExt};
use key_schema::index::RunsChanged;
use key_schema::{Digest, IndexEntry, rows};
use mlflow_api::tracking::RunStatus;
use mlflow_api::{ExperimentId, RunId};
use serde_json::json;
use table::{Item, Table, bytes_set};
use test_site::ledger::MeteredProcesses;
use tracking::store::{LogBatchData, LoggedMetric, NewRun, RunChange};

use super::{TIME, metrics, process, table};
use crate::calls::Calls;

/// The step from which on calls to a run with 10 metrics only add to the run's journal. Points of
/// earlier calls are in the run's document, and two of these calls mark the run.
const CALLED: i64 = 6;

/// Two groups of processes that access one table: some serve requests, and others index.
pub(crate) struct FilledTable {
    pub(crate) requests: MeteredProcesses<Calls>,
    pub(crate) indexing: MeteredProcesses<Indexer>,
}

impl FilledTable {
    pub(crate) async fn on(engine: &Engine) -> Self {
        let table = table(engine).await;
        Self {
            requests: MeteredProcesses::new(table.clone(), process),
            indexing: MeteredProcesses::new(table, Indexer::new),
        }
    }

    /// Logs 10 metrics to each of these runs, once a second for a minute. Most of the journals'
    /// content is written directly to the table, in the form that calls would write, because sixty
    /// thousand calls take a minute.
    pub(crate) async fn log_a_minute(&self, experiment: ExperimentId, runs: &[String]) {
        const CALLS_OF_TAIL: usize = 4;
        let steps: Vec<_> =
            (CALLED..60).map(|step| pack_call(&series(&metrics(10, step)), &SealedSegments::new())).collect();
        let tails: Vec<_> = steps.chunks(CALLS_OF_TAIL).map(|calls| bytes_set(calls.to_vec())).collect();
        for run in runs {
            for step in 1..CALLED {
                self.requests.store.run_log_batch(run, &metrics(10, step)).await.unwrap();
            }
        }
        let tails = runs.iter().flat_map(|run| {
            let run = RunId::parse(run).unwrap();
            tails.iter().zip(0..).map(move |(calls, number)| {
                let tail = Item::new(rows::MetricJournal::key(&run, &Digest(number))).with(CALLS, calls.clone());
                assert!(tail.size() <= 1 << 10, "{}", tail.size());
                tail
            })
        });
        self.requests.table().write_many(tails.collect(), &[]).await.unwrap();
        let at = RunLocation { experiment, run: RunId::parse(&runs[0]).unwrap() };
        let document = self.requests.table().get(&at.key()).await.unwrap().unwrap();
        assert!(document.has(LEASED), "calls only add to the journal");
    }

    /// Creates runs with these numbers.
    pub(crate) async fn runs<F: Future<Output = String> + Send + 'static>(
        &self,
        numbers: std::ops::Range<i64>,
        make: impl Fn(Calls, i64) -> F,
    ) -> Vec<String> {
        let runs = stream::iter(numbers).map(|number| tokio::spawn(make(self.requests.store.clone(), number)));
        runs.buffered(4).map(Result::unwrap).collect().await
    }
}

/// Indexes runs in stream batches of a thousand runs each, with several records for each run.
pub(crate) async fn index(indexer: &Indexer, experiment: ExperimentId, runs: &[String]) {
    for runs in runs.chunks(1_000) {
        let records = runs.iter().flat_map(|run| ["", "#METRIC", ""].map(|part| (run, part)));
        let records = records.enumerate().map(|(number, (run, part))| {
            json!({
                "eventName": "MODIFY",
                "dynamodb": {
                    "Keys": { "PK": { "S": format!("EXP#{experiment}") }, "SK": { "S": format!("R#{run}{part}") } },
                    "NewImage": { (RunsChanged::INDEX.sort): { "S": run } },
                    "SequenceNumber": number.to_string(),
                },
            })
        });
        let answer = indexer.handle(Records { records: records.collect() }).await;
        assert!(answer.batch_item_failures.is_empty());
    }
}

/// Indexes a run, given a stream record of the last change to its document.
pub(crate) async fn index_changed(indexer: &Indexer, at: &RunLocation, document: &Item) {
    let mut image = json!({ (RunsChanged::INDEX.sort): { "S": at.run.as_str() } });
    for name in [DUE, LEASED, OVERDUE, REVISION, SEEN] {
        if let Some(number) = document.get(name) {
            image[name.name()] = json!({ "N": number.to_string() });
        }
    }
    image[STATUS.name()] = json!({ "S": document.get(STATUS) });
    let keys = json!({ "PK": { "S": format!("EXP#{}", at.experiment) }, "SK": { "S": format!("R#{}", at.run) } });
    let change = json!({ "Keys": keys, "NewImage": image, "SequenceNumber": "1" });
    let records = vec![json!({ "eventName": "MODIFY", "dynamodb": change })];
    let answer = indexer.handle(Records { records }).await;
    assert!(answer.batch_item_failures.is_empty());
}

/// Packs runs and removes their marks, as would happen minutes after they were logged to.
pub(crate) async fn come_to_rest(table: &Table, experiment: ExperimentId, runs: &[String]) {
    for minutes in [0, 2, 4] {
        let indexer = Indexer::new(table.clone()).with_clock(move || entities::now_ms() + minutes * 60_000);
        index(&indexer, experiment, runs).await;
    }
}

/// Creates a run with one metric.
pub(crate) async fn small_run(store: &Calls, experiment: ExperimentId, number: i64) -> String {
    let new = NewRun { name: name(number), start_time: TIME + number, ..NewRun::default() };
    let run = store.run_create(experiment, &new).await.unwrap().info.run_id;
    let value = f64::from(i32::try_from(spread(number, 31) % 1_000_000).unwrap());
    let metric = LoggedMetric { key: "metric_3".to_owned(), value, timestamp: TIME, step: 1, model: None };
    store.run_log_metric(&run, &metric).await.unwrap();
    run
}

/// Creates a run with 10 metrics that keeps running.
pub(crate) async fn running_run(store: &Calls, experiment: ExperimentId, number: i64) -> String {
    let new = NewRun { name: name(number), start_time: TIME + number, ..NewRun::default() };
    let run = store.run_create(experiment, &new).await.unwrap().info.run_id;
    store.run_log_batch(&run, &metrics(10, 0)).await.unwrap();
    run
}

/// Creates a run with 10 metrics, 5 params and 3 tags.
pub(crate) async fn run(store: &Calls, experiment: ExperimentId, number: i64) -> String {
    let new =
        NewRun { user_id: "somebody".to_owned(), name: name(number), start_time: TIME + number, tags: Vec::new() };
    let run = store.run_create(experiment, &new).await.unwrap().info.run_id;
    let text = |key: &str, value: String| (key.to_owned(), value);
    let params = vec![
        text("model", format!("model {}", spread(number, 11) % 5)),
        text("rate", format!("0.{:03}", spread(number, 13) % 100)),
        text("layers", (spread(number, 17) % 12).to_string()),
        text("optimizer", format!("optimizer {}", spread(number, 19) % 3)),
        text("seed", number.to_string()),
    ];
    let tags = vec![
        text("team", format!("team {}", spread(number, 23) % 3)),
        text("owner", format!("owner {}", spread(number, 29) % 40)),
        text("note", format!("note of {number}")),
    ];
    let metrics = (0..10).map(|metric| LoggedMetric {
        key: format!("metric_{metric}"),
        value: f64::from(i32::try_from(spread(number, 31 + metric) % 100_000).unwrap()) / 100.0,
        timestamp: TIME + number,
        step: 1,
        model: None,
    });
    store.run_log_batch(&run, &LogBatchData { metrics: metrics.collect(), params, tags }).await.unwrap();
    let status = Some(if number % 50 == 7 { RunStatus::Failed } else { RunStatus::Finished });
    let change = RunChange { status, end_time: Some(TIME + number + 1_000), name: None };
    store.run_update(&run, &change).await.unwrap();
    run
}

/// Returns the points of a batch.
fn series(batch: &LogBatchData) -> Series {
    let point = |metric: &LoggedMetric| Point::new(metric.timestamp, metric.step, metric.value);
    batch.metrics.iter().map(|metric| (metric.key.clone(), vec![point(metric)])).collect()
}

/// Returns a number that looks random but is equal on every machine.
fn spread(number: i64, salt: i64) -> i64 {
    let mixed = (number * 1_000 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed());
    (mixed ^ (mixed >> 29)).wrapping_mul(0x3F58_476D_1CE4_E5B9).rotate_left(17) & i64::from(i32::MAX)
}

fn name(number: i64) -> String {
    let words = ["bold", "calm", "early", "gentle", "jolly", "merry", "noble", "quiet", "rapid", "solid"];
    let animals = ["badger", "crane", "eagle", "heron", "koi", "mole", "otter", "panda", "robin", "stork"];
    let pick = |words: &[&'static str; 10], salt| words[usize::try_from(spread(number, salt) % 10).unwrap()];
    if number % 500 == 250 {
        return format!("special-ox-{number}");
    }
    match number % 2_000 {
        777 => return format!("model-{:03}y-train", spread(number, 3) % 1_000),
        place if place % 10 == 4 => return format!("model-{:03}-train", spread(number, 3) % 1_000),
        _ => {}
    }
    format!("{}-{}-{}", pick(&words, 1), pick(&animals, 2), spread(number, 3) % 1_000)
}
