//! The cost of calls about runs, in an experiment in which none of the runs is indexed.

use mlflow_api::ExperimentId;
use mlflow_api::tracking::RunStatus;
use test_site::ledger::{CostLedger, MeteredProcesses, budget};
use tracking::store::{LogBatchData, RunChange};

use super::{TIME, metrics, new_run, params, run, search, two_runs, with_experiment, without_leases};
use crate::calls::Calls;

pub(crate) async fn measure(ledger: &mut CostLedger) {
    ledger.section("Runs, in an experiment with 1,000 runs");
    let (bench, experiment) = with_experiment().await;
    for number in 0..1_000 {
        let run = run(&bench.store, experiment, TIME + number).await;
        let batch = LogBatchData { params: params(0..5, "value "), ..metrics(5, number) };
        bench.store.run_log_batch(&run, &batch).await.unwrap();
    }
    ledger
        .row(
            "create run, 4 tags",
            budget([2.0, 4.0, 1.0], [1.0, 4.0, 0.0]),
            &bench,
            [TIME + 2_000, TIME + 2_001],
            async |store, time| {
                store.run_create(experiment, &new_run(*time)).await.unwrap();
            },
        )
        .await;
    let runs = two_runs(&bench, experiment).await;
    let runs = runs.each_ref();
    ledger
        .row("set a tag", budget([2.0, 1.0, 1.0], [1.0, 1.0, 0.0]), &bench, runs, async |store, run| {
            store.run_set_tag(run, "note", "a remark").await.unwrap();
        })
        .await;
    ledger
        .row("delete a tag", budget([2.0, 1.0, 1.0], [1.0, 1.0, 0.0]), &bench, runs, async |store, run| {
            store.run_delete_tag(run, "note").await.unwrap();
        })
        .await;
    ledger
        .row("log one param", budget([2.0, 1.0, 1.0], [1.0, 1.0, 0.0]), &bench, runs, async |store, run| {
            store.run_log_param(run, "depth", "12").await.unwrap();
        })
        .await;
    ledger
        .row("finish a run", budget([2.0, 1.0, 1.0], [1.0, 1.0, 0.0]), &bench, runs, async |store, run| {
            let finished = RunChange { status: Some(RunStatus::Finished), end_time: Some(TIME + 9_000), name: None };
            store.run_update(run, &finished).await.unwrap();
        })
        .await;

    let runs = two_runs(&bench, experiment).await;
    let runs = runs.each_ref();
    ledger
        .row("log_batch, 100 params", budget([2.0, 3.0, 1.0], [1.0, 3.0, 0.0]), &bench, runs, async |store, run| {
            let batch = LogBatchData { params: params(0..100, "value "), ..LogBatchData::default() };
            store.run_log_batch(run, &batch).await.unwrap();
        })
        .await;
    bench.store.run_log_batch(runs[0], &metrics(100, 0)).await.unwrap();
    ledger
        .row(
            "get a run with 100 metrics and 100 params",
            budget([2.0, 0.0, 4.0], [2.0, 0.0, 4.0]),
            &bench,
            [runs[0]; 2],
            async |store, run| {
                let whole = store.run_get(run).await.unwrap();
                assert_eq!((whole.data.metrics.len(), whole.data.params.len()), (100, 100));
            },
        )
        .await;

    let runs = two_runs(&bench, experiment).await;
    let runs = runs.each_ref();
    for step in 0..5 {
        for run in runs {
            bench.store.run_log_batch(run, &metrics(5, step)).await.unwrap();
        }
    }
    ledger
        .row(
            "delete a run with 25 points",
            budget([2.0, 6.0, 2.0], [2.0, 6.0, 2.0]),
            &MeteredProcesses::new(bench.table().clone(), without_leases),
            runs,
            async |store, run| {
                store.run_delete(run).await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "restore a run with 25 points",
            budget([2.0, 8.0, 2.0], [2.0, 8.0, 2.0]),
            &bench,
            runs,
            async |store, run| {
                store.run_restore(run).await.unwrap();
            },
        )
        .await;

    searches(ledger, &bench, experiment).await;
}

async fn searches(ledger: &mut CostLedger, bench: &MeteredProcesses<Calls>, experiment: ExperimentId) {
    for (call, filter, order_by, budget) in [
        (
            "search: latest 100 of 1,000 runs, none of them indexed",
            "",
            &[][..],
            budget([5.0, 0.0, 113.0], [4.0, 0.0, 112.0]),
        ),
        (
            "search: metric filter and order, 1,000 runs, none of them indexed",
            "metrics.metric_0001 > 0.24",
            &["metrics.metric_0001 DESC"],
            budget([6.0, 0.0, 245.0], [5.0, 0.0, 244.0]),
        ),
    ] {
        ledger
            .row(call, budget, bench, [(), ()], async |store, ()| {
                let page = store.run_search(&search(experiment, filter, order_by)).await.unwrap();
                assert_eq!(page.runs.len(), 100);
            })
            .await;
    }
}
