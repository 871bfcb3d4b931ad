//! The cost of the indexer's work for a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use embedded_engine::Engine;
use fts_indexer::{DEFAULT_INTERVAL, Indexer};
use mlflow_api::ExperimentId;
use mlflow_api::tracking::RunStatus;
use runtime::clock::SimulatedClock;
use table::Table;
use test_site::ledger::{Budget, CostLedger, MeteredProcesses, budget};
use tracking::store::{LogBatchData, NewRun, RunChange};

use super::filled_table::index;
use super::{TIME, experiment, metrics, process, run, table};
use crate::calls::Calls;

/// The clock that the indexers of a section share.
#[derive(Clone)]
struct Clock(Arc<AtomicI64>);

impl Clock {
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(TIME)))
    }

    fn passes(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// Returns processes that serve requests, and processes that index by this clock. All of them
    /// access one table.
    async fn benches(&self) -> (MeteredProcesses<Calls>, MeteredProcesses<Indexer>) {
        let (table, clock) = (table(&Engine::memory().unwrap()).await, self.clone());
        let indexer = move |table: Table| {
            let clock = clock.clone();
            Indexer::new(table).with_clock(move || clock.0.load(Ordering::Relaxed))
        };
        (MeteredProcesses::new(table.clone(), process), MeteredProcesses::new(table, indexer))
    }
}

pub(crate) async fn measure(ledger: &mut CostLedger) {
    ledger.section("The indexer's work for a run");
    let clock = Clock::new();
    let (requests, indexing) = clock.benches().await;
    let experiment = experiment(&requests.store, "one").await;
    let tags = [("mlflow.user", "somebody"), ("mlflow.source.name", "train.py"), ("mlflow.source.type", "LOCAL")];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let new = NewRun { name: "serious-newt-353".to_owned(), start_time: TIME, tags, ..NewRun::default() };
    let runs = requests.two(async |store| store.run_create(experiment, &new).await.unwrap().info.run_id).await;
    let store = &requests.store;
    // Indexes one of the runs.
    let act = async |indexer: &Indexer, run: &&String| index(indexer, experiment, std::slice::from_ref(*run)).await;
    let runs = runs.each_ref();
    ledger.row("a new run, 4 tags", budget([8.0, 14.0, 4.0], [6.0, 12.0, 3.0]), &indexing, runs, act).await;
    for run in runs {
        store.run_log_batch(run, &metrics(10, 0)).await.unwrap();
    }
    let call = "10 metrics within the same minute, which are postponed";
    ledger.row(call, budget([4.0, 1.0, 3.0], [4.0, 1.0, 3.0]), &indexing, runs, act).await;
    let call = "two stream batches about the run, within that minute";
    let again = async |indexer: &Indexer, run: &&String| {
        act(indexer, run).await;
        act(indexer, run).await;
    };
    ledger.row(call, budget([4.0, 1.0, 3.0], [4.0, 1.0, 3.0]), &indexing, runs, again).await;
    clock.passes(DEFAULT_INTERVAL);
    ledger.row("its first 10 metrics", budget([8.0, 23.0, 4.0], [6.0, 13.0, 3.0]), &indexing, runs, act).await;
    for run in runs {
        let params = (0..5).map(|number| (format!("param_{number}"), "value".to_owned())).collect();
        store.run_log_batch(run, &LogBatchData { params, ..LogBatchData::default() }).await.unwrap();
    }
    clock.passes(DEFAULT_INTERVAL);
    ledger.row("5 params", budget([8.0, 13.0, 4.0], [6.0, 8.0, 3.0]), &indexing, runs, act).await;
    for step in 1..100 {
        for run in runs {
            store.run_log_batch(run, &metrics(10, step)).await.unwrap();
        }
    }
    clock.passes(DEFAULT_INTERVAL);
    let call = "100 more values of each, in one stream batch, packed";
    ledger.row(call, budget([19.0, 25.0, 6.0], [19.0, 25.0, 6.0]), &indexing, runs, act).await;
    ledger.row("the same batch again", budget([5.0, 1.0, 4.0], [5.0, 1.0, 4.0]), &indexing, runs, act).await;
    for run in runs {
        let change = RunChange { status: Some(RunStatus::Finished), end_time: Some(TIME + 9_000), name: None };
        store.run_update(run, &change).await.unwrap();
    }
    ledger.row("the end of the run", budget([6.0, 2.0, 4.0], [6.0, 2.0, 4.0]), &indexing, runs, act).await;
    // No call relies on the mark of the run any more.
    clock.passes(DEFAULT_INTERVAL * 2);
    let call = "the removal of its mark, with its entries";
    ledger.row(call, budget([9.0, 27.0, 5.0], [8.0, 27.0, 4.0]), &indexing, runs, act).await;
}

/// Measures the cost of an hour of logging to a run.
pub(crate) async fn measure_hours(ledger: &mut CostLedger) {
    ledger.section("The indexer, for an hour of a run");
    let time = Clock::new();
    let (requests, indexing) = time.benches().await;
    let experiment = experiment(&requests.store, "one").await;
    let (ten, cold_ten) = ([1150.0, 1000.0, 700.0], [1150.0, 1000.0, 700.0]);
    let (hundred, cold_hundred) = ([2460.0, 11300.0, 3000.0], [2460.0, 11300.0, 3000.0]);
    // Cached data about the table expires, and is read again. The clock is simulated, so that a
    // slow machine meters the same costs as a fast one.
    let clock = SimulatedClock::begin();
    let hours = async {
        hour(ledger, &requests, &indexing, &time, experiment, 10, budget(cold_ten, ten)).await;
        hour(ledger, &requests, &indexing, &time, experiment, 100, budget(cold_hundred, hundred)).await;
    };
    tokio::select! { () = hours => {}, () = clock.drive() => {} }
}

/// Measures an hour of a run to which `count` metrics are logged once a second. A batch of the
/// stream comes every five seconds, and a tick every minute.
async fn hour(
    ledger: &mut CostLedger,
    requests: &MeteredProcesses<Calls>,
    indexing: &MeteredProcesses<Indexer>,
    time: &Clock,
    experiment: ExperimentId,
    count: usize,
    budget: Budget,
) {
    const DELAY: Duration = Duration::from_secs(5);
    let store = &requests.store;
    let runs = requests.two(async |store| run(store, experiment, TIME).await).await;
    let call = format!("an hour of a run that logs {count} metrics a second");
    let act = async |indexer: &Indexer, run: &&String| {
        // Runs that are still postponed would be indexed in one batch with this run or separately,
        // depending on their random ids. Therefore they are processed before the measured hour
        // begins.
        time.passes(DEFAULT_INTERVAL * 2);
        indexing.store.tick().await.unwrap();
        for batch in 0..720_i64 {
            for step in batch * 5..(batch + 1) * 5 {
                store.run_log_batch(run, &metrics(count, step)).await.unwrap();
            }
            if batch % 12 == 0 {
                indexer.tick().await.unwrap();
            }
            index(indexer, experiment, std::slice::from_ref(*run)).await;
            time.passes(DELAY);
        }
    };
    ledger.row(&call, budget, indexing, runs.each_ref(), act).await;
}
