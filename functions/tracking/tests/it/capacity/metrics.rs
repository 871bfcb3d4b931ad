//! The cost of logging metrics.

use test_site::ledger::{CostLedger, budget};

use super::{metric, metrics, steps, two_runs, with_experiment};

pub(crate) async fn measure(ledger: &mut CostLedger) {
    ledger.section("Metrics");
    let (bench, experiment) = with_experiment().await;
    let runs = two_runs(&bench, experiment).await;
    let call = "log one metric (run with 10 metrics, mean over 1,000 calls)";
    ledger
        .mean(call, budget([2.0, 1.04, 2.0], [1.0, 1.04, 0.0]), &bench, runs, 1_000, async |store, run, step| {
            let metric = metric(&format!("metric_{}", step % 10), step.into());
            store.run_log_metric(run, &metric).await.unwrap();
        })
        .await;
    let runs = two_runs(&bench, experiment).await;
    let call = "log_batch, 100 metrics at one step (mean over 100 calls)";
    ledger
        .mean(call, budget([2.02, 3.02, 2.0], [1.04, 1.06, 0.01]), &bench, runs, 100, async |store, run, step| {
            store.run_log_batch(run, &metrics(100, step.into())).await.unwrap();
        })
        .await;
    let runs = two_runs(&bench, experiment).await;
    let runs = runs.each_ref();
    ledger
        .row(
            "log_batch, 1,000 steps of one metric",
            budget([3.0, 9.0, 2.0], [3.0, 9.0, 1.0]),
            &bench,
            runs,
            async |store, run| {
                store.run_log_batch(run, &steps("loss", 0..1_000)).await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "history of one metric, 1,000 points",
            budget([2.0, 0.0, 5.0], [2.0, 0.0, 5.0]),
            &bench,
            runs,
            async |store, run| {
                let (points, _) = store.metric_history(run, "loss", None, "").await.unwrap();
                assert_eq!(points.len(), 1_000);
            },
        )
        .await;
}
