//! What searches cost in an experiment with 10,000 runs, and what the indexer costs that makes them cheap.

use std::path::Path;
use std::time::Duration;

use crate::calls::Calls;
use embedded_engine::Engine;
use fts_indexer::{Batch as Records, Indexer};
use futures::stream::{self, StreamExt};
use key_schema::IndexEntry;
use key_schema::index::RunsChanged;
use ledger::Ledger;
use mlflow_api::ExperimentId;
use mlflow_api::requests::runs::SearchRuns;
use mlflow_api::tracking::{RunStatus, ViewType};
use serde_json::json;
use table::{Meter, Table};
use tracking::store::{Batch, LoggedMetric, NewExperiment, NewRun, RunChange, Store};

const TIME: i64 = 1_700_000_000_000;
const RUNS: i64 = 10_000;
/// The most a page may cost: requests, read units.
const BUDGET: (f64, f64) = (12.0, 121.0);

/// A search, how many runs its page has (0: any number), and what it is called in the ledger.
struct Search {
    name: &'static str,
    filter: &'static str,
    order_by: &'static [&'static str],
    found: usize,
    has_budget: bool,
}

const SEARCHES: &[Search] = &[
    Search { name: "latest 100", filter: "", order_by: &[], found: 100, has_budget: true },
    Search {
        name: "top 100 by a metric",
        filter: "",
        order_by: &["metrics.metric_3 DESC"],
        found: 100,
        has_budget: true,
    },
    Search {
        name: "a metric filter, ordered by that metric",
        filter: "metrics.metric_3 < 400",
        order_by: &["metrics.metric_3 DESC"],
        found: 100,
        has_budget: true,
    },
    Search {
        name: "a metric filter, ordered by that metric, smallest first",
        filter: "metrics.metric_3 > 400",
        order_by: &["metrics.metric_3 ASC"],
        found: 100,
        has_budget: true,
    },
    Search {
        name: "params + tags, one run in 9",
        filter: "params.optimizer = 'optimizer 2' AND tags.team = 'team 1'",
        order_by: &[],
        found: 100,
        has_budget: true,
    },
    Search {
        name: "params + tags, one run in 15",
        filter: "params.model = 'model 2' AND tags.team = 'team 1'",
        order_by: &[],
        found: 100,
        has_budget: false,
    },
    Search {
        name: "a param and a tag, ordered by a metric, about 70 match",
        filter: "params.rate = '0.042' AND tags.team != 'team 1'",
        order_by: &["metrics.metric_1 DESC"],
        found: 0,
        has_budget: true,
    },
    Search {
        name: "run_name LIKE '%special%', 20 match",
        filter: "attributes.run_name LIKE '%special%'",
        order_by: &[],
        found: 20,
        has_budget: true,
    },
    Search {
        name: "run_name LIKE '%x%', 20 match",
        filter: "attributes.run_name LIKE '%x%'",
        order_by: &[],
        found: 20,
        has_budget: true,
    },
    Search {
        name: "run_name ILIKE 'SPECIAL%' ordered by a metric, 20 match",
        filter: "attributes.run_name ILIKE 'SPECIAL%'",
        order_by: &["metrics.metric_0"],
        found: 20,
        has_budget: true,
    },
    Search {
        name: "status = 'FAILED', one run in 50",
        filter: "attributes.status = 'FAILED'",
        order_by: &[],
        found: 100,
        has_budget: true,
    },
    Search {
        name: "status = 'FINISHED', the others",
        filter: "attributes.status = 'FINISHED'",
        order_by: &[],
        found: 100,
        has_budget: true,
    },
    Search {
        name: "a param, ordered by a metric",
        filter: "params.model = 'model 2'",
        order_by: &["metrics.metric_3 DESC"],
        found: 100,
        has_budget: false,
    },
    Search {
        name: "a metric filter that one run in 100 passes, newest first",
        filter: "metrics.metric_3 > 990",
        order_by: &[],
        found: 100,
        has_budget: false,
    },
    Search { name: "ordered by name", filter: "", order_by: &["run_name"], found: 100, has_budget: false },
    Search {
        name: "ordered by end_time, which is in no index",
        filter: "",
        order_by: &["end_time"],
        found: 100,
        has_budget: false,
    },
];

impl Search {
    fn of(&self, experiment: ExperimentId) -> SearchRuns {
        SearchRuns {
            experiment_ids: vec![experiment.to_string()],
            filter: self.filter.to_owned(),
            run_view_type: Some(ViewType::ActiveOnly),
            max_results: Some(100),
            order_by: self.order_by.iter().map(|&clause| clause.to_owned()).collect(),
            page_token: String::new(),
        }
    }
}

/// A table whose requests are metered, and those of its indexer.
#[derive(Clone)]
struct Bench {
    store: Calls,
    indexer: Indexer,
    meter: Meter,
}

impl Bench {
    async fn new() -> Self {
        Self::on(&Engine::memory().unwrap()).await
    }

    async fn on(engine: &Engine) -> Self {
        let meter = Meter::default();
        let table = Table::new(engine.client(), "capacity");
        table.create_if_missing().await.unwrap();
        let table = table.metered(meter.clone());
        let store = Calls(Store::with_lease(table.clone(), "s3://bucket/root", Duration::ZERO));
        Self { store, indexer: Indexer::new(table), meter }
    }

    async fn experiment(&self, name: &str) -> ExperimentId {
        let new = NewExperiment { name: name.to_owned(), ..NewExperiment::default() };
        self.store.experiment_create(&new).await.unwrap()
    }

    /// Indexes runs as one batch of the stream with several records of each.
    async fn index(&self, experiment: ExperimentId, runs: &[String]) {
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
        let answer = self.indexer.handle(Records { records: records.collect() }).await;
        assert!(answer.batch_item_failures.is_empty());
    }

    /// Makes an experiment with runs of 10 metrics, 5 params and 3 tags each, and indexes them.
    async fn fill(&self, experiment: ExperimentId, count: i64) {
        for thousand in (0..count).step_by(1_000) {
            let runs = stream::iter(thousand..count.min(thousand + 1_000)).map(|number| {
                let bench = self.clone();
                tokio::spawn(async move { bench.run(experiment, number).await })
            });
            let runs: Vec<_> = runs.buffered(4).map(Result::unwrap).collect().await;
            self.index(experiment, &runs).await;
        }
        self.meter.take();
    }

    async fn small_run(&self, experiment: ExperimentId, number: i64) -> String {
        let new = NewRun { name: name(number), start_time: TIME + number, ..NewRun::default() };
        let run = self.store.run_create(experiment, &new).await.unwrap().info.run_id;
        let value = f64::from(i32::try_from(spread(number, 31) % 1_000_000).unwrap());
        let metric = LoggedMetric { key: "metric_3".to_owned(), value, timestamp: TIME, step: 1, model: None };
        self.store.run_log_metric(&run, &metric).await.unwrap();
        run
    }

    async fn run(&self, experiment: ExperimentId, number: i64) -> String {
        let new =
            NewRun { user_id: "somebody".to_owned(), name: name(number), start_time: TIME + number, tags: Vec::new() };
        let run = self.store.run_create(experiment, &new).await.unwrap().info.run_id;
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
        self.store.run_log_batch(&run, &Batch { metrics: metrics.collect(), params, tags }).await.unwrap();
        let status = Some(if number % 50 == 7 { RunStatus::Failed } else { RunStatus::Finished });
        let change = RunChange { status, end_time: Some(TIME + number + 1_000), name: None };
        self.store.run_update(&run, &change).await.unwrap();
        run
    }
}

/// A number that looks drawn by lot and is the same on every machine.
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
    format!("{}-{}-{}", pick(&words, 1), pick(&animals, 2), spread(number, 3) % 1_000)
}

/// What the page of each search consumes: requests, read units.
async fn measure(bench: &Bench, experiment: ExperimentId) -> Vec<(f64, f64)> {
    let mut measured = Vec::new();
    for search in SEARCHES {
        // What is indexed is read once a minute.
        bench.store.run_search(&search.of(experiment)).await.unwrap();
        bench.meter.take();
        let page = bench.store.run_search(&search.of(experiment)).await.unwrap();
        assert!(search.found == 0 || page.runs.len() == search.found, "{}: {}", search.name, page.runs.len());
        let usage = bench.meter.take();
        measured.push((f64::from(usage.requests), usage.read_units));
    }
    measured
}

/// Searches in an experiment beside another, and alone.
pub(crate) async fn searches(ledger: &mut Ledger) {
    let bench = Bench::new().await;
    let experiment = bench.experiment("one").await;
    bench.fill(experiment, RUNS).await;
    let alone = measure(&bench, experiment).await;
    let other = bench.experiment("other").await;
    bench.fill(other, RUNS).await;
    let beside = measure(&bench, experiment).await;
    for ((search, alone), beside) in SEARCHES.iter().zip(alone).zip(beside) {
        ledger.search(search.name, search.has_budget.then_some(BUDGET), beside, alone);
    }
    // The fiftieth page costs what the first does.
    for search in [&SEARCHES[0], &SEARCHES[1], &SEARCHES[4]] {
        let mut wanted = search.of(experiment);
        wanted.max_results = Some(10);
        let mut cost = Vec::new();
        for page in 1..=50 {
            bench.meter.take();
            let answer = bench.store.run_search(&wanted).await.unwrap();
            let usage = bench.meter.take();
            if page == 1 || page == 50 {
                cost.push((f64::from(usage.requests), usage.read_units));
            }
            wanted.page_token = answer.next_page_token.unwrap();
        }
        ledger.pages(search.name, cost[0], cost[1]);
    }
}

/// The latest runs and the top of a metric in experiments of 10,000 and of 100,000 runs: the same cost.
pub(crate) async fn at_scale() {
    // A database in memory may have a gigabyte. Where a file system in memory is mounted, nothing waits for a disk.
    let in_memory = Path::new("/dev/shm");
    let directory = if in_memory.is_dir() { tempfile::tempdir_in(in_memory) } else { tempfile::tempdir() }.unwrap();
    let engine = Engine::open(directory.path()).unwrap();
    let bench = Bench::on(&engine).await;
    let experiment = bench.experiment("large").await;
    let mut costs = Vec::new();
    let mut count = 0;
    for runs in [RUNS, 10 * RUNS] {
        while count < runs {
            let ids: Vec<_> = stream::iter(count..count + 1_000)
                .map(|number| {
                    let bench = bench.clone();
                    tokio::spawn(async move { bench.small_run(experiment, number).await })
                })
                .buffered(4)
                .map(Result::unwrap)
                .collect()
                .await;
            bench.index(experiment, &ids).await;
            engine.trim_stream(Duration::ZERO).await.unwrap();
            count += 1_000;
        }
        let mut cost = Vec::new();
        for search in &SEARCHES[..2] {
            bench.store.run_search(&search.of(experiment)).await.unwrap();
            bench.meter.take();
            assert_eq!(bench.store.run_search(&search.of(experiment)).await.unwrap().runs.len(), 100);
            let usage = bench.meter.take();
            cost.push((search.name, usage.requests, usage.read_units));
        }
        costs.push(cost);
    }
    assert_eq!(costs[0], costs[1], "10,000 runs, 100,000 runs");
}

/// What the indexer does for a run.
pub(crate) async fn indexing(ledger: &mut Ledger) {
    let bench = Bench::new().await;
    let experiment = bench.experiment("one").await;
    let tags = [("mlflow.user", "somebody"), ("mlflow.source.name", "train.py"), ("mlflow.source.type", "LOCAL")];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let new = NewRun { name: "serious-newt-353".to_owned(), start_time: TIME, tags, ..NewRun::default() };
    let run = bench.store.run_create(experiment, &new).await.unwrap().info.run_id;
    bench.meter.take();
    bench.index(experiment, std::slice::from_ref(&run)).await;
    ledger.row("a new run, 4 tags", None, &bench.meter.take(), 1);
    let metrics = |step: i64| {
        (0..10).map(move |number| LoggedMetric {
            key: format!("metric_{number}"),
            value: f64::from(i32::try_from(step).unwrap()),
            timestamp: TIME + step,
            step,
            model: None,
        })
    };
    bench.store.run_log_batch(&run, &Batch { metrics: metrics(0).collect(), ..Batch::default() }).await.unwrap();
    bench.meter.take();
    bench.index(experiment, std::slice::from_ref(&run)).await;
    ledger.row("its first 10 metrics", None, &bench.meter.take(), 1);
    for step in 1..100 {
        bench.store.run_log_batch(&run, &Batch { metrics: metrics(step).collect(), ..Batch::default() }).await.unwrap();
    }
    bench.meter.take();
    bench.index(experiment, std::slice::from_ref(&run)).await;
    ledger.row("100 further values of each, in one batch of the stream", None, &bench.meter.take(), 1);
    bench.index(experiment, std::slice::from_ref(&run)).await;
    ledger.row("the same batch again", None, &bench.meter.take(), 1);
    let params = (0..5).map(|number| (format!("param_{number}"), "value".to_owned())).collect();
    bench.store.run_log_batch(&run, &Batch { params, ..Batch::default() }).await.unwrap();
    bench.meter.take();
    bench.index(experiment, std::slice::from_ref(&run)).await;
    ledger.row("5 params", None, &bench.meter.take(), 1);
    let change = RunChange { status: Some(RunStatus::Finished), end_time: Some(TIME + 9_000), name: None };
    bench.store.run_update(&run, &change).await.unwrap();
    bench.meter.take();
    bench.index(experiment, std::slice::from_ref(&run)).await;
    ledger.row("its end", None, &bench.meter.take(), 1);
}
