//! Charts of long histories are correct, no matter where the processes that log, pack or read the
//! points are interrupted.

use std::ops::Range;

use embedded_engine::faults::InjectedFault;
use entities::chart::sample;
use entities::points::Point as Packed;
use entities::{ChartProgress, RunLocation, read_journal_and_documents};
use fts_indexer::{Indexer, StreamBatch as Records};
use mlflow_api::RunId;
use serde_json::json;
use table::RetryPolicy;
use test_site::all_troubles;
use tracking::store::{LogBatchData, LoggedMetric};

use crate::indexed_site::{changes, index};
use crate::server::{Point, Server, Site, point, points};

const TIME: i64 = 1_700_000_000_000;
/// Maximum number of points in a sample.
const MAX_POINTS: i64 = 2_500;

async fn run(site: &Site) -> String {
    site.server.run(&site.server.experiment("e").await).await
}

fn at(step: i64) -> Point {
    (TIME + step * 1_000, step, 0.5)
}

async fn log_at(server: &Server, run: &str, points: impl Iterator<Item = Point>) {
    let metric = |(timestamp, step, value)| LoggedMetric { key: "m".to_owned(), value, timestamp, step, model: None };
    let metrics = points.map(metric).collect();
    server.store.run_log_batch(run, &LogBatchData { metrics, ..LogBatchData::default() }).await.unwrap();
}

/// Logs one point for each of these steps, in calls of `in_call` points each.
pub(crate) async fn log(server: &Server, run: &str, steps: Range<i64>, in_call: usize) {
    let steps: Vec<_> = steps.collect();
    for call in steps.chunks(in_call) {
        log_at(server, run, call.iter().map(|step| at(*step))).await;
    }
}

async fn chart(server: &Server, run: &str, range: Option<Range<i64>>, most: i64) -> Vec<Point> {
    let most = most.to_string();
    let range = range.map(|range| (range.start.to_string(), (range.end - 1).to_string()));
    let mut arguments = vec![("run_ids", run), ("metric_key", "m"), ("max_results", most.as_str())];
    if let Some((start, end)) = &range {
        arguments.extend([("start_step", start.as_str()), ("end_step", end)]);
    }
    points(&server.get("metrics/get-history-bulk-interval", &arguments).await.ok())
}

fn steps(points: &[Point]) -> Vec<i64> {
    points.iter().map(|point| point.1).collect()
}

fn mlflows(all: Range<i64>, most: usize) -> Vec<i64> {
    let all: Vec<_> = all.map(|step| (Packed::new(TIME + step * 1_000, step, 0.5), 1)).collect();
    sample(&all, most).iter().map(|point| point.step).collect()
}

/// Checks that a chart contains every point if its maximum number of points allows it.
pub(crate) async fn check_all(server: &Server, run: &str, all: Range<i64>) {
    let mut from = all.start;
    while from < all.end {
        let window = from..(from + MAX_POINTS).min(all.end);
        let drawn = chart(server, run, Some(window.clone()), MAX_POINTS).await;
        assert!(drawn.iter().copied().eq(window.clone().map(at)), "{window:?}: {} points", drawn.len());
        from = window.end;
    }
}

/// Returns the number of points that are represented by chart rows, or are in segments that no row
/// covers.
async fn counted(site: &Site, run: &str) -> u64 {
    let charted = charted(site, run).await;
    charted.points + charted.left
}

pub(crate) async fn charted(site: &Site, run: &str) -> ChartProgress {
    let run = RunId::parse(run).unwrap();
    let at = RunLocation { experiment: run.experiment().unwrap(), run };
    read_journal_and_documents(&site.table, &at).await.unwrap().charted("m").unwrap()
}

async fn rows(site: &Site, level: u32) -> usize {
    let level = format!("MCHART#m#{level:010}#");
    site.dump().await.keys().filter(|key| key.contains(&level)).count()
}

#[tokio::test]
async fn of_10_000_points_the_sample_is_mlflows() {
    let site = Site::new().await;
    let run = run(&site).await;
    for part in 0..5 {
        log(&site.server, &run, part * 2_000..(part + 1) * 2_000, 1_000).await;
        index(&site).await;
    }
    assert!(rows(&site, 1).await >= 8 && rows(&site, 2).await >= 2);
    for most in [1, 7, 320, 2_500] {
        let drawn = chart(&site.server, &run, None, most).await;
        assert_eq!(steps(&drawn), mlflows(0..10_000, usize::try_from(most).unwrap()), "{most}");
    }
}

#[tokio::test]
async fn a_long_history_is_drawn_from_few_rows() {
    let site = Site::new().await;
    let run = run(&site).await;
    let mut logged = 0;
    for part in [3_000, 1_000, 11_000, 7_500, 500, 17_000] {
        log(&site.server, &run, logged..logged + part, 1_000).await;
        logged += part;
        index(&site).await;
    }
    assert!(rows(&site, 3).await >= 2);
    site.faults.reset_calls();
    let drawn = chart(&site.server, &run, None, 320).await;
    assert_eq!((drawn.len(), drawn[0], drawn[319]), (320, at(0), at(logged - 1)));
    let gaps: Vec<_> = drawn.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert!(gaps.iter().all(|gap| (1..=250).contains(gap)), "gaps are 125 on average: {gaps:?}");
    // The run is marked, so reading a chart takes one more request, for the journal.
    let calls = ["BatchGetItem", "Query"].map(|name| site.faults.calls(name));
    assert_eq!(calls, [2, 2]);
    assert_eq!(chart(&site.server, &run, None, MAX_POINTS).await.len(), 2_500);
    assert_eq!(chart(&site.server, &run, None, 1).await, [at(logged - 1)]);

    // While the indexer is stopped, new points appear in charts immediately, whether they are
    // logged before or after the existing points.
    let other = site.other().await;
    log(&other, &run, logged..logged + 2_500, 1_000).await;
    site.server.log_metric(&run, "m", at(logged + 2_500)).await.ok();
    log(&other, &run, -1_000..0, 1_000).await;
    other.log_metric(&run, "m", at(-1_001)).await.ok();
    for _ in 0..3 {
        let drawn = chart(&site.server, &run, None, 320).await;
        assert_eq!((drawn[0], *drawn.last().unwrap()), (at(-1_001), at(logged + 2_500)));
        check_all(&site.server, &run, -1_001..logged + 2_501).await;
        index(&site).await;
    }
}

#[tokio::test]
async fn a_range_costs_what_is_drawn_of_it() {
    let site = Site::new().await;
    let run = run(&site).await;
    for part in 0..4 {
        log(&site.server, &run, part * 16_000..(part + 1) * 16_000, 1_000).await;
        index(&site).await;
    }
    for range in [12_345..12_355, 0..3, 31_000..32_000, 63_990..64_100, -5..7, 20_000..28_000] {
        let within = range.start.max(0)..range.end.min(64_000);
        site.faults.reset_calls();
        let drawn = chart(&site.server, &run, Some(range.clone()), 320).await;
        assert_eq!(steps(&drawn), mlflows(within, 320), "{range:?}");
        assert!(site.faults.calls("BatchGetItem") + site.faults.calls("Query") <= 7, "{range:?}");
    }
    for range in [1_000..30_000, 15_000..63_000] {
        let drawn = steps(&chart(&site.server, &run, Some(range.clone()), 320).await);
        let even = (range.end - range.start) / 320;
        assert!(drawn.len() >= 300 && drawn.windows(2).all(|pair| (1..=2 * even + 64).contains(&(pair[1] - pair[0]))));
        assert!(drawn[0] - range.start <= 64 && range.end - drawn[drawn.len() - 1] <= 64, "{range:?}");
    }
    assert_eq!(chart(&site.server, &run, Some(70_000..80_000), 320).await, []);
}

/// Points appear in charts exactly once in these cases: small calls whose points the indexer packs
/// into segments, a job that restarts at an earlier step, and two processes whose points are not in
/// order of time.
#[tokio::test]
#[ignore = "takes five seconds of a core; part of `make test-slow`"]
async fn points_in_no_order_are_drawn_once() {
    let site = Site::new().await;
    let run = run(&site).await;
    let mut expected = Vec::new();
    let mut time = TIME;
    for (number, from) in [0_i64, 5_000, 2_000, 4_000].into_iter().enumerate() {
        for part in 0..20 {
            for call in 0..20 {
                let points = (0..9).map(|point| {
                    time += 1_000;
                    // In one of twenty calls, the points have timestamps that are a minute in the
                    // past.
                    let timestamp = if call == 7 { time - 60_000 - point } else { time };
                    (timestamp, from + (part * 20 + call) * 9 + point, f64::from(u8::try_from(number).unwrap()))
                });
                let points: Vec<_> = points.collect();
                log_at(&site.server, &run, points.iter().copied()).await;
                expected.extend(points);
            }
            index(&site).await;
        }
    }
    assert!(rows(&site, 1).await > 10);
    expected.sort_by_key(|(timestamp, step, _)| (*step, *timestamp));
    for from in [0, 1_500, 3_000, 4_500, 6_000, 7_500] {
        let of_range: Vec<_> = expected.iter().filter(|point| (from..from + 500).contains(&point.1)).copied().collect();
        let drawn = chart(&site.server, &run, Some(from..from + 500), MAX_POINTS).await;
        assert_eq!(drawn, of_range, "{from}");
    }
    let drawn = chart(&site.server, &run, None, 320).await;
    assert_eq!((drawn.len(), drawn[0], drawn[319]), (320, expected[0], expected[expected.len() - 1]));
    assert_eq!(site.server.history(&run, "m").await.len(), expected.len());
}

/// Interrupts the indexer at each of its requests in turn, or at every eighth unless `all_troubles`
/// is set.
#[tokio::test]
async fn every_point_is_drawn_wherever_packing_stops() {
    let ground = Site::new().await;
    let run = run(&ground).await;
    log(&ground.server, &run, 0..9_000, 1_000).await;
    index(&ground).await;
    log(&ground.server, &run, 9_000..13_000, 1_000).await;
    log(&ground.server, &run, 13_000..13_050, 5).await;
    log(&ground.server, &run, -20..0, 20).await;
    for failing in (1..).step_by(if all_troubles() { 1 } else { 8 }) {
        let site = ground.copy();
        site.faults.trouble_at(InjectedFault::Disconnected, failing, u64::MAX);
        let impatient = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        let indexer = Indexer::new(site.faulty().with_retry(impatient)).with_interval(std::time::Duration::ZERO);
        let answer = indexer.handle(Records { records: changes(&site).await }).await;
        site.faults.work_again();
        let other = site.other().await;
        check_all(&other, &run, -20..13_050).await;
        log(&other, &run, 13_050..14_100, 50).await;
        log(&other, &run, -50..-20, 30).await;
        check_all(&site.server, &run, -50..14_100).await;
        index(&site).await;
        check_all(&other, &run, -50..14_100).await;
        assert!(rows(&site, 1).await >= 14);
        let drawn = chart(&other, &run, None, 320).await;
        assert_eq!((drawn.len(), drawn[0], drawn[319]), (320, at(-50), at(14_099)));
        if answer.batch_item_failures.is_empty() {
            assert!(failing > 12, "a pass makes more than 12 requests");
            return;
        }
    }
}

/// A job restarts at an earlier step. The latest point of the metric remains the one from before
/// the restart, which is in a segment and represented by a chart row.
#[tokio::test]
async fn a_latest_point_from_before_makes_no_rows() {
    let site = Site::new().await;
    let run = run(&site).await;
    let again = |step| (TIME + (4_000 + step) * 1_000, step, 0.25);
    log(&site.server, &run, 0..4_000, 1_000).await;
    index(&site).await;
    for from in [0, 1_000] {
        log_at(&site.server, &run, (from..from + 1_000).map(again)).await;
        index(&site).await;
    }
    let mut before = (0, 0);
    for from in (2_000..2_060).step_by(5) {
        if from == 2_010 {
            // Points are counted only from here on. The last point of the first call was in the
            // run's document, and has been packed into a segment for a second time, which will not
            // happen again.
            before = (rows(&site, 1).await, counted(&site, &run).await);
        }
        log_at(&site.server, &run, (from..from + 5).map(again)).await;
        index(&site).await;
        let metrics = site.server.data(&run, "metrics").await;
        assert_eq!(point(&metrics["m"]), at(3_999));
    }
    assert_eq!((rows(&site, 1).await, counted(&site, &run).await), (before.0, before.1 + 50));
    let expected: Vec<_> = (0..4_000).map(at).chain((0..2_060).map(again)).collect();
    assert_eq!(site.server.history(&run, "m").await, expected);
}

/// One call logs points with times that are far in the future. Points that are logged later must
/// not be treated as late because of them. A job that logs only such times gets chart rows as well.
#[tokio::test]
async fn times_that_are_far_ahead_make_nothing_late() {
    let site = Site::new().await;
    let run = run(&site).await;
    // The timestamps are in microseconds instead of milliseconds, a common mistake.
    let ahead = |step| (TIME * 1_000 + step, step, 0.75);
    log(&site.server, &run, 0..11_000, 1_000).await;
    index(&site).await;
    log_at(&site.server, &run, (11_000..12_000).map(ahead)).await;
    for from in [12_000, 13_000, 14_000] {
        log(&site.server, &run, from..from + 1_000, 100).await;
        index(&site).await;
    }
    // Each row represents a thousand points.
    let charted_so_far = charted(&site, &run).await;
    assert_eq!((charted_so_far.rows, charted_so_far.points, charted_so_far.left), (14, 14_000, 0));
    let drawn = chart(&site.server, &run, Some(10_500..12_500), MAX_POINTS).await;
    let expected = (10_500..11_000).map(at).chain((11_000..12_000).map(ahead)).chain((12_000..12_500).map(at));
    assert!(drawn.into_iter().eq(expected));
    for from in (15_000..27_000).step_by(1_000) {
        log_at(&site.server, &run, (from..from + 1_000).map(ahead)).await;
        index(&site).await;
    }
    let charted = charted(&site, &run).await;
    assert!(charted.points + charted.left == 27_000 && charted.points >= 25_000, "{charted:?}");
    let drawn = chart(&site.server, &run, Some(25_000..27_000), MAX_POINTS).await;
    assert!(drawn.into_iter().eq((25_000..27_000).map(ahead)));
}

/// After an outage, the indexer receives tens of thousands of late points of a run that has ended.
#[tokio::test]
#[ignore = "packs tens of thousands of points; part of `make test-slow`"]
async fn what_comes_late_is_packed_in_portions() {
    let site = Site::new().await;
    let run = run(&site).await;
    log(&site.server, &run, 0..2_000, 1_000).await;
    index(&site).await;
    log(&site.server, &run, -110_000..0, 1_000).await;
    log(&site.server, &run, 2_000..4_500, 500).await;
    site.server.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": 9 })).await.ok();
    let tails = async || site.dump().await.into_keys().filter(|key| key.contains(" J#")).count();
    let (mut before, mut passes) = (rows(&site, 1).await, 0);
    while tails().await > 0 {
        let left = tails().await;
        index(&site).await;
        passes += 1;
        let made = rows(&site, 1).await;
        assert!(tails().await < left && made - before <= 350, "{} rows in a pass", made - before);
        before = made;
        check_all(&site.server, &run, -3_000..4_500).await;
        let look_again = site.dump().await.into_keys().filter(|key| key.contains(" DUE#")).count();
        assert!(look_again > 0 && passes < 5, "{passes} passes");
    }
    assert!(passes >= 2);
    assert_eq!(counted(&site, &run).await, 114_500);
    check_all(&site.server, &run, -110_000..4_500).await;
    assert_eq!(chart(&site.server, &run, None, 320).await.len(), 320);
}

/// Calls are added to a tail of the journal while it is packed, and again while the packed calls
/// are removed from it.
#[tokio::test]
async fn a_tail_that_goes_on_while_it_is_packed_counts_once() {
    let site = Site::new().await;
    let run = run(&site).await;
    let other = site.other().await;
    log(&other, &run, 0..4_000, 1_000).await;
    index(&site).await;
    let mut logged = 4_000;
    for _ in 0..4 {
        log(&other, &run, logged..logged + 2_000, 1_000).await;
        let (mut first, mut second) =
            (site.faults.pause_before("DeleteItem", 1), site.faults.pause_before("UpdateItem", 1));
        let packing = tokio::spawn({
            let indexer = Indexer::new(site.faulty()).with_interval(std::time::Duration::ZERO);
            let records = changes(&site).await;
            async move { indexer.handle(Records { records }).await }
        });
        first.reached().await;
        log(&other, &run, logged + 2_000..logged + 3_000, 1_000).await;
        first.open();
        second.reached().await;
        log(&other, &run, logged + 3_000..logged + 4_000, 1_000).await;
        second.open();
        assert!(packing.await.unwrap().batch_item_failures.is_empty());
        logged += 4_000;
        check_all(&other, &run, 0..logged).await;
    }
    index(&site).await;
    assert_eq!(counted(&site, &run).await, u64::try_from(logged).unwrap());
    check_all(&other, &run, 0..logged).await;
    assert_eq!(site.server.history(&run, "m").await.len(), usize::try_from(logged).unwrap());
}

/// Two indexers pack the points of a run concurrently: the first one pauses before one of its
/// writes while the second one packs more points, and then continues. The test pauses before each
/// write in turn, or before every third unless `all_troubles` is set.
#[tokio::test]
async fn two_that_pack_at_once_lose_no_point() {
    for write in (1..=7).step_by(if all_troubles() { 1 } else { 3 }) {
        let site = Site::new().await;
        let run = run(&site).await;
        let other = site.other().await;
        log(&other, &run, 0..9_000, 1_000).await;
        index(&site).await;
        log(&other, &run, 9_000..13_000, 1_000).await;
        log(&other, &run, -20..0, 20).await;
        let mut gate = site.faults.pause_before("PutItem", write);
        let packing = tokio::spawn({
            let indexer = Indexer::new(site.faulty()).with_interval(std::time::Duration::ZERO);
            let records = changes(&site).await;
            async move { indexer.handle(Records { records }).await }
        });
        gate.reached().await;
        log(&other, &run, 13_000..13_060, 6).await;
        log(&other, &run, 13_060..15_060, 1_000).await;
        log(&other, &run, -40..-20, 20).await;
        index(&site).await;
        check_all(&other, &run, -40..15_060).await;
        gate.open();
        packing.await.unwrap();
        check_all(&other, &run, -40..15_060).await;
        log(&other, &run, 15_060..16_060, 1_000).await;
        index(&site).await;
        check_all(&other, &run, -40..16_060).await;
        let drawn = chart(&other, &run, None, 320).await;
        assert_eq!((drawn.len(), drawn[0], drawn[319]), (320, at(-40), at(16_059)));
    }
}
