//! The cost of archiving long histories, and of reading them.

use artifact_store::{Archive, ArtifactStore};
use embedded_engine::Engine;
use mlflow_api::Workspace;
use mlflow_api::tracking::RunStatus;
use retention::{HistoryScans, Retention};
use test_site::ledger::{CostLedger, MeteredProcesses, budget};
use tracking::store::RunChange;

use super::filled_table::{FilledTable, come_to_rest};
use super::removal::Silent;
use super::{experiment, process, run, steps};

/// Number of points of the measured histories.
const POINTS: i64 = 100_000;
/// Number of points per page.
const PAGE: i64 = 25_000;

/// Measures archiving of the histories of two runs that ended years ago, and reading them.
pub(crate) async fn measure(ledger: &mut CostLedger) {
    ledger.section("Archived histories, without requests to the bucket");
    let directory = tempfile::tempdir().unwrap();
    let artifacts = ArtifactStore::in_directory(directory.path());
    let filled = FilledTable::on(&Engine::memory().unwrap()).await;
    let (store, table) = (&filled.requests.store, filled.requests.table());
    let experiment = experiment(store, "experiment").await;
    let runs = [run(store, experiment, 1).await, run(store, experiment, 2).await];
    for run in &runs {
        for first in (0..POINTS).step_by(1_000) {
            store.run_log_batch(run, &steps("loss", first..first + 1_000)).await.unwrap();
        }
    }
    come_to_rest(table, experiment, &runs).await;
    let of_archive = artifacts.clone();
    let archiving = MeteredProcesses::new(table.clone(), move |table| {
        Retention::new(table, of_archive.clone()).looking(HistoryScans::AtNewOnes).archiving_histories(true)
    });
    let act = async |retention: &Retention, run: &&String| {
        // Each measured call archives the history of one run, which ends before.
        let ended = RunChange { status: Some(RunStatus::Finished), end_time: Some(10), ..RunChange::default() };
        store.run_update(run, &ended).await.unwrap();
        come_to_rest(table, experiment, std::slice::from_ref(*run)).await;
        archive(retention).await;
    };
    let call = "archive the history of one of 2 runs: 100,000 points";
    ledger.row(call, budget([19.0, 820.0, 280.0], [22.0, 820.0, 280.0]), &archiving, runs.each_ref(), act).await;
    let act = async |retention: &Retention, (): &()| archive(retention).await;
    let call = "find that no other history has to be archived, among 2 runs that ended at the same time";
    ledger.row(call, budget([13.0, 0.0, 13.0], [13.0, 0.0, 13.0]), &archiving, [(), ()], act).await;
    let archive = Archive::new(artifacts);
    let reading = MeteredProcesses::new(table.clone(), move |table| {
        let calls = process(table);
        crate::calls::Calls(calls.0.with_archive(archive.clone()))
    });
    let tokens = [const { std::cell::RefCell::new(String::new()) }; 2];
    let on = [(&runs[0], &tokens[0]), (&runs[1], &tokens[1])];
    let call = "a page of 25,000 points of that history (mean over 4)";
    ledger
        .mean(call, budget([3.0, 0.0, 4.0], [3.0, 0.0, 4.0]), &reading, on, 4, async |store, (run, token), page| {
            let asked = token.take();
            let size = usize::try_from(PAGE).unwrap();
            let (points, next) = store.metric_history(run, "loss", Some(size), &asked).await.unwrap();
            let first = i64::from(page) * PAGE;
            assert!(points.iter().map(|point| point.step).eq(first..first + PAGE));
            token.replace(next.unwrap_or_default());
        })
        .await;
}

async fn archive(retention: &Retention) {
    retention.archive_histories(&Workspace::default(), entities::now_ms(), &Silent).await.unwrap();
}
