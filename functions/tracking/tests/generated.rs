//! `docs/capacity.md`: what the calls of the tracking domain cost, metered. `UPDATE_DOCS=1` writes it anew; a call that became
//! dearer than its budget fails.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod ledger;

use std::time::Duration;

use embedded_engine::Engine;
use ledger::{Ledger, searches};
use mlflow_api::ExperimentId;
use mlflow_api::tracking::{RunStatus, ViewType};
use table::{Meter, Table};
use tracking::store::{
    Batch, ExperimentSearch, LoggedMetric, NewExperiment, NewRun, RunChange, RunSearch, SampleRange, Store,
};

const TIME: i64 = 1_700_000_000_000;

/// A store on a table of its own, its calls metered.
struct Bench {
    store: Store,
    meter: Meter,
}

impl Bench {
    async fn new(lease: Duration) -> Self {
        let meter = Meter::default();
        let table = Table::new(Engine::memory().unwrap().client(), "capacity");
        table.create_if_missing().await.unwrap();
        let store = Store::with_lease(table.metered(meter.clone()), "s3://bucket/root", lease);
        Self { store, meter }
    }

    /// A store whose leases outlast the test, with an experiment.
    async fn with_experiment() -> (Self, ExperimentId) {
        let bench = Self::new(Duration::from_hours(1)).await;
        let new = NewExperiment { name: "experiment".to_owned(), ..NewExperiment::default() };
        let experiment = bench.store.experiment_create(&new).await.unwrap();
        bench.store.experiment_get(experiment).await.unwrap();
        bench.meter.take();
        (bench, experiment)
    }

    async fn run(&self, experiment: ExperimentId, start_time: i64) -> String {
        let run = self.store.run_create(experiment, &new_run(start_time)).await.unwrap();
        self.meter.take();
        run.info.run_id
    }
}

/// The four tags are those that the Python client sets.
fn new_run(start_time: i64) -> NewRun {
    let tags = [
        ("mlflow.user", "somebody"),
        ("mlflow.source.name", "train.py"),
        ("mlflow.source.type", "LOCAL"),
        ("mlflow.runName", "unique-name-123"),
    ];
    NewRun {
        user_id: "somebody".to_owned(),
        name: "unique-name-123".to_owned(),
        start_time,
        tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
    }
}

fn metric(key: &str, step: i64) -> LoggedMetric {
    let value = f64::from(i32::try_from(step).unwrap()) / 7.0;
    LoggedMetric { key: key.to_owned(), value, timestamp: TIME + step * 1_000, step }
}

fn metrics(count: usize, step: i64) -> Vec<LoggedMetric> {
    (0..count).map(|number| metric(&format!("metric_{number:04}"), step)).collect()
}

fn params(numbers: std::ops::Range<usize>, value: &str) -> Vec<(String, String)> {
    numbers.map(|number| (format!("param_{number:04}"), format!("{value}{number}"))).collect()
}

fn search(experiment: ExperimentId) -> RunSearch {
    RunSearch {
        experiment_ids: vec![experiment.to_string()],
        filter: String::new(),
        view: ViewType::ActiveOnly,
        max_results: 100,
        order_by: Vec::new(),
        page_token: String::new(),
    }
}

async fn experiments(ledger: &mut Ledger) {
    let bench = Bench::new(Duration::ZERO).await;
    let (store, meter) = (&bench.store, &bench.meter);
    let new = NewExperiment { name: "experiment".to_owned(), ..NewExperiment::default() };
    let experiment = store.experiment_create(&new).await.unwrap();
    ledger.row("create experiment", Some((2.0, 8.0)), &meter.take(), 1);
    store.experiment_get(experiment).await.unwrap();
    ledger.row("get experiment", None, &meter.take(), 1);
    store.experiment_get_by_name("experiment").await.unwrap();
    ledger.row("get experiment by name", None, &meter.take(), 1);
    store.experiment_set_tag(experiment, "team", "research").await.unwrap();
    ledger.row("set a tag of an experiment", None, &meter.take(), 1);
    store.experiment_rename(experiment, "renamed").await.unwrap();
    ledger.row("rename experiment", None, &meter.take(), 1);
    for number in 0..24 {
        store.run_create(experiment, &new_run(TIME + number)).await.unwrap();
    }
    meter.take();
    store.experiment_delete(experiment).await.unwrap();
    ledger.row("delete an experiment with 24 runs", Some((2.0, 8.0)), &meter.take(), 1);
    store.experiment_restore(experiment).await.unwrap();
    ledger.row("restore an experiment with 24 runs", Some((2.0, 8.0)), &meter.take(), 1);
    for number in 0..24 {
        let new = NewExperiment { name: format!("other {number}"), ..NewExperiment::default() };
        store.experiment_create(&new).await.unwrap();
    }
    meter.take();
    let mut wanted = ExperimentSearch {
        view: ViewType::ActiveOnly,
        filter: String::new(),
        order_by: Vec::new(),
        max_results: 20,
        page_token: String::new(),
    };
    let found = store.experiment_search(&wanted).await.unwrap();
    assert_eq!(found.experiments.len(), 20);
    ledger.row("search: 20 experiments", Some((2.0, 0.0)), &meter.take(), 1);
    wanted.filter.push_str("name LIKE 'other%'");
    store.experiment_search(&wanted).await.unwrap();
    ledger.row("search: 20 of 25 experiments by name", None, &meter.take(), 1);
}

async fn runs(ledger: &mut Ledger) {
    let (bench, experiment) = Bench::with_experiment().await;
    let (store, meter) = (&bench.store, &bench.meter);
    for number in 0..1_000 {
        let run = store.run_create(experiment, &new_run(TIME + number)).await.unwrap();
        let batch = Batch { metrics: metrics(5, number), params: params(0..5, "value "), ..Batch::default() };
        store.run_log_batch(&run.info.run_id, &batch).await.unwrap();
    }
    meter.take();
    let run = store.run_create(experiment, &new_run(TIME + 2_000)).await.unwrap().info.run_id;
    ledger.row("create run, 4 tags", Some((2.0, 8.0)), &meter.take(), 1);
    store.run_set_tag(&run, "note", "a remark").await.unwrap();
    ledger.row("set a tag", Some((1.0, 5.0)), &meter.take(), 1);
    store.run_delete_tag(&run, "note").await.unwrap();
    ledger.row("delete a tag", None, &meter.take(), 1);
    store.run_log_param(&run, "depth", "12").await.unwrap();
    ledger.row("log one param", None, &meter.take(), 1);
    let finished = RunChange { status: Some(RunStatus::Finished), end_time: Some(TIME + 9_000), name: None };
    store.run_update(&run, &finished).await.unwrap();
    ledger.row("finish a run", Some((1.0, 6.0)), &meter.take(), 1);

    let run = bench.run(experiment, TIME).await;
    store.run_log_batch(&run, &Batch { params: params(0..100, "value "), ..Batch::default() }).await.unwrap();
    ledger.row("log_batch, 100 params", Some((2.0, 15.0)), &meter.take(), 1);
    store.run_log_batch(&run, &Batch { metrics: metrics(100, 0), ..Batch::default() }).await.unwrap();
    meter.take();
    let whole = store.run_get(&run).await.unwrap();
    assert_eq!((whole.data.metrics.len(), whole.data.params.len()), (100, 100));
    ledger.row("get a run with 100 metrics and 100 params", Some((2.0, 0.0)), &meter.take(), 1);

    let run = bench.run(experiment, TIME).await;
    for step in 0..5 {
        store.run_log_batch(&run, &Batch { metrics: metrics(5, step), ..Batch::default() }).await.unwrap();
    }
    meter.take();
    store.run_delete(&run).await.unwrap();
    ledger.row("delete a run with 25 points", Some((2.0, 8.0)), &meter.take(), 1);
    store.run_restore(&run).await.unwrap();
    ledger.row("restore a run with 25 points", Some((2.0, 8.0)), &meter.take(), 1);

    store.run_search(&search(experiment)).await.unwrap();
    meter.take();
    let page = store.run_search(&search(experiment)).await.unwrap();
    assert_eq!(page.runs.len(), 100);
    ledger.row("search: latest 100 of 1,000 runs, none of them indexed", Some((4.0, 0.0)), &meter.take(), 1);
    let mut wanted = search(experiment);
    wanted.filter.push_str("metrics.metric_0001 > 10");
    wanted.order_by = vec!["metrics.metric_0001 DESC".to_owned()];
    let page = store.run_search(&wanted).await.unwrap();
    assert_eq!(page.runs.len(), 100);
    ledger.row(
        "search: metric filter and order, 1,000 runs, none of them indexed",
        Some((12.0, 0.0)),
        &meter.take(),
        1,
    );
}

async fn logging(ledger: &mut Ledger) {
    let (bench, experiment) = Bench::with_experiment().await;
    let (store, meter) = (&bench.store, &bench.meter);
    let run = bench.run(experiment, TIME).await;
    for step in 0..1_000 {
        store.run_log_metric(&run, &metric(&format!("metric_{}", step % 10), step)).await.unwrap();
    }
    ledger.row("log one metric (run with 10 metrics, mean over 1,000 calls)", Some((1.5, 3.0)), &meter.take(), 1_000);
    let run = bench.run(experiment, TIME).await;
    for step in 0..100 {
        store.run_log_batch(&run, &Batch { metrics: metrics(100, step), ..Batch::default() }).await.unwrap();
    }
    ledger.row("log_batch, 100 metrics at one step (mean over 100 calls)", Some((3.0, 30.0)), &meter.take(), 100);
    let run = bench.run(experiment, TIME).await;
    let steps = (0..1_000).map(|step| metric("loss", step)).collect();
    store.run_log_batch(&run, &Batch { metrics: steps, ..Batch::default() }).await.unwrap();
    ledger.row("log_batch, 1,000 steps of one metric", Some((4.0, 40.0)), &meter.take(), 1);
    let (points, _) = store.metric_history(&run, "loss", None, "").await.unwrap();
    assert_eq!(points.len(), 1_000);
    ledger.row("history of one metric, 1,000 points", Some((2.0, 0.0)), &meter.take(), 1);
}

async fn wide_metrics(ledger: &mut Ledger) {
    let (bench, experiment) = Bench::with_experiment().await;
    let (store, meter) = (&bench.store, &bench.meter);
    let run = bench.run(experiment, TIME).await;
    for half in metrics(2_000, 1).chunks(1_000) {
        store.run_log_batch(&run, &Batch { metrics: half.to_vec(), ..Batch::default() }).await.unwrap();
    }
    ledger.row("2,000 metric keys in two batches", None, &meter.take(), 1);
    assert_eq!(store.run_get(&run).await.unwrap().data.metrics.len(), 2_000);
    ledger.row("get that run", None, &meter.take(), 1);

    let run = bench.run(experiment, TIME).await;
    for step in 0..150 {
        let all = metrics(1_500, step);
        for part in all.chunks(1_000) {
            store.run_log_batch(&run, &Batch { metrics: part.to_vec(), ..Batch::default() }).await.unwrap();
        }
    }
    ledger.row("1,500 metrics x 150 steps, a call of 1,000 or 500 metrics (mean over 300)", None, &meter.take(), 300);
    for key in ["metric_0000", "metric_1499"] {
        let (points, _) = store.metric_history(&run, key, None, "").await.unwrap();
        assert_eq!(points.iter().map(|point| point.step).collect::<Vec<_>>(), (0..150).collect::<Vec<_>>());
    }
    ledger.row("history of one of its metrics", None, &meter.take(), 2);
    let whole = store.run_get(&run).await.unwrap();
    assert!(whole.data.metrics.len() == 1_500 && whole.data.metrics.iter().all(|metric| metric.step == 149));
    ledger.row("get that run", None, &meter.take(), 1);
}

async fn many_params(ledger: &mut Ledger) {
    let (bench, experiment) = Bench::with_experiment().await;
    let (store, meter) = (&bench.store, &bench.meter);
    let run = bench.run(experiment, TIME).await;
    let value = "v".repeat(5_990);
    for start in (0..2_000).step_by(100) {
        let batch = Batch { params: params(start..start + 100, &value), ..Batch::default() };
        store.run_log_batch(&run, &batch).await.unwrap();
    }
    ledger.row("2,000 params of 6,000 characters, a call of 100 (mean over 20)", None, &meter.take(), 20);
    let whole = store.run_get(&run).await.unwrap();
    assert_eq!(whole.data.params.len(), 2_000);
    assert!(whole.data.params.iter().all(|param| param.value.starts_with(&value)));
    ledger.row("get that run", None, &meter.take(), 1);
}

async fn a_million_points(ledger: &mut Ledger) {
    let (bench, experiment) = Bench::with_experiment().await;
    let (store, meter) = (&bench.store, &bench.meter);
    let run = bench.run(experiment, TIME).await;
    for start in (0..1_000_000).step_by(1_000) {
        let points = (start..start + 1_000).map(|step| metric("loss", step)).collect();
        store.run_log_batch(&run, &Batch { metrics: points, ..Batch::default() }).await.unwrap();
    }
    ledger.row("1,000,000 points of one metric, a call of 1,000 (mean over 1,000)", None, &meter.take(), 1_000);
    let (points, _) = store.metric_history(&run, "loss", None, "").await.unwrap();
    assert!(points.iter().map(|point| point.step).eq(0..1_000_000));
    ledger.row("their history, whole", None, &meter.take(), 1);
    let mut token = String::new();
    let mut pages = 0;
    let mut next_step = 0;
    loop {
        let (points, next) = store.metric_history(&run, "loss", Some(25_000), &token).await.unwrap();
        assert!(points.iter().map(|point| point.step).eq(next_step..next_step + 25_000));
        (pages, next_step) = (pages + 1, next_step + 25_000);
        let Some(next) = next else { break };
        token = next;
    }
    assert_eq!(next_step, 1_000_000);
    ledger.row("their history, a page of 25,000 (mean over 40)", None, &meter.take(), pages);
    let range = SampleRange { start: 0, end: 999_999 };
    let sample = store.metric_history_sample(vec![run], "loss", Some(range), 320).await.unwrap();
    assert_eq!(sample.len(), 320);
    ledger.row("a sample of 320 of them", None, &meter.take(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_capacity_ledger_is_up_to_date_and_within_its_budgets() {
    let mut ledger = Ledger::default();
    ledger.section("Experiments");
    experiments(&mut ledger).await;
    ledger.section("Runs, in an experiment with 1,000 of them");
    runs(&mut ledger).await;
    ledger.section("Metrics");
    logging(&mut ledger).await;
    ledger.search_section(
        "Searches, in an experiment with 10,000 runs of 10 metrics, 5 params and 3 tags, beside another such",
    );
    searches::searches(&mut ledger).await;
    ledger.section("The indexer, beside the requests");
    searches::indexing(&mut ledger).await;
    ledger.section("Large runs");
    wide_metrics(&mut ledger).await;
    many_params(&mut ledger).await;
    a_million_points(&mut ledger).await;
    ledger.check();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "fills a table for minutes; part of `make test-slow`"]
async fn a_hundred_thousand_runs_are_searched_at_the_cost_of_ten_thousand() {
    searches::at_scale().await;
}
