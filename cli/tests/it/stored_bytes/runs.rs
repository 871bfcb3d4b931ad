//! Bytes of finished runs like those of the cost model (`tools/cost/teams.json`).

use std::fmt::Write as _;
use std::time::Duration;

use artifact_store::ArtifactStore;
use embedded_engine::StreamReader;
use entities::attributes::HISTORIES_ARCHIVED;
use fts_indexer::{DEFAULT_INTERVAL, Indexer, StreamBatch, is_for_indexer};
use key_schema::definition::{GLOBAL_INDEXES, LOCAL_INDEXES};
use key_schema::{Key, rows};
use mlflow_api::{ExperimentId, Workspace};
use retention::{HistoryScans, Retention};
use runtime::clock::now_ms;
use serde_json::{Value, json};
use table::Item;
use test_site::{TABLE, TestClient, TestEnvironment, sample_metrics};

use crate::faults::archiving::memory_archive::MemoryArchive;
use crate::faults::packing::timed;
use crate::faults::removal::Silent;
use crate::faults::write_faults::faulty_write;
use crate::stored_bytes::items::{ItemTotal, TotalsByKind, entry_size, for_each_item, mean};
use crate::stored_bytes::page;

/// Number of runs of the page, and of the comparison in `make test`.
const ALL: u32 = 100;
const FEW: u32 = 5;
/// Number of steps, one per second. Each step is one batch of all metrics.
const STEPS: u32 = 300;
const METRICS: u32 = 10;
const PARAMS: u32 = 5;
/// Age of the runs when histories are archived.
const AGE: Duration = Duration::from_hours(24 * 100);
/// Seconds between two batches of the stream.
const STREAM_INTERVAL: u32 = 5;

/// Kinds of items, with their descriptions.
const KINDS: [(&str, &str); 14] = [
    ("documents", "documents (`R#`)"),
    ("metrics", "metrics documents (`L#METRIC`)"),
    ("segments", "segments (`MHIST#`)"),
    ("charts", "chart rows (`MCHART#`)"),
    ("journal", "journal (`J#`, `JC#`)"),
    ("names", "names of metrics in the journal (`JN#`)"),
    ("copies", "copies (`IX#…#CA#`)"),
    ("by metric", "lists by metric (`IX#…#M#`)"),
    ("by param", "lists by param (`IX#…#P#`)"),
    ("tokens", "lists by token of names and users (`IX#…#T#`)"),
    ("schedule", "schedule of the indexer (`LATER#`)"),
    ("local, documents", "local indexes: documents"),
    ("local, copies", "local indexes: copies"),
    ("global", "global indexes"),
];

/// Returns the kind of a run's item, or `None` if the item belongs to all runs of the experiment.
fn kind_of(key: &Key) -> Option<&'static str> {
    Some(match () {
        () if rows::Run::parse(key).is_some() => "documents",
        () if rows::RunMetrics::parse(key).is_some() => "metrics",
        () if rows::MetricSegment::parse(key).is_some() => "segments",
        () if rows::MetricChart::parse(key).is_some() => "charts",
        () if rows::MetricJournal::parse(key).is_some() || rows::JournalCall::parse(key).is_some() => "journal",
        () if rows::JournalNames::parse(key).is_some() => "names",
        () if rows::IndexedCopy::parse(key).is_some() => "copies",
        () if rows::RankByMetric::parse(key).is_some() => "by metric",
        () if rows::RankByParam::parse(key).is_some() => "by param",
        () if rows::FullText::parse(key).is_some() => "tokens",
        () if rows::Postponed::parse(key).is_some() => "schedule",
        () if rows::Experiment::parse(key).is_some()
            || rows::ExperimentName::parse(key).is_some()
            || rows::IndexList::parse(key).is_some()
            || rows::Config::parse(key).is_some() =>
        {
            return None;
        }
        () => panic!("an item of another kind: {key:?}"),
    })
}

/// Adds an item and its entries in indexes.
fn add(totals: &mut TotalsByKind, key: &Key, item: &Item) {
    let Some(kind) = kind_of(key) else { return };
    totals.add(kind, item.size());
    for size in LOCAL_INDEXES.iter().filter_map(|index| entry_size(item, index)) {
        totals.add(if kind == "copies" { "local, copies" } else { "local, documents" }, size);
    }
    for size in GLOBAL_INDEXES.iter().filter_map(|index| entry_size(item, index)) {
        totals.add("global", size);
    }
}

async fn post(api: &TestClient, path: &str, body: Value) -> Value {
    api.post(path, body).await.ok()
}

/// Returns a name like those that MLflow's client invents.
fn run_name(number: u32) -> String {
    let words = ["bold", "calm", "early", "gentle", "jolly", "merry", "noble", "quiet", "rapid", "solid"];
    let animals = ["badger", "crane", "eagle", "heron", "koi", "mole", "otter", "panda", "robin", "stork"];
    let pick = |words: [&'static str; 10], place: u32| words[usize::try_from(place % 10).unwrap()];
    format!("{}-{}-{}", pick(words, number * 7), pick(animals, number * 3 + number / 10), 100 + number * 37 % 900)
}

/// Creates a run with four tags and logs its params.
async fn create(api: &TestClient, experiment: &Value, number: u32) -> Value {
    let name = run_name(number);
    let tags = [
        ("mlflow.user", "somebody"),
        ("mlflow.source.name", "train.py"),
        ("mlflow.source.type", "LOCAL"),
        ("mlflow.runName", &name),
    ];
    let tags: Vec<_> = tags.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
    let new = json!({
        "experiment_id": experiment, "user_id": "somebody", "run_name": name, "start_time": now_ms(), "tags": tags,
    });
    let run = post(api, "runs/create", new).await["run"]["info"]["run_id"].take();
    for param in 0..PARAMS {
        let value = f64::from(number * PARAMS + param) / 1_000.0;
        let param = json!({ "run_id": run, "key": format!("param_{param:04}"), "value": value.to_string() });
        post(api, "runs/log-parameter", param).await;
    }
    run
}

/// Logs all metrics of a run at one step.
async fn log_step(api: &TestClient, run: &Value, step: u32) {
    let late = sample_metrics::time(step, 0);
    let metrics = (0..METRICS).map(|metric| {
        let (value, timestamp) = (sample_metrics::value(metric, step), now_ms() + late);
        json!({ "key": format!("validation/loss_{metric:04}"), "value": value, "timestamp": timestamp, "step": step })
    });
    post(api, "runs/log-batch", json!({ "run_id": run, "metrics": metrics.collect::<Vec<_>>() })).await;
}

/// Delivers all records of the stream.
async fn deliver(stream: &StreamReader, indexer: &Indexer) {
    loop {
        let mut records = stream.oldest(1_000).await.unwrap();
        let Some(last) = records.last() else { return };
        let last = last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned();
        records.retain(is_for_indexer);
        let answer = indexer.handle(StreamBatch { records }).await;
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
        stream.forget_through(&last).await.unwrap();
    }
}

async fn totals(site: &TestEnvironment) -> TotalsByKind {
    let mut totals = TotalsByKind::default();
    for_each_item(site, |key, item| add(&mut totals, key, item)).await;
    totals
}

/// Archives long histories when the runs are old enough.
async fn archive(site: &TestEnvironment, experiment: &Value) {
    runtime::clock::sleep(AGE).await;
    let retention = Retention::new(site.table.clone(), ArtifactStore::default())
        .with_archive(MemoryArchive::default().open())
        .looking(HistoryScans::AtNewOnes)
        .archiving_histories(true);
    retention.archive_histories(&Workspace::default(), now_ms(), &Silent).await.unwrap();
    let experiment = ExperimentId::from_number(experiment.as_str().unwrap().parse().unwrap()).unwrap();
    let document = site.table.get(&rows::Experiment::key(&experiment)).await.unwrap().unwrap();
    assert!(document.has(HISTORIES_ARCHIVED), "the archiver has to reach the experiment");
}

/// Returns the totals of runs that have finished and are completely packed and indexed. Checks that
/// archiving does not change them.
async fn measured(runs: u32) -> TotalsByKind {
    let site = TestEnvironment::with_stream().await;
    let api = faulty_write::api(&site.table);
    let stream = site.engine.stream(TABLE).await.unwrap().unwrap();
    let indexer = Indexer::new(site.table.clone());
    let experiment = post(&api, "experiments/create", json!({ "name": "e" })).await["experiment_id"].take();
    let mut ids = Vec::new();
    for number in 0..runs {
        ids.push(create(&api, &experiment, number).await);
    }
    for second in 1..=STEPS {
        for run in &ids {
            log_step(&api, run, second - 1).await;
        }
        runtime::clock::sleep(Duration::from_secs(1)).await;
        if u64::from(second).is_multiple_of(DEFAULT_INTERVAL.as_secs()) {
            indexer.tick().await.unwrap();
        }
        if second.is_multiple_of(STREAM_INTERVAL) {
            deliver(&stream, &indexer).await;
        }
    }
    for run in &ids {
        post(&api, "runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": now_ms() })).await;
    }
    // Marks are removed once no call may rely on them any more.
    for _ in 0..5 {
        deliver(&stream, &indexer).await;
        runtime::clock::sleep(DEFAULT_INTERVAL * 2).await;
        indexer.tick().await.unwrap();
    }
    let finished = totals(&site).await;
    // Two local indexes sort documents by time. A mark would be in a third one.
    assert_eq!(finished.0["local, documents"].items, 2 * ids.len(), "no run has a mark");
    archive(&site, &experiment).await;
    assert_eq!(totals(&site).await, finished, "histories of this length stay in the table");
    finished
}

fn section(totals: &TotalsByKind, runs: u32) -> String {
    let mut section = format!(
        "\
## Runs

{ALL} runs of one experiment were created with 4 tags, logged {PARAMS} params in single calls and {METRICS} metrics in a batch per second for {STEPS} seconds,
and were finished, packed and indexed, like the runs of the [cost model](cost.md#three-teams-a-month). Five of the metrics have values of
single precision with noise, as losses of most training scripts do, two are ratios of counts, one is a learning rate, and two have noise in
every bit of double precision. Steps are up to 40 ms late. Rows that all runs of an experiment
share are not included. An entry of an index has the keys of the table and of the index. All entries are in local indexes, which
point-in-time recovery is billed for as well.

[Archiving](../adr/0090-archived-histories.md) does not change these bytes: charts of histories of up to 10,000 points are drawn from all points,
so such histories stay in the table.

| bytes of a run | items | bytes |
|---|---:|---:|
"
    );
    let mut all = ItemTotal::default();
    for (kind, name) in KINDS {
        let total = totals.0.get(kind).copied().unwrap_or_default();
        all.items += total.items;
        all.bytes += total.bytes;
        writeln!(section, "| {name} | {:.0} | {:.0} |", mean(total.items, runs), mean(total.bytes, runs)).unwrap();
    }
    writeln!(section, "| **table and indexes** | {:.0} | {:.0} |", mean(all.items, runs), mean(all.bytes, runs))
        .unwrap();
    let segments = totals.0["segments"].bytes;
    let point = mean(segments, runs * METRICS * STEPS);
    writeln!(section, "| **a point**, in segments | | {point:.1} |").unwrap();
    section
}

#[test]
fn the_page_says_how_many_bytes_runs_take() {
    page::compare(&timed(async { section(&measured(FEW).await, FEW) }));
}

#[test]
#[ignore = "logs 300,000 points; part of `make test-slow`"]
fn a_hundred_runs_take_as_many_bytes_as_the_page_says() {
    page::check(&timed(async { section(&measured(ALL).await, ALL) }));
}
