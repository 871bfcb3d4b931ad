//! The history of a metric: whole, in pages and in samples, regardless of the order and batches in
//! which its points were logged.

use std::collections::BTreeSet;

use entities::points::{Point as Packed, digest, pack};
use key_schema::{Ascending, rows};
use mlflow_api::RunId;
use mlflow_api::response_size::{MAX_BODY_BYTES, ResponseSize};
use proptest::prelude::*;
use serde_json::{Value, json};
use table::{Condition, Item};
use test_site::all_troubles;
use tracking::store::{LogBatchData, LoggedMetric};

use crate::server::{Point, Server, Site, points};

/// A point in MLflow's order, in which NaN is treated as 0 but comes after 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Logged {
    timestamp: i64,
    step: i64,
    /// Twice the value of the point, or 1 for NaN, so that NaN comes between 0 and the next value.
    doubled: i8,
}

impl Logged {
    fn point(self) -> Point {
        let value = if self.doubled == 1 { f64::NAN } else { f64::from(self.doubled) / 2.0 };
        (self.timestamp, self.step, value)
    }

    fn of((timestamp, step, value): Point) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
        let doubled = if value.is_nan() { 1 } else { (value * 2.0) as i8 };
        Self { timestamp, step, doubled }
    }
}

/// Generates points from a small set of distinct points, so that some occur twice.
fn logged() -> impl Strategy<Value = Logged> {
    (0_i64..25, -3_i64..4, prop_oneof![Just(-4), Just(0), Just(1), Just(2)])
        .prop_map(|(timestamp, step, doubled)| Logged { timestamp, step, doubled })
}

/// Generates portions of points: single points, batches that fill a set, and batches that become
/// segments.
fn portions() -> impl Strategy<Value = Vec<Vec<Logged>>> {
    let portion = prop_oneof![
        4 => proptest::collection::vec(logged(), 1..2),
        1 => proptest::collection::vec(logged(), 2..10),
        1 => proptest::collection::vec(logged(), 11..40),
    ];
    proptest::collection::vec(portion, 1..30)
}

async fn log(server: &Server, run: &str, portion: &[Logged]) {
    match portion {
        [single] => server.log_metric(run, "m", single.point()).await.ok(),
        many => {
            let points: Vec<_> = many.iter().map(|logged| ("m", logged.point())).collect();
            server.log_points(run, &points).await.ok()
        }
    };
}

async fn page(server: &Server, run: &str, size: usize, token: &str) -> (Vec<Logged>, Option<String>) {
    let size = size.to_string();
    let arguments = [("run_id", run), ("metric_key", "m"), ("max_results", &size), ("page_token", token)];
    let page = server.get("metrics/get-history", &arguments).await.ok();
    let found = points(&page).into_iter().map(Logged::of).collect();
    (found, page["next_page_token"].as_str().map(str::to_owned))
}

async fn in_pages(server: &Server, run: &str, size: usize) -> Vec<Logged> {
    let mut found = Vec::new();
    let mut token = Some(String::new());
    while let Some(next) = token {
        let (page, after) = page(server, run, size, &next).await;
        assert!(page.len() == size || after.is_none());
        found.extend(page);
        token = after;
    }
    found
}

fn run_async(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// Returns the number of random histories per test.
fn config() -> ProptestConfig {
    let cases = if all_troubles() { 12 } else { 4 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_order_and_any_page_size_give_the_same_history(portions in portions(), sizes in [1_usize..6, 6..60, 1..200]) {
        run_async(async move {
            let site = Site::new().await;
            let run = site.server.run(&site.server.experiment("e").await).await;
            for portion in &portions {
                log(&site.server, &run, portion).await;
            }
            let expected: Vec<_> = portions.iter().flatten().copied().collect::<BTreeSet<_>>().into_iter().collect();
            let whole: Vec<_> = site.server.history(&run, "m").await.into_iter().map(Logged::of).collect();
            assert_eq!(whole, expected);
            for size in sizes {
                assert_eq!(in_pages(&site.server, &run, size).await, expected, "pages of {size}");
            }
            let latest = expected.iter().max_by_key(|logged| (logged.step, logged.timestamp, logged.doubled)).unwrap();
            let found = site.server.data(&run, "metrics").await["m"].clone();
            assert_eq!(Logged::of(crate::server::point(&found)), *latest);
        });
    }

    /// Points that are logged between two pages must not make earlier points disappear.
    #[test]
    fn logging_between_pages_drops_and_repeats_nothing(
        before in portions(),
        between in portions(),
        size in 1_usize..12,
        in_order: bool,
    ) {
        run_async(async move {
            let site = Site::new().await;
            let run = site.server.run(&site.server.experiment("e").await).await;
            let (before, between) =
                if in_order { (ascending(before, 0), ascending(between, 10_000)) } else { (before, between) };
            for portion in &before {
                log(&site.server, &run, portion).await;
            }
            let mut between = between.iter();
            let mut found = Vec::new();
            let mut token = Some(String::new());
            while let Some(next) = token {
                let (page, after) = page(&site.server, &run, size, &next).await;
                found.extend(page);
                token = after;
                for portion in between.by_ref().take(5) {
                    log(&site.server, &run, portion).await;
                }
            }
            assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
            for logged in before.iter().flatten() {
                assert!(found.contains(logged), "{logged:?}");
            }
        });
    }
}

/// Returns the portions with ascending times.
fn ascending(mut portions: Vec<Vec<Logged>>, from: i64) -> Vec<Vec<Logged>> {
    for (time, logged) in (from..).zip(portions.iter_mut().flatten()) {
        *logged = Logged { timestamp: time, step: time, ..*logged };
    }
    portions
}

/// Points in the document that are older than existing segments are sealed between two pages.
#[tokio::test]
async fn early_points_are_sealed_between_two_pages() {
    let site = Site::new().await;
    let server = &site.server;
    let run = server.run(&server.experiment("e").await).await;
    for time in 1..=5 {
        server.log_metric(&run, "m", (time, time, 0.0)).await.ok();
    }
    let bulk: Vec<_> = (6..=100).map(|time| ("m", (time, time, 0.0))).collect();
    server.log_points(&run, &bulk).await.ok();
    let (first, token) = page(server, &run, 3, "").await;
    for time in 101..=120 {
        server.log_metric(&run, "m", (time, time, 0.0)).await.ok();
    }
    let (second, _) = page(server, &run, 500, &token.unwrap()).await;
    let times: Vec<_> = first.iter().chain(&second).map(|logged| logged.timestamp).collect();
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    assert_eq!(times[..100], (1..=100).collect::<Vec<_>>());
}

/// The history has more segments than one response of the table holds. Half of them were logged in
/// reverse order of time.
#[tokio::test]
async fn pages_of_a_history_of_megabytes() {
    const BATCHES: i64 = 140;
    let site = Site::new().await;
    let server = &site.server;
    let run = server.run(&server.experiment("e").await).await;
    for batch in 0..BATCHES {
        let start = if batch % 2 == 0 { batch } else { BATCHES - batch } * 700;
        let points: Vec<_> = (start..start + 1_000)
            .map(|step| LoggedMetric { key: "m".to_owned(), value: 0.5, timestamp: step * 40_000, step, model: None })
            .collect();
        let batch = LogBatchData { metrics: points, ..Default::default() };
        server.store.run_log_batch(&run, &batch).await.unwrap();
    }
    let (whole, _) = server.store.metric_history(&run, "m", None, "").await.unwrap();
    assert!(whole.is_sorted_by(|a, b| a.timestamp < b.timestamp));
    let last = whole.last().unwrap().step;
    assert_eq!((whole[0].step, i64::try_from(whole.len()).unwrap()), (0, last + 1));
    site.faults.reset_calls();
    let mut found = Vec::new();
    let mut token = Some(String::new());
    let mut pages = 0;
    while let Some(next) = token {
        let (page, after) = server.store.metric_history(&run, "m", Some(9_000), &next).await.unwrap();
        found.extend(page);
        token = after;
        pages += 1;
    }
    assert!(found == whole, "{} and {} points", found.len(), whole.len());
    assert!(site.faults.calls("Query") <= 2 * pages, "a page reads what it needs");
}

#[tokio::test]
async fn samples_and_bulk() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    let mut runs = [server.run(&experiment).await, server.run(&experiment).await];
    runs.sort();
    for run in &runs {
        let points: Vec<_> = (0..100).map(|step| ("m", (1_000 - step, step, 1.0))).collect();
        server.log_points(run, &points).await.ok();
        server.log_metric(run, "m", (2_000, 100, 1.0)).await.ok();
    }
    let steps = |answer: &Value| points(answer).iter().map(|point| point.1).collect::<Vec<_>>();
    let path = "metrics/get-history-bulk-interval";
    let all = [("run_ids", runs[0].as_str()), ("run_ids", &runs[1]), ("metric_key", "m")];
    let sample = server.get(path, &[&all[..], &[("max_results", "5")]].concat()).await.ok();
    assert_eq!(steps(&sample), [0, 21, 41, 61, 100, 0, 21, 41, 61, 100]);
    assert_eq!(sample["metrics"][9]["run_id"], runs[1]);
    let range = [("start_step", "10"), ("end_step", "12"), ("max_results", "5")];
    let sample = server.get(path, &[&all[..1], &all[2..], &range].concat()).await.ok();
    assert_eq!(steps(&sample), [10, 11, 12]);
    let bulk = "/ajax-api/2.0/mlflow/metrics/get-history-bulk";
    let arguments = [("run_id", runs[1].as_str()), ("run_id", &runs[0]), ("metric_key", "m"), ("max_results", "150")];
    let found = server.get_at(bulk, &arguments).await.ok();
    let expected: Vec<_> = (0..100).rev().chain([100]).chain((0..100).rev()).take(150).collect();
    assert_eq!(steps(&found), expected);
    assert_eq!(found["metrics"][0]["run_id"], runs[0]);
    let unknown = [("run_id", "nobody"), ("metric_key", "m")];
    assert_eq!(server.get_at(bulk, &unknown).await.ok(), json!({ "metrics": [] }));
}

#[tokio::test]
async fn a_history_too_long_for_one_answer_is_refused_and_not_cut() {
    let site = Site::new().await;
    let server = &site.server;
    let run = server.run(&server.experiment("e").await).await;
    // Each point is large in the response, because it repeats the metric's name of 1,000 bytes.
    let metric = "𝕞".repeat(250);
    let points_of = |start: i64, count: i64| -> Vec<_> {
        let value = |step| LoggedMetric { key: metric.clone(), value: 0.5, timestamp: step, step, model: None };
        (start..start + count).map(value).collect()
    };
    for start in 0..62 {
        let batch = LogBatchData { metrics: points_of(start * 1_000, 1_000), ..Default::default() };
        server.store.run_log_batch(&run, &batch).await.unwrap();
    }
    let arguments = [("run_id", run.as_str()), ("metric_key", metric.as_str())];
    let message = server.get("metrics/get-history", &arguments).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert!(message.contains("'max_results'"), "{message}");
    let (mut found, mut token, mut pages) = (0, String::new(), 0);
    loop {
        let page = [("max_results", "25000"), ("page_token", token.as_str())];
        let answer = server.get("metrics/get-history", &[&arguments[..], &page].concat()).await.ok();
        assert!(ResponseSize::of(answer.to_string().as_bytes()).bytes_in_response() < MAX_BODY_BYTES);
        let steps: Vec<_> = points(&answer).iter().map(|point| point.1).collect();
        assert_eq!(steps, (found..found + i64::try_from(steps.len()).unwrap()).collect::<Vec<_>>());
        (found, pages) = (found + i64::try_from(steps.len()).unwrap(), pages + 1);
        match answer["next_page_token"].as_str() {
            // These requests take most of the test's time, so by default only the first three pages
            // are read.
            Some(_) if pages == 3 && !all_troubles() => break,
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    let is_enough = if all_troubles() { found == 62_000 && pages > 10 } else { found > 10_000 && pages == 3 };
    assert!(is_enough, "{found} points in {pages} pages");
}

/// The test writes 33 MB of segments directly, because a client would take hours to log them.
#[tokio::test]
#[ignore = "writes 33 MB of points; part of `make test-slow`"]
async fn more_than_can_be_sampled_or_read_of_several_runs_is_refused() {
    let site = Site::new().await;
    let server = &site.server;
    let run = server.run(&server.experiment("e").await).await;
    let of_segment: Vec<_> =
        (0..35_000).map(|step| Packed::new(step, step, 0.1 + f64::from(u32::try_from(step).unwrap()))).collect();
    let packed = pack(&of_segment);
    let segments = (33 << 20) / packed.len() + 1;
    let id = RunId::parse(&run).unwrap();
    for number in 0..i64::try_from(segments).unwrap() {
        let key = rows::MetricSegment::key(&id, &"m".into(), &Ascending(number), &Ascending(0), &digest(&packed));
        let segment = Item::new(key).with("points", table::bytes(packed.clone()));
        site.table.put(segment, &Condition::Always).await.unwrap();
    }
    let of_many =
        server.get("metrics/get-history-bulk-interval", &[("run_ids", run.as_str()), ("metric_key", "m")]).await;
    // Each segment starts with the first segment's first point, so none of them can be skipped.
    let bulk = "/ajax-api/2.0/mlflow/metrics/get-history-bulk";
    let whole = server.get_at(bulk, &[("run_id", run.as_str()), ("metric_key", "m")]).await;
    for answer in [of_many, whole] {
        let message = answer.refused(400, "INVALID_PARAMETER_VALUE");
        assert_eq!(message, "The histories of these runs have more than 32 MB. Ask for fewer runs.");
    }
}
