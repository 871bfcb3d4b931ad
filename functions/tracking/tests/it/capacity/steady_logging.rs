//! The cost of a run whose metrics are logged once a second, with different values each time. It
//! includes the calls, the background work that they cause (packing, deletions, ticks and
//! indexing), and reading the run afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use embedded_engine::Engine;
use entities::RunLocation;
use entities::attributes::REVISION;
use fts_indexer::{DEFAULT_INTERVAL, Indexer};
use mlflow_api::tracking::RunStatus;
use mlflow_api::{ExperimentId, RunId};
use table::{ConsumedUnits, Table, UsageMeter};
use test_site::ledger::{CostLedger, CostWithBackgroundWork};
use tracking::store::{LogBatchData, LoggedMetric, NewRun, RunChange};

use super::filled_table::{index, index_changed};
use super::{TIME, experiment, metric, run, table, without_leases};
use crate::calls::Calls;

/// A training job that logs to a run, with meters that count the requests to the table.
struct Job {
    table: Table,
    experiment: ExperimentId,
    run: String,
    /// A store without leases, so that each call costs as much as on a new Lambda instance.
    store: Calls,
    indexer: Indexer,
    /// The clock of the indexer.
    clock: Arc<AtomicI64>,
    own: UsageMeter,
    following: UsageMeter,
    seconds: u64,
    /// Revision of the run's document in the latest record that the stream has delivered.
    told: Option<i64>,
    /// The cost of reading the run when that is most expensive, which is just before the run is
    /// packed.
    dearest_look: ConsumedUnits,
}

/// Seconds between two batches of the stream.
const BATCHES: u64 = 5;

impl Job {
    /// Returns a job whose run has been created and indexed, without the cost of that.
    async fn new() -> Self {
        let job = Self::with_run(async |store, experiment| run(store, experiment, TIME).await).await;
        job.costs();
        job
    }

    /// Returns a job whose run is created by `create` and has been indexed.
    async fn with_run(create: impl AsyncFnOnce(&Calls, ExperimentId) -> String) -> Self {
        let table = table(&Engine::memory().unwrap()).await;
        let experiment = experiment(&without_leases(table.clone()), "e").await;
        let (own, following) = (UsageMeter::default(), UsageMeter::default());
        let clock = Arc::new(AtomicI64::new(TIME));
        let time = Arc::clone(&clock);
        let indexer = Indexer::new(table.metered(following.clone())).with_clock(move || time.load(Ordering::Relaxed));
        let store = without_leases(table.metered(own.clone()));
        let run = create(&store, experiment).await;
        index(&indexer, experiment, std::slice::from_ref(&run)).await;
        let (told, dearest_look) = (None, ConsumedUnits::default());
        Self { table, experiment, run, store, indexer, clock, own, following, seconds: 0, told, dearest_look }
    }

    /// Advances the time by a second. There is a tick every minute, and a batch of the stream every
    /// few seconds.
    async fn second(&mut self) {
        self.clock.fetch_add(1_000, Ordering::Relaxed);
        self.seconds += 1;
        if self.seconds.is_multiple_of(DEFAULT_INTERVAL.as_secs()) {
            self.indexer.tick().await.unwrap();
        }
        if self.seconds.is_multiple_of(BATCHES) {
            self.stream().await;
        }
    }

    async fn look(&mut self) {
        let meter = UsageMeter::default();
        without_leases(self.table.metered(meter.clone())).run_get(&self.run).await.unwrap();
        let usage = meter.take();
        if usage.read_units > self.dearest_look.read_units {
            self.dearest_look = usage;
        }
    }

    /// Delivers a batch of the stream, if it has a record of the run because the run has been
    /// marked.
    async fn stream(&mut self) {
        let at = RunLocation { experiment: self.experiment, run: RunId::parse(&self.run).unwrap() };
        let document = self.table.get(&at.key()).await.unwrap().unwrap();
        let revision = document.get(REVISION);
        if revision != self.told {
            self.told = revision;
            self.look().await;
            index_changed(&self.indexer, &at, &document).await;
        }
    }

    /// Ends the run, and waits until its mark has been removed.
    async fn end(&mut self) {
        let change = RunChange { status: Some(RunStatus::Finished), end_time: Some(TIME), name: None };
        self.store.run_update(&self.run, &change).await.unwrap();
        // The first pass indexes the end of the run. The second one removes the mark, once no call
        // may rely on it any more.
        for _ in 0..2 {
            self.clock.fetch_add(120_000, Ordering::Relaxed);
            self.indexer.tick().await.unwrap();
            self.stream().await;
        }
    }

    async fn log_step(&self, names: &[String], step: u64) {
        let metrics = names.iter().map(|name| point(name, step)).collect();
        self.store.run_log_batch(&self.run, &LogBatchData { metrics, ..LogBatchData::default() }).await.unwrap();
    }

    fn costs(&self) -> CostWithBackgroundWork {
        CostWithBackgroundWork { own: self.own.take(), following: self.following.take() }
    }

    /// Returns the cost of reading the run when it is most expensive.
    fn dearest_look(&mut self) -> CostWithBackgroundWork {
        CostWithBackgroundWork { own: std::mem::take(&mut self.dearest_look), following: ConsumedUnits::default() }
    }
}

/// Each step has a different value, so the run moves within the list of the metric.
fn point(name: &str, step: u64) -> LoggedMetric {
    metric(name, i64::try_from(step).unwrap())
}

/// Returns names with 20 characters.
fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("validation/loss_{number:04}")).collect()
}

pub(crate) async fn measure(ledger: &mut CostLedger) {
    ledger.section_all_in("Runs whose metrics are logged once a second");
    in_batches(ledger, 10, [2.03, 1.5, 3.0], 1.4, [12.0, 3.0]).await;
    in_batches(ledger, 100, [2.03, 1.5, 3.0], 5.0, [40.0, 4.0]).await;
}

/// Measures the run that `tools/cost/teams.json` describes, from its creation until it is indexed
/// for the last time.
pub(crate) async fn measure_whole(ledger: &mut CostLedger) {
    ledger.section_all_in("A whole run, with its packing and indexing");
    let create = async |store: &Calls, experiment: ExperimentId| {
        let tags = ["mlflow.user", "mlflow.source.name", "mlflow.source.type", "mlflow.source.git.commit"];
        let tags = tags.map(|key| (key.to_owned(), "train.py".to_owned())).to_vec();
        let new = NewRun { name: "serious-newt-353".to_owned(), start_time: TIME, tags, ..NewRun::default() };
        store.run_create(experiment, &new).await.unwrap().info.run_id
    };
    let (names, mut job) = (names(10), Job::with_run(create).await);
    for number in 0..5 {
        job.store.run_log_param(&job.run, &format!("param_{number}"), "value").await.unwrap();
    }
    for step in 0..300 {
        job.log_step(&names, step).await;
        job.second().await;
    }
    job.end().await;
    let call = "a run of 4 tags, 5 params, and a batch of 10 metrics every second for five minutes";
    ledger.all_in(call, [620.0, 320.0, 630.0], 450.0, 1, &job.costs());
}

/// Measures a run with 500 metrics, and adds the results as further rows of the section.
pub(crate) async fn measure_wide(ledger: &mut CostLedger) {
    in_batches(ledger, 500, [2.03, 5.0, 3.0], 22.0, [150.0, 15.0]).await;
}

/// Measures runs with tens of thousands of calls.
pub(crate) async fn measure_many_calls(ledger: &mut CostLedger) {
    ledger.section_all_in("Runs whose metrics are logged once a second, one per call, and long jobs");
    singly(ledger).await;
    let (names, mut job) = (names(100), Job::new().await);
    for step in 0..1_200 {
        job.log_step(&names, step).await;
        job.second().await;
    }
    job.end().await;
    let call = "a job of 10,000 steps of 100 metrics in batches (1,200 steps, times 8.33)";
    ledger.all_in_times(call, [f64::INFINITY; 3], 50_000.0, 10_000.0 / 1_200.0, &job.costs());
}

/// Measures a run with `count` metrics that are logged in batches. There are three budgets: for a
/// call alone (`own`), for a call with the background work that it causes (`all_in`), and for
/// reading the run.
async fn in_batches(ledger: &mut CostLedger, count: usize, own: [f64; 3], all_in: f64, looks: [f64; 2]) {
    let (names, mut job) = (names(count), Job::new().await);
    for step in 0..300 {
        job.log_step(&names, step).await;
        job.second().await;
    }
    job.end().await;
    let call = format!("log_batch of all {count} metrics at one step (mean over 5 minutes)");
    ledger.all_in(&call, own, all_in, 300, &job.costs());
    let [look, at_rest] = looks;
    let call = format!("get the run with {count} metrics logged in batches, at its most expensive");
    ledger.all_in(&call, [2.0, 0.0, look], 0.0, 1, &job.dearest_look());
    let found = job.store.run_get(&job.run).await.unwrap();
    assert_eq!(found.data.metrics.len(), count);
    let call = format!("get the finished, fully indexed run with {count} metrics");
    let documents = if count > 128 { 2.0 } else { 1.0 };
    ledger.all_in(&call, [documents, 0.0, at_rest], 0.0, 1, &job.costs());
}

async fn singly(ledger: &mut CostLedger) {
    for (count, seconds, look) in [(10, 300_u32, 24.0), (100, 120, 40.0), (500, 40, 150.0)] {
        let (names, mut job) = (names(count), Job::new().await);
        for step in 0..u64::from(seconds) {
            for name in &names {
                job.store.run_log_metric(&job.run, &point(name, step)).await.unwrap();
            }
            job.second().await;
        }
        job.end().await;
        let costs = job.costs();
        let call = format!("log one of {count} metrics (mean over {seconds} seconds)");
        let calls = seconds * u32::try_from(count).unwrap();
        ledger.all_in(&call, [2.0, 1.3, 3.0], 1.3, calls, &costs);
        let call = format!("get the run with {count} metrics logged one per call, at its most expensive");
        ledger.all_in(&call, [2.0, 0.0, look], 0.0, 1, &job.dearest_look());
        if count == 100 {
            let call = format!("a job of 10,000 steps of 100 metrics, one per call ({seconds} steps, times 83.33)");
            let times = 10_000.0 / f64::from(seconds);
            ledger.all_in_times(&call, [f64::INFINITY; 3], 1_200_000.0, times, &costs);
        }
    }
}
