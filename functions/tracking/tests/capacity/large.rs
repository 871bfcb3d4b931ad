//! What runs cost that are larger than most.

use ledger::{Ledger, budget};
use tracking::store::{Batch, SampleRange};

use super::filled::come_to_rest;
use super::{metrics, params, steps, two_runs, with_experiment};

const PAGE: i64 = 25_000;

pub(crate) async fn wide(ledger: &mut Ledger) {
    ledger.section("Large runs");
    let (bench, experiment) = with_experiment().await;
    let runs = two_runs(&bench, experiment).await;
    let runs = runs.each_ref();
    ledger
        .row(
            "2,000 metric keys in two batches",
            budget([5.0, 48.0, 2.0], [5.0, 48.0, 1.0]),
            &bench,
            runs,
            async |store, run| {
                for half in metrics(2_000, 1).metrics.chunks(1_000) {
                    store.run_log_batch(run, &Batch { metrics: half.to_vec(), ..Batch::default() }).await.unwrap();
                }
            },
        )
        .await;
    ledger
        .row("get that run", budget([2.0, 0.0, 16.0], [2.0, 0.0, 16.0]), &bench, runs, async |store, run| {
            assert_eq!(store.run_get(run).await.unwrap().data.metrics.len(), 2_000);
        })
        .await;

    let pair = two_runs(&bench, experiment).await;
    let runs = pair.each_ref();
    let call = "1,500 metrics x 150 steps, a call of 1,000 or 500 metrics (mean over 300)";
    ledger
        .mean(call, budget([2.01, 17.51, 2.0], [1.03, 6.16, 0.0]), &bench, runs, 300, async |store, run, call| {
            let all = metrics(1_500, i64::from(call / 2)).metrics;
            let part = if call % 2 == 0 { &all[..1_000] } else { &all[1_000..] };
            store.run_log_batch(run, &Batch { metrics: part.to_vec(), ..Batch::default() }).await.unwrap();
        })
        .await;
    come_to_rest(bench.table(), experiment, &pair).await;
    let call = "history of one of its metrics";
    ledger
        .mean(call, budget([2.5, 0.0, 6.5], [2.5, 0.0, 6.5]), &bench, runs, 2, async |store, run, number| {
            let key = ["metric_0000", "metric_1499"][usize::try_from(number).unwrap()];
            let (points, _) = store.metric_history(run, key, None, "").await.unwrap();
            assert!(points.iter().map(|point| point.step).eq(0..150));
        })
        .await;
    ledger
        .row("get that run", budget([2.0, 0.0, 43.0], [2.0, 0.0, 43.0]), &bench, runs, async |store, run| {
            let whole = store.run_get(run).await.unwrap();
            assert!(whole.data.metrics.len() == 1_500 && whole.data.metrics.iter().all(|metric| metric.step == 149));
        })
        .await;
}

pub(crate) async fn params_and_points(ledger: &mut Ledger) {
    let (bench, experiment) = with_experiment().await;
    let runs = two_runs(&bench, experiment).await;
    let runs = runs.each_ref();
    let value = "v".repeat(5_990);
    let call = "2,000 params of 6,000 characters, a call of 100 (mean over 20)";
    ledger
        .mean(call, budget([7.95, 1204.0, 100.0], [6.95, 1204.0, 99.0]), &bench, runs, 20, async |store, run, call| {
            let start = usize::try_from(call).unwrap() * 100;
            let batch = Batch { params: params(start..start + 100, &value), ..Batch::default() };
            store.run_log_batch(run, &batch).await.unwrap();
        })
        .await;
    ledger
        .row("get that run", budget([13.0, 0.0, 2969.0], [13.0, 0.0, 2969.0]), &bench, runs, async |store, run| {
            let whole = store.run_get(run).await.unwrap();
            assert_eq!(whole.data.params.len(), 2_000);
            assert!(whole.data.params.iter().all(|param| param.value.starts_with(&value)));
        })
        .await;

    let pair = two_runs(&bench, experiment).await;
    let runs = pair.each_ref();
    let call = "1,000,000 points of one metric, a call of 1,000 (mean over 1,000)";
    ledger
        .mean(call, budget([3.0, 12.0, 2.0], [2.0, 12.0, 0.0]), &bench, runs, 1_000, async |store, run, call| {
            let start = i64::from(call) * 1_000;
            store.run_log_batch(run, &steps("loss", start..start + 1_000)).await.unwrap();
        })
        .await;
    come_to_rest(bench.table(), experiment, &pair).await;
    ledger
        .row(
            "their history, whole",
            budget([12.0, 0.0, 2725.0], [12.0, 0.0, 2725.0]),
            &bench,
            runs,
            async |store, run| {
                let (points, _) = store.metric_history(run, "loss", None, "").await.unwrap();
                assert!(points.iter().map(|point| point.step).eq(0..1_000_000));
            },
        )
        .await;
    let tokens = [const { std::cell::RefCell::new(String::new()) }; 2];
    let on = [(runs[0], &tokens[0]), (runs[1], &tokens[1])];
    let call = "their history, a page of 25,000 (mean over 40)";
    ledger
        .mean(call, budget([2.0, 0.0, 249.0], [2.0, 0.0, 249.0]), &bench, on, 40, async |store, (run, token), page| {
            let asked = token.take();
            let page_size = usize::try_from(PAGE).unwrap();
            let (points, next) = store.metric_history(run, "loss", Some(page_size), &asked).await.unwrap();
            let first = i64::from(page) * PAGE;
            assert!(points.iter().map(|point| point.step).eq(first..first + PAGE));
            assert_eq!(next.is_none(), page == 39);
            token.replace(next.unwrap_or_default());
        })
        .await;
    ledger
        .row(
            "a sample of 320 of them",
            budget([12.0, 0.0, 2725.0], [12.0, 0.0, 2725.0]),
            &bench,
            runs,
            async |store, run| {
                let range = SampleRange { start: 0, end: 999_999 };
                let runs = vec![(*run).clone()];
                let sample = store.metric_history_sample(runs, "loss", Some(range), 320).await.unwrap();
                assert_eq!(sample.len(), 320);
            },
        )
        .await;
}
