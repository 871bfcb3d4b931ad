//! The cost of removing deleted entities for good.

use artifact_store::Artifacts;
use embedded_engine::Engine;
use ledger::{Bench, Ledger, budget};
use mlflow_api::{ExperimentId, Workspace};
use retention::{Entity, Report, Retention};

use super::filled::{Filled, index, run};
use super::{experiment, without_leases};
use crate::calls::Calls;

/// Tells nobody.
struct Silent;

impl Report for Silent {
    fn removed(&self, _: Entity) {}

    fn removed_traces(&self, _: ExperimentId, _: u64) {}

    fn removed_histories(&self, _: ExperimentId, _: u64) {}

    fn kept_files(&self, experiment: ExperimentId, why: &str) {
        assert!(why.is_empty(), "files of {experiment} stay: {why}");
    }

    fn kept(&self, entity: Entity, why: &str) {
        assert!(why.is_empty(), "{entity} stays: {why}");
    }
}

async fn remove(retention: &Retention) {
    let found = retention.deleted(&Workspace::default(), None).await.unwrap();
    retention.remove(&Workspace::default(), &found, &Silent).await.unwrap();
}

/// Indexed runs with 10 metrics, 5 params and 3 tags.
async fn runs(filled: &Filled, experiment: ExperimentId, numbers: std::ops::Range<i64>) -> Vec<String> {
    let make = move |store: Calls, number| async move { run(&store, experiment, number).await };
    let runs = filled.runs(numbers, make).await;
    index(&filled.indexing.store, experiment, &runs).await;
    runs
}

pub(crate) async fn measure(ledger: &mut Ledger) {
    ledger.section("Removing for good, artifacts aside");
    let filled = Filled::on(&Engine::memory().unwrap()).await;
    let store = &filled.requests.store;
    let deleting = without_leases(filled.requests.table().clone());
    let removing = Bench::new(filled.requests.table().clone(), |table| {
        Retention::new(table, Artifacts::default()).leaving_artifacts(true)
    });
    let experiment = experiment(store, "experiment").await;
    // One is deleted for each call.
    let deleted = runs(&filled, experiment, 0..2).await;
    let act = async |retention: &Retention, run: &&String| {
        deleting.run_delete(run).await.unwrap();
        remove(retention).await;
    };
    let call = "find and remove a run with 10 metrics, 5 params and 3 tags";
    ledger.row(call, budget([25.0, 50.0, 22.0], [25.0, 50.0, 22.0]), &removing, [&deleted[0], &deleted[1]], act).await;
    let many = [runs(&filled, experiment, 100..200).await, runs(&filled, experiment, 200..300).await];
    let act = async |retention: &Retention, runs: &&Vec<String>| {
        for run in *runs {
            deleting.run_delete(run).await.unwrap();
        }
        remove(retention).await;
    };
    let call = "find and remove 100 such runs";
    ledger
        .row(call, budget([860.0, 4_850.0, 1_020.0], [860.0, 4_850.0, 1_020.0]), &removing, many.each_ref(), act)
        .await;
    let act = async |retention: &Retention, (): &()| remove(retention).await;
    let call = "find that nothing is deleted in 2 experiments";
    ledger.row(call, budget([8.0, 0.0, 8.0], [8.0, 0.0, 8.0]), &removing, [(), ()], act).await;
}
