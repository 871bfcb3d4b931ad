//! What a run costs whose metrics are logged once a second: its calls, and with all that follows from them, which is packing, deletions,
//! ticks and indexing.

use std::sync::atomic::{AtomicI64, Ordering};

use embedded_engine::Engine;
use fts_indexer::{INTERVAL, Indexer};
use ledger::{AllIn, Ledger};
use mlflow_api::ExperimentId;
use mlflow_api::tracking::RunStatus;
use table::Meter;
use tracking::store::{Batch, LoggedMetric, RunChange};

use super::filled::index;
use super::{TIME, experiment, run, table, without_leases};
use crate::calls::Calls;

/// A run that goes on, and what is asked of the table for it.
struct Job {
    experiment: ExperimentId,
    run: String,
    /// Without leases: as if each call came to another sandbox.
    store: Calls,
    indexer: Indexer,
    own: Meter,
    following: Meter,
    seconds: u64,
}

/// The clock of the indexers here.
static CLOCK: AtomicI64 = AtomicI64::new(TIME);

impl Job {
    async fn new() -> Self {
        let table = table(&Engine::memory().unwrap()).await;
        let unmetered = without_leases(table.clone());
        let experiment = experiment(&unmetered, "e").await;
        let run = run(&unmetered, experiment, TIME).await;
        let (own, following) = (Meter::default(), Meter::default());
        let indexer = Indexer::new(table.metered(following.clone())).with_clock(|| CLOCK.load(Ordering::Relaxed));
        // Its creation has been indexed.
        index(&indexer, experiment, std::slice::from_ref(&run)).await;
        following.take();
        let store = without_leases(table.metered(own.clone()));
        Self { experiment, run, store, indexer, own, following, seconds: 0 }
    }

    /// A second passes; with the last of a minute, the indexer looks.
    async fn second(&mut self) {
        CLOCK.fetch_add(1_000, Ordering::Relaxed);
        self.seconds += 1;
        if self.seconds.is_multiple_of(INTERVAL.as_secs()) {
            self.look().await;
        }
    }

    async fn look(&self) {
        self.indexer.tick().await.unwrap();
        index(&self.indexer, self.experiment, std::slice::from_ref(&self.run)).await;
    }

    /// It ends, and comes to rest.
    async fn end(&self) {
        let change = RunChange { status: Some(RunStatus::Finished), end_time: Some(TIME), name: None };
        self.store.run_update(&self.run, &change).await.unwrap();
        // Looked at for its end, and when it may be no longer relied on that its mark stays.
        for _ in 0..2 {
            CLOCK.fetch_add(120_000, Ordering::Relaxed);
            self.look().await;
        }
    }

    async fn log_step(&self, names: &[String], step: u64) {
        let metrics = names.iter().map(|name| point(name, step)).collect();
        self.store.run_log_batch(&self.run, &Batch { metrics, ..Batch::default() }).await.unwrap();
    }

    fn costs(&self) -> AllIn {
        AllIn { own: self.own.take(), following: self.following.take() }
    }
}

fn point(name: &str, step: u64) -> LoggedMetric {
    let step = i64::try_from(step).unwrap();
    LoggedMetric { key: name.to_owned(), value: 0.5, timestamp: TIME + step * 1_000, step, model: None }
}

/// Names of 20 characters.
fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("validation/loss_{number:04}")).collect()
}

pub(crate) async fn measure(ledger: &mut Ledger) {
    ledger.section_all_in("Runs whose metrics are logged once a second");
    let batch = [(10, [2.03, 1.5, 3.0], 3.0), (100, [2.03, 5.0, 3.0], 10.0), (500, [2.03, 22.0, 3.0], 44.0)];
    for (count, own, all_in) in batch {
        let (names, mut job) = (names(count), Job::new().await);
        for step in 0..300 {
            job.log_step(&names, step).await;
            job.second().await;
        }
        job.end().await;
        let call = format!("log_batch of all {count} at one step (mean over 5 minutes)");
        ledger.all_in(&call, own, all_in, 300, &job.costs());
    }
    for (count, seconds) in [(10, 300_u32), (100, 120), (500, 30)] {
        let (names, mut job) = (names(count), Job::new().await);
        for step in 0..u64::from(seconds) {
            for name in &names {
                job.store.run_log_metric(&job.run, &point(name, step)).await.unwrap();
            }
            job.second().await;
        }
        job.end().await;
        let call = format!("log one metric of {count} (mean over {seconds} seconds)");
        let calls = seconds * u32::try_from(count).unwrap();
        ledger.all_in(&call, [2.0, 1.3, 3.0], 2.0, calls, &job.costs());
    }
    for (count, read_units, at_rest) in [(10, 12.0, 3.0), (100, 40.0, 4.0), (500, 150.0, 15.0)] {
        let (names, mut job) = (names(count), Job::new().await);
        for step in 0..119 {
            job.log_step(&names, step).await;
            job.second().await;
        }
        job.costs();
        let found = job.store.run_get(&job.run).await.unwrap();
        assert_eq!(found.data.metrics.len(), count);
        let call = format!("get the run with {count}, a minute after it was packed");
        ledger.all_in(&call, [2.0, 0.0, read_units], 0.0, 1, &job.costs());
        job.end().await;
        job.costs();
        job.store.run_get(&job.run).await.unwrap();
        let call = format!("get it when it has ended and come to rest ({count})");
        let documents = if count > 128 { 2.0 } else { 1.0 };
        ledger.all_in(&call, [documents, 0.0, at_rest], 0.0, 1, &job.costs());
    }
    let (names, mut job) = (names(100), Job::new().await);
    for step in 0..1_200 {
        job.log_step(&names, step).await;
        job.second().await;
    }
    job.end().await;
    let call = "a job of 10,000 steps of 100 metrics in batches (1,200 steps, times 8.33)";
    ledger.all_in_times(call, [f64::INFINITY; 3], 110_000.0, 10_000.0 / 1_200.0, &job.costs());
}
