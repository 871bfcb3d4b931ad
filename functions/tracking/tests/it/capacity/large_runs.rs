//! The cost of runs that are larger than most.

use std::time::{Duration, Instant};

use embedded_engine::Engine;
use entities::RunLocation;
use entities::attributes::PACKED;
use fts_indexer::Indexer;
use key_schema::{ranges, rows};
use mlflow_api::{ExperimentId, RunId};
use runtime::clock::SimulatedClock;
use table::{Query, Update, text};
use test_site::ledger::{CostLedger, MeteredProcesses, budget};
use tracking::store::{LogBatchData, SampleRange};

use super::filled_table::{come_to_rest, index};
use super::{TIME, experiment, metrics, params, process, run, steps, table, two_runs, with_experiment};
use crate::calls::Calls;

const PAGE: i64 = 25_000;

pub(crate) async fn wide(ledger: &mut CostLedger) {
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
                    store
                        .run_log_batch(run, &LogBatchData { metrics: half.to_vec(), ..LogBatchData::default() })
                        .await
                        .unwrap();
                }
            },
        )
        .await;
    ledger
        .row("get that run", budget([2.0, 0.0, 16.0], [2.0, 0.0, 16.0]), &bench, runs, async |store, run| {
            assert_eq!(store.run_get(run).await.unwrap().data.metrics.len(), 2_000);
        })
        .await;
}

/// Measures a run with 1,500 metrics and many steps, and adds the results as further rows of the
/// section.
pub(crate) async fn wide_steps(ledger: &mut CostLedger) {
    let (bench, experiment) = with_experiment().await;
    let pair = two_runs(&bench, experiment).await;
    let runs = pair.each_ref();
    let call = "1,500 metrics x 150 steps, 1,000 or 500 metrics per call (mean over 300)";
    ledger
        .mean(call, budget([2.01, 17.51, 2.0], [1.03, 6.16, 0.0]), &bench, runs, 300, async |store, run, call| {
            let all = metrics(1_500, i64::from(call / 2)).metrics;
            let part = if call % 2 == 0 { &all[..1_000] } else { &all[1_000..] };
            store
                .run_log_batch(run, &LogBatchData { metrics: part.to_vec(), ..LogBatchData::default() })
                .await
                .unwrap();
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

pub(crate) async fn params_and_points(ledger: &mut CostLedger) {
    ledger.section("Large runs: long params, and a million points of one metric");
    let (bench, experiment) = with_experiment().await;
    let runs = two_runs(&bench, experiment).await;
    let runs = runs.each_ref();
    let value = "v".repeat(5_990);
    let call = "2,000 params of 6,000 characters, 100 per call (mean over 20)";
    ledger
        .mean(call, budget([7.95, 1204.0, 100.0], [6.95, 1204.0, 99.0]), &bench, runs, 20, async |store, run, call| {
            let start = usize::try_from(call).unwrap() * 100;
            let batch = LogBatchData { params: params(start..start + 100, &value), ..LogBatchData::default() };
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
    let call = "1,000,000 points of one metric, 1,000 per call (mean over 1,000)";
    // Cached data about a run expires, and is read again. The clock is simulated, so that a slow
    // machine meters the same costs as a fast one.
    let clock = SimulatedClock::begin();
    let allowed = budget([3.0, 9.0, 2.0], [2.0, 9.0, 0.0]);
    let calls = ledger.mean(call, allowed, &bench, runs, 1_000, async |store, run, call| {
        let start = i64::from(call) * 1_000;
        store.run_log_batch(run, &steps("loss", start..start + 1_000)).await.unwrap();
    });
    tokio::select! { () = calls => {}, () = clock.drive() => {} }
    drop(clock);
    come_to_rest(bench.table(), experiment, &pair).await;
    ledger
        .row(
            "the whole history of 1,000,000 points",
            budget([10.0, 0.0, 1898.0], [10.0, 0.0, 1898.0]),
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
    let call = "a page of 25,000 points of that history (mean over 40)";
    ledger
        .mean(call, budget([3.0, 0.0, 66.0], [3.0, 0.0, 66.0]), &bench, on, 40, async |store, (run, token), page| {
            let asked = token.take();
            let page_size = usize::try_from(PAGE).unwrap();
            let (points, next) = store.metric_history(run, "loss", Some(page_size), &asked).await.unwrap();
            let first = i64::from(page) * PAGE;
            assert!(points.iter().map(|point| point.step).eq(first..first + PAGE));
            assert_eq!(next.is_none(), page == 39);
            token.replace(next.unwrap_or_default());
        })
        .await;
    charts(ledger, &bench, experiment, &pair).await;
}

/// Measures charts of runs with a million points of one metric.
async fn charts(
    ledger: &mut CostLedger,
    bench: &MeteredProcesses<Calls>,
    experiment: ExperimentId,
    pair: &[String; 2],
) {
    let runs = pair.each_ref();
    for (call, range, budget) in [
        ("a chart of 1,000,000 points, reduced to 320", None, budget([3.0, 0.0, 10.0], [3.0, 0.0, 10.0])),
        ("the chart of a range of 200,000 steps", Some((300_000, 499_999)), budget([4.0, 0.0, 10.0], [4.0, 0.0, 10.0])),
        ("the chart of a range of 5,000 steps", Some((312_500, 317_499)), budget([8.0, 0.0, 30.0], [8.0, 0.0, 30.0])),
    ] {
        ledger
            .row(call, budget, bench, runs, async |store, run| {
                let range = range.map(|(start, end)| SampleRange { start, end });
                let runs = vec![(*run).clone()];
                let sample = store.metric_history_sample(runs, "loss", range, 320).await.unwrap();
                assert_eq!(sample.len(), 320);
            })
            .await;
    }
    let indexing = MeteredProcesses::new(bench.table().clone(), |table| table);
    let call = "a pass that packs 1,000 more points and writes a chart row (mean over 16)";
    ledger
        .mean(
            call,
            budget([15.38, 11.32, 9.88], [15.38, 11.32, 9.88]),
            &indexing,
            runs,
            16,
            async |table, run, pass| {
                let start = 1_000_000 + i64::from(pass) * 1_000;
                bench.store.run_log_batch(run, &steps("loss", start..start + 1_000)).await.unwrap();
                // Each pass runs in a new process, because a process does not index runs again that
                // it has postponed.
                let indexer = Indexer::new(table.clone()).with_interval(Duration::ZERO);
                index(&indexer, experiment, std::slice::from_ref(*run)).await;
            },
        )
        .await;
}

/// Charts 100 runs of a million points each. This must take no more than a small multiple of the
/// time that it takes to read all points of one run. The points of one run are logged and packed,
/// and the other runs get copies of everything that a chart reads.
pub(crate) async fn a_hundred_charts() {
    // The table is stored on disk, because an engine in memory is limited to 1 GB.
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path()).unwrap();
    let bench = MeteredProcesses::new(table(&engine).await, process);
    let experiment = experiment(&bench.store, "experiment").await;
    let table = bench.table();
    let first = run(&bench.store, experiment, TIME).await;
    for start in (0..1_000_000).step_by(1_000) {
        bench.store.run_log_batch(&first, &steps("loss", start..start + 1_000)).await.unwrap();
    }
    come_to_rest(table, experiment, std::slice::from_ref(&first)).await;
    bench.store.run_log_batch(&first, &steps("loss", 1_000_000..1_000_500)).await.unwrap();
    come_to_rest(table, experiment, std::slice::from_ref(&first)).await;
    let id = RunId::parse(&first).unwrap();
    let mut rows = Vec::new();
    for range in [
        ranges::journal_and_metrics(&id),
        rows::MetricChart::all(&id).range(),
        ranges::segments_between(&id, &"loss".into(), Some((TIME + 999_000_000, 999_000)), None),
    ] {
        rows.extend(table.query(Query::of(range)).await.unwrap());
    }
    assert!(rows.len() > 1_330, "{} rows", rows.len());
    let mut runs = vec![first];
    for number in 1..100 {
        let copy = run(&bench.store, experiment, TIME + number).await;
        let at = RunLocation { experiment, run: RunId::parse(&copy).unwrap() };
        table.update(&Update::new(at.key()).set(PACKED, table::number(1))).await.unwrap();
        let pk = at.metrics_key().pk;
        table.write_many(rows.iter().map(|row| row.clone().with("PK", text(pk.clone()))).collect(), &[]).await.unwrap();
        runs.push(copy);
    }
    // The fastest of several attempts is used, because other programs may use the processor at the
    // same time.
    let (mut whole, mut drawn) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        let begin = Instant::now();
        let (points, _) = bench.store.metric_history(&runs[0], "loss", None, "").await.unwrap();
        whole = whole.min(begin.elapsed());
        assert_eq!(points.len(), 1_000_500);
        let begin = Instant::now();
        let points = bench.store.metric_history_sample(runs.clone(), "loss", None, 320).await.unwrap();
        drawn = drawn.min(begin.elapsed());
        assert_eq!(points.len(), 32_000);
        let steps = points.chunks(320).map(|points| (points[0].step, points[319].step));
        assert!(steps.eq(std::iter::repeat_n((0, 1_000_499), 100)));
    }
    assert!(drawn < whole * 3, "{drawn:?} for the charts, {whole:?} for all points of a run");
}
