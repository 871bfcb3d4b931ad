//! The cost of permanently removing deleted entities.

use artifact_store::ArtifactStore;
use embedded_engine::Engine;
use mlflow_api::{ExperimentId, Workspace};
use retention::{DeletionAge, HistoryScans, RemovalReport, RemovedEntity, Retention, RetentionPolicy};
use test_site::ledger::{CostLedger, MeteredProcesses, budget};

use super::filled_table::{FilledTable, come_to_rest, index, run};
use super::{experiment, steps, without_leases};
use crate::calls::Calls;

/// An observer of removals that fails if an entity is kept, and ignores all other events.
pub(super) struct Silent;

impl RemovalReport for Silent {
    fn removed(&self, _: RemovedEntity) {}

    fn removed_traces(&self, _: ExperimentId, _: u64) {}

    fn removed_histories(&self, _: ExperimentId, _: u64) {}

    fn archived_traces(&self, _: ExperimentId, _: u64) {}

    fn archived_histories(&self, _: ExperimentId, _: u64) {}

    fn kept_files(&self, experiment: ExperimentId, why: &str) {
        assert!(why.is_empty(), "files of {experiment} are kept: {why}");
    }

    fn kept(&self, entity: RemovedEntity, why: &str) {
        assert!(why.is_empty(), "{entity} is kept: {why}");
    }
}

async fn remove(retention: &Retention) {
    let found = retention.deleted(&Workspace::default(), None).await.unwrap();
    retention.remove(&Workspace::default(), &found, &Silent).await.unwrap();
}

/// Creates indexed runs with 10 metrics, 5 params and 3 tags.
async fn runs(filled: &FilledTable, experiment: ExperimentId, numbers: std::ops::Range<i64>) -> Vec<String> {
    let make = move |store: Calls, number| async move { run(&store, experiment, number).await };
    let runs = filled.runs(numbers, make).await;
    index(&filled.indexing.store, experiment, &runs).await;
    runs
}

pub(crate) async fn measure(ledger: &mut CostLedger) {
    ledger.section("Permanent deletion, without artifacts");
    let filled = FilledTable::on(&Engine::memory().unwrap()).await;
    let store = &filled.requests.store;
    let deleting = without_leases(filled.requests.table().clone());
    let removing = MeteredProcesses::new(filled.requests.table().clone(), |table| {
        Retention::new(table, ArtifactStore::default()).leaving_artifacts(true)
    });
    let experiment = experiment(store, "experiment").await;
    // Each measured call deletes one of these runs before it does anything else.
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
    histories(ledger).await;
}

async fn remove_histories(retention: &Retention) {
    retention.remove_old_histories(&Workspace::default(), entities::now_ms(), &Silent).await.unwrap();
}

/// Measures the removal of histories, on a table with one experiment and two runs that ended years
/// ago.
async fn histories(ledger: &mut CostLedger) {
    let filled = FilledTable::on(&Engine::memory().unwrap()).await;
    let (store, table) = (&filled.requests.store, filled.requests.table());
    let experiment = experiment(store, "experiment").await;
    let ended = runs(&filled, experiment, 0..2).await;
    let looking = |looks: HistoryScans| {
        let retention = move |table| Retention::new(table, ArtifactStore::default()).looking(looks);
        MeteredProcesses::new(table.clone(), retention)
    };
    let act = async |retention: &Retention, (): &()| remove_histories(retention).await;
    let call = "find that histories never expire";
    ledger.row(call, budget([1.0, 0.0, 1.0], [1.0, 0.0, 1.0]), &looking(HistoryScans::InTurn), [(), ()], act).await;
    RetentionPolicy::Histories.write(table, Some(&DeletionAge::parse("365d").unwrap())).await.unwrap();
    let removing = looking(HistoryScans::AtAll);
    let act = async |retention: &Retention, run: &&String| {
        for first in (0..10_000).step_by(1_000) {
            store.run_log_batch(run, &steps("loss", first..first + 1_000)).await.unwrap();
        }
        come_to_rest(table, experiment, std::slice::from_ref(*run)).await;
        remove_histories(retention).await;
        assert!(store.metric_history(run, "loss", None, "").await.unwrap().0.len() < 10);
    };
    let call = "remove the history of one of 2 runs: 10,000 points";
    ledger.row(call, budget([7.0, 80.0, 24.0], [7.0, 80.0, 24.0]), &removing, [&ended[0], &ended[1]], act).await;
    let noting = looking(HistoryScans::AtNewOnes);
    remove_histories(&noting.store).await;
    let act = async |retention: &Retention, (): &()| remove_histories(retention).await;
    let call = "find that no other run has ended, in one experiment";
    ledger.row(call, budget([5.0, 0.0, 5.0], [5.0, 0.0, 5.0]), &noting, [(), ()], act).await;
}
