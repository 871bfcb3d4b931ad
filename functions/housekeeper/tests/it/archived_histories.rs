//! Tests the archiving of long metric histories: readers get the same points before and after, while
//! clients log points, processes are killed, and entities are deleted.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use artifact_store::{Archive, ArchiveBackend, ArchiveError, ArchivePage};
use bytes::Bytes;
use entities::{ArchivedSegments, MAX_UNARCHIVED_POINTS};
use futures::future::BoxFuture;
use mlflow_api::{ArchiveObject, Workspace};
use proptest::prelude::*;
use retention::{
    ArchiveDifferences, DeletionAge, HistoryArchiveAge, HistoryScans, LogReport, Retention, RetentionPolicy,
};
use runtime::clock::{SimulatedClock, now_ms};
use serde_json::{Value, json};
use table::{RetryPolicy, Table};
use test_site::{TABLE, TestClient, all_troubles, sample_metrics};

use crate::test_server::{TestServer, remove_histories};

/// Number of points of a history that is long enough to be archived.
const LONG: i64 = 11_500;

/// A point as the API returns it: timestamp, step, value.
type Logged = (i64, i64, i64);

/// Runs a test with a simulated clock that jumps to the next time that a task waits for.
fn timed(test: impl Future<Output = ()>) {
    let simulation = SimulatedClock::begin();
    let test = Box::pin(test);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::select! { () = test => {}, () = simulation.drive() => {} }
    });
}

/// An archive that cannot be reached, and counts the attempts.
#[derive(Clone, Debug, Default)]
struct Down(Arc<AtomicUsize>);

impl Down {
    fn fail<T: Send + 'static>(&self) -> BoxFuture<'_, Result<T, ArchiveError>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Err(ArchiveError::Unavailable("the bucket is down".to_owned())) })
    }
}

impl ArchiveBackend for Down {
    fn write(&self, _: ArchiveObject, _: Bytes) -> BoxFuture<'_, Result<(), ArchiveError>> {
        self.fail()
    }

    fn read(&self, _: ArchiveObject, _: u64, _: usize) -> BoxFuture<'_, Result<Bytes, ArchiveError>> {
        self.fail()
    }

    fn delete(&self, _: ArchiveObject) -> BoxFuture<'_, Result<(), ArchiveError>> {
        self.fail()
    }

    fn list(&self, _: Option<String>) -> BoxFuture<'_, Result<ArchivePage, ArchiveError>> {
        self.fail()
    }
}

async fn log(lab: &TestServer, run: &str, points: &[Logged]) {
    let point = |(timestamp, step, value): &Logged| json!({ "key": "loss", "value": value, "timestamp": timestamp, "step": step });
    let metrics: Vec<_> = points.iter().map(point).collect();
    lab.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await;
}

fn points(steps: std::ops::Range<i64>) -> Vec<Logged> {
    steps.map(|step| (1_000 + step, step, sample_metrics::integer(u32::try_from(step).unwrap()))).collect()
}

async fn end(lab: &TestServer, run: &str) {
    lab.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": 20_000 })).await;
    lab.index().await;
    lab.rest().await;
}

async fn start(lab: &TestServer) -> String {
    let new = lab.post("runs/create", json!({ "experiment_id": "0", "start_time": 1 })).await;
    new["run"]["info"]["run_id"].as_str().unwrap().to_owned()
}

/// Creates a run that ended long ago, with a long history.
async fn ended(lab: &TestServer) -> String {
    let run = start(lab).await;
    for portion in points(0..LONG).chunks(1_000) {
        log(lab, &run, portion).await;
    }
    end(lab, &run).await;
    run
}

fn read(point: &Value) -> Logged {
    let number = |name: &str| point[name].as_i64().unwrap();
    #[expect(clippy::cast_possible_truncation, reason = "the values are integers")]
    let value = point["value"].as_f64().unwrap() as i64;
    (number("timestamp"), number("step"), value)
}

async fn page(api: &TestClient, run: &str, size: usize, token: &str) -> (Vec<Logged>, Option<String>) {
    let size = size.to_string();
    let query = [("run_id", run), ("metric_key", "loss"), ("max_results", size.as_str()), ("page_token", token)];
    let found = api.get("metrics/get-history", &query).await.ok();
    let points = found["metrics"].as_array().into_iter().flatten().map(read).collect();
    (points, found["next_page_token"].as_str().filter(|token| !token.is_empty()).map(str::to_owned))
}

/// Reads a history in pages, starting with a token.
async fn pages(api: &TestClient, run: &str, size: usize, token: &str) -> Vec<Logged> {
    let (mut all, mut next) = (Vec::new(), Some(token.to_owned()));
    while let Some(token) = next {
        let (page, after) = page(api, run, size, &token).await;
        assert!(page.len() == size || after.is_none());
        all.extend(page);
        next = after;
    }
    all
}

async fn history(lab: &TestServer, run: &str) -> Vec<Logged> {
    pages(&lab.api, run, 25_000, "").await
}

/// Returns the run's chart, or a part of it.
async fn chart(api: &TestClient, run: &str, part: Option<(i64, i64)>) -> Vec<Logged> {
    let part = part.map(|(first, last)| (first.to_string(), last.to_string()));
    let mut query = vec![("run_ids", run), ("metric_key", "loss"), ("max_results", "320")];
    query.extend(part.iter().flat_map(|(first, last)| [("start_step", first.as_str()), ("end_step", last)]));
    let found = api.get("metrics/get-history-bulk-interval", &query).await.ok();
    found["metrics"].as_array().into_iter().flatten().map(read).collect()
}

async fn latest(api: &TestClient, run: &str) -> Value {
    api.get("runs/get", &[("run_id", run)]).await.ok()["run"]["data"]["metrics"].clone()
}

/// Returns the keys of items in the run's partition that begin like this.
async fn keys(lab: &TestServer, run: &str, beginning: &str) -> Vec<String> {
    let beginning = format!("RUN#{run} {beginning}");
    lab.items(&beginning).await.into_iter().filter(|key| key.starts_with(&beginning)).collect()
}

/// Archives the histories of runs that ended more than an hour ago.
async fn archive(retention: Retention) -> mlflow_api::Result<()> {
    retention.archiving_histories(true).archive_histories(&Workspace::default(), now_ms(), &LogReport).await
}

async fn archive_after_an_hour(lab: &TestServer) {
    HistoryArchiveAge::write(&lab.site.table, Some(&DeletionAge::parse("1h").unwrap())).await.unwrap();
}

/// Returns the lists of archived segments of a run.
async fn lists(lab: &TestServer, run: &str) -> Vec<ArchivedSegments> {
    let at = entities::locate_run(&lab.site.table, run).await.unwrap();
    entities::read_archived_segments(&lab.site.table, &at, "loss").await.unwrap()
}

/// Checks that each segment is in one place: once in the archive, or in the table.
async fn check_places(lab: &TestServer, run: &str) {
    let at = entities::locate_run(&lab.site.table, run).await.unwrap();
    let lists = lists(lab, run).await;
    let archived: Vec<_> = lists.iter().flat_map(|list| &list.segments).collect();
    let names: HashSet<_> = archived.iter().map(|segment| segment.name.key(&at, "loss").sk).collect();
    assert_eq!(names.len(), archived.len(), "a segment was archived twice");
    let left = keys(lab, run, "MHIST#").await;
    assert!(left.iter().all(|key| !names.contains(key.split_once(' ').unwrap().1)), "{left:?}");
}

/// Returns the names of the objects in the archive.
fn objects(lab: &TestServer) -> BTreeSet<String> {
    let files = lab.artifacts(".archive/").into_iter();
    files.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// Waits until announced objects are due, sweeps, and checks that each object is the one of a list.
async fn check_objects(lab: &TestServer, runs: &[&str]) {
    runtime::clock::sleep(Duration::from_hours(2)).await;
    lab.retention().sweep_archive(now_ms()).await.unwrap();
    let mut expected = BTreeSet::new();
    for run in runs {
        expected.extend(lists(lab, run).await.into_iter().map(|list| list.object.to_string()));
    }
    assert_eq!(objects(lab), expected);
    assert!(lab.items("ARCHIVED O#").await.is_empty());
    assert_eq!(differences(lab).await, ArchiveDifferences::default());
}

/// Compares the archive with the lists.
async fn differences(lab: &TestServer) -> ArchiveDifferences {
    lab.retention().check_archive(&[Workspace::default()]).await.unwrap()
}

/// Returns the number of random histories.
fn config() -> ProptestConfig {
    let cases = if all_troubles() { 8 } else { 2 };
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() }
}

/// Generates a history as the calls that log it. Most calls have increasing times, some are late,
/// and some repeat points.
fn calls() -> impl Strategy<Value = Vec<Vec<Logged>>> {
    let call = (0_i64..1_000, 700_usize..1_001, 1_i64..9, 0_i64..3);
    (proptest::collection::vec(call, 15..18), any::<bool>()).prop_map(|(calls, is_reversed)| {
        let mut time = 0;
        let call = |(back, count, pace, value): (i64, usize, i64, i64)| {
            // A tenth of the calls begin long before the end of the previous one.
            let begin = if back < 100 { (time - back * 50).max(0) } else { time };
            let points = (0..i64::try_from(count).unwrap()).map(|number| {
                let timestamp = begin + number * pace;
                let step = if is_reversed { 1_000_000 - timestamp } else { timestamp / 3 };
                (timestamp, step, sample_metrics::integer(u32::try_from(timestamp * 3 + value).unwrap()))
            });
            let points: Vec<_> = points.collect();
            time = time.max(begin + i64::try_from(count).unwrap() * pace);
            points
        };
        calls.into_iter().map(call).collect()
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_history_reads_as_before(calls in calls(), sizes in [300_usize..900, 3_000..9_000], seed in 1_usize..4) {
        timed(async move {
            let lab = TestServer::new().await;
            archive_after_an_hour(&lab).await;
            let run = start(&lab).await;
            for (number, call) in calls.iter().enumerate() {
                log(&lab, &run, call).await;
                if number % seed == 0 {
                    lab.index().await;
                    lab.rest().await;
                }
            }
            end(&lab, &run).await;
            let mut expected: BTreeSet<Logged> = calls.iter().flatten().copied().collect();
            assert_eq!(history(&lab, &run).await, expected.iter().copied().collect::<Vec<_>>());
            let steps = expected.iter().map(|point| point.1);
            let (first, last) = (steps.clone().min().unwrap(), steps.max().unwrap());
            // Parts with more than 10,000 points are drawn from chart rows even before.
            let part = Some((first + (last - first) / 20, last));
            let before = (chart(&lab.api, &run, None).await, chart(&lab.api, &run, part).await, latest(&lab.api, &run).await);
            let (begun, token) = page(&lab.api, &run, sizes[0], "").await;

            archive(lab.retention()).await.unwrap();
            assert!(!lists(&lab, &run).await.is_empty());
            check_places(&lab, &run).await;
            let after = (chart(&lab.api, &run, None).await, chart(&lab.api, &run, part).await, latest(&lab.api, &run).await);
            assert_eq!(after, before);
            // A token that was issued before is still valid.
            let rest = pages(&lab.api, &run, sizes[0], &token.unwrap()).await;
            assert_eq!(begun.into_iter().chain(rest).collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>());
            for size in [sizes[1], 25_000] {
                assert_eq!(pages(&lab.api, &run, size, "").await, expected.iter().copied().collect::<Vec<_>>());
            }

            // The run is resumed, and gets points before, among and after those in the archive.
            lab.post("runs/update", json!({ "run_id": run, "status": "RUNNING" })).await;
            let (_, token) = page(&lab.api, &run, sizes[0], "").await;
            let time = expected.last().unwrap().0;
            for begin in [0, time / 2, time + 10] {
                let late: Vec<_> = (0..900).map(|number| (begin + number, first + number, 9)).collect();
                expected.extend(&late);
                log(&lab, &run, &late).await;
            }
            assert_eq!(history(&lab, &run).await, expected.iter().copied().collect::<Vec<_>>());
            end(&lab, &run).await;
            assert_eq!(history(&lab, &run).await, expected.iter().copied().collect::<Vec<_>>());
            let whole = chart(&lab.api, &run, None).await;
            assert!(whole.len() >= 200 && whole.iter().all(|point| expected.contains(point)));
            archive(lab.retention()).await.unwrap();
            check_places(&lab, &run).await;
            assert_eq!(chart(&lab.api, &run, None).await, whole);
            let rest = pages(&lab.api, &run, sizes[1], &token.unwrap()).await;
            assert!(rest.iter().all(|point| expected.contains(point)) && rest.is_sorted());
            assert_eq!(pages(&lab.api, &run, sizes[1], "").await, expected.iter().copied().collect::<Vec<_>>());
            check_objects(&lab, &[&run]).await;
        });
    }
}

#[test]
fn only_long_histories_of_ended_runs_are_archived() {
    timed(async {
        let lab = TestServer::new().await;
        let (run, short, running) = (ended(&lab).await, start(&lab).await, start(&lab).await);
        for portion in points(0..10_000).chunks(1_000) {
            log(&lab, &short, portion).await;
        }
        for portion in points(0..LONG).chunks(1_000) {
            log(&lab, &running, portion).await;
        }
        end(&lab, &short).await;
        let all = [&run, &short, &running];
        let mut before = Vec::new();
        for run in all {
            before.push((history(&lab, run).await, chart(&lab.api, run, None).await));
        }
        // The default is 90 days, but the clock of the test is later than the end of the runs.
        HistoryArchiveAge::write(&lab.site.table, None).await.unwrap();
        archive(lab.retention()).await.unwrap();
        assert!(objects(&lab).is_empty());
        archive_after_an_hour(&lab).await;
        lab.retention().archive_histories(&Workspace::default(), now_ms(), &LogReport).await.unwrap();
        assert!(objects(&lab).is_empty(), "the layout does not support it");
        archive(lab.retention()).await.unwrap();
        assert_eq!(objects(&lab).len(), 1);
        let left = keys(&lab, &run, "MHIST#").await;
        assert!(left.len() <= 2, "{left:?}");
        assert!(lists(&lab, &short).await.is_empty() && lists(&lab, &running).await.is_empty());
        for (run, before) in all.into_iter().zip(before) {
            assert_eq!((history(&lab, run).await, chart(&lab.api, run, None).await), before);
        }
        // A small part of the chart has fewer points than before.
        let part = chart(&lab.api, &run, Some((2_000, 2_099))).await;
        assert!(
            (15..100).contains(&part.len()) && part.iter().all(|point| (2_000..2_100).contains(&point.1)),
            "{part:?}"
        );
        let represented: usize =
            lists(&lab, &run).await.iter().flat_map(|list| &list.segments).map(|segment| segment.name.points).sum();
        assert!(u64::try_from(represented).unwrap() > MAX_UNARCHIVED_POINTS);
        let bulk = "/ajax-api/2.0/mlflow/metrics/get-history-bulk";
        let found = lab.api.get_at(bulk, &[("run_id", run.as_str()), ("metric_key", "loss")]).await.ok();
        assert_eq!(found["metrics"].as_array().unwrap().iter().map(read).collect::<Vec<_>>(), points(0..LONG));
        check_objects(&lab, &[&run]).await;
    });
}

#[test]
fn it_may_stop_at_any_request_and_be_done_again() {
    timed(async {
        for request in 1.. {
            let lab = TestServer::new().await;
            let run = ended(&lab).await;
            archive_after_an_hour(&lab).await;
            let before = chart(&lab.api, &run, None).await;
            let table = Table::new(lab.site.faults.client(), TABLE);
            let cut = lab.retention_over(table.with_retry(RetryPolicy { attempts: 1, ..RetryPolicy::default() }));
            lab.site.faults.cut_off_at(request);
            let outcome = archive(cut.looking(HistoryScans::AtNewOnes)).await;
            lab.site.faults.work_again();
            assert_eq!(history(&lab, &run).await, points(0..LONG), "{request}");
            assert_eq!(chart(&lab.api, &run, None).await, before);
            archive(lab.retention().looking(HistoryScans::AtNewOnes)).await.unwrap();
            assert_eq!(history(&lab, &run).await, points(0..LONG), "{request}");
            check_places(&lab, &run).await;
            assert_eq!(lists(&lab, &run).await.len(), 1);
            check_objects(&lab, &[&run]).await;
            if outcome.is_ok() {
                assert!(request > 10, "so few requests");
                break;
            }
        }
    });
}

/// Requests of an archiving before which something else happens in tests.
const PLACES: [(&str, u64); 5] =
    [("Query", 3), ("Query", 5), ("PutItem", 1), ("TransactWriteItems", 1), ("BatchWriteItem", 1)];

/// Starts an archiving, and pauses it before a request, while `meanwhile` runs.
async fn archive_while(
    lab: &TestServer,
    place: (&str, u64),
    meanwhile: impl Future<Output = ()>,
) -> mlflow_api::Result<()> {
    let mut gate = lab.site.faults.pause_before(place.0, place.1);
    let retention = lab.retention_over(Table::new(lab.site.faults.client(), TABLE));
    let archiving = tokio::spawn(archive(retention));
    gate.reached().await;
    meanwhile.await;
    gate.open();
    archiving.await.unwrap()
}

#[test]
fn a_run_that_goes_on_meanwhile_is_whole() {
    timed(async {
        for (place, is_packed) in PLACES.into_iter().flat_map(|place| [(place, false), (place, true)]) {
            if !all_troubles() && is_packed != (place.0 == "TransactWriteItems") {
                continue;
            }
            let lab = TestServer::new().await;
            let run = ended(&lab).await;
            archive_after_an_hour(&lab).await;
            let late: Vec<_> = (0..60).map(|number| (500 + number, 20 + number, 9)).collect();
            let more = points(LONG..LONG + 1_500);
            let logging = async {
                lab.post("runs/update", json!({ "run_id": run, "status": "RUNNING" })).await;
                for portion in more.chunks(1_000).chain([late.as_slice()]) {
                    log(&lab, &run, portion).await;
                }
                if is_packed {
                    lab.index().await;
                    lab.rest().await;
                }
            };
            Box::pin(archive_while(&lab, place, logging)).await.unwrap();
            let mut expected: Vec<_> = points(0..LONG + 1_500).into_iter().chain(late.clone()).collect();
            expected.sort_unstable();
            assert_eq!(history(&lab, &run).await, expected, "{place:?} {is_packed}");
            lab.index().await;
            lab.rest().await;
            assert_eq!(history(&lab, &run).await, expected, "{place:?} {is_packed}");
            assert_eq!(chart(&lab.api, &run, None).await.last().unwrap().1, LONG + 1_499);
            end(&lab, &run).await;
            archive(lab.retention()).await.unwrap();
            check_places(&lab, &run).await;
            assert_eq!(history(&lab, &run).await, expected, "{place:?} {is_packed}");
            check_objects(&lab, &[&run]).await;
        }
    });
}

/// A reader is paused at one of its requests, while the history is archived.
#[test]
fn a_reader_finds_each_point_once_meanwhile() {
    timed(async {
        for (size, place) in [(25_000, 1), (25_000, 2), (4_000, 1), (4_000, 2), (4_000, 3), (4_000, 4)] {
            let lab = TestServer::new().await;
            let run = ended(&lab).await;
            archive_after_an_hour(&lab).await;
            let api = lab.api_over(&Table::new(lab.site.faults.client(), TABLE));
            let mut gate = lab.site.faults.pause_before("Query", place);
            let reader = run.clone();
            let reading = tokio::spawn(async move { pages(&api, &reader, size, "").await });
            gate.reached().await;
            archive(lab.retention()).await.unwrap();
            gate.open();
            assert_eq!(reading.await.unwrap(), points(0..LONG), "{size} {place}");
        }
    });
}

#[test]
fn two_processes_archive_each_segment_once() {
    timed(async {
        for place in PLACES {
            let lab = TestServer::new().await;
            let run = ended(&lab).await;
            archive_after_an_hour(&lab).await;
            let other = async { archive(lab.retention()).await.unwrap() };
            Box::pin(archive_while(&lab, place, other)).await.unwrap();
            check_places(&lab, &run).await;
            assert_eq!(lists(&lab, &run).await.len(), 1, "{place:?}");
            assert_eq!(history(&lab, &run).await, points(0..LONG), "{place:?}");
            check_objects(&lab, &[&run]).await;
        }
    });
}

/// A run is permanently deleted while it is archived, and afterwards.
#[test]
fn nothing_is_left_of_a_deleted_run() {
    timed(async {
        for place in PLACES.into_iter().map(Some).chain([None]) {
            let lab = TestServer::new().await;
            let run = ended(&lab).await;
            archive_after_an_hour(&lab).await;
            let deletion = async {
                lab.post("runs/delete", json!({ "run_id": run })).await;
                runtime::clock::sleep(Duration::from_secs(1)).await;
                assert_eq!(lab.collect(None).await.removed.len(), 1);
            };
            if let Some(place) = place {
                Box::pin(archive_while(&lab, place, deletion)).await.unwrap();
            } else {
                archive(lab.retention()).await.unwrap();
                deletion.await;
                // A restored table may still need the objects.
                assert_eq!(objects(&lab).len(), 1);
                runtime::clock::sleep(Duration::from_hours(35 * 24)).await;
                lab.retention().sweep_archive(now_ms()).await.unwrap();
                assert_eq!(objects(&lab).len(), 1);
            }
            lab.index().await;
            lab.rest().await;
            assert_eq!(keys(&lab, &run, "").await, Vec::<String>::new(), "{place:?}");
            runtime::clock::sleep(Duration::from_hours(37 * 24)).await;
            lab.retention().sweep_archive(now_ms()).await.unwrap();
            assert!(objects(&lab).is_empty(), "{place:?}");
            assert!(lab.items("ARCHIVED O#").await.is_empty());
        }
    });
}

#[test]
fn expired_histories_leave_the_archive_too() {
    timed(async {
        for request in 1.. {
            let lab = TestServer::new().await;
            let run = ended(&lab).await;
            archive_after_an_hour(&lab).await;
            archive(lab.retention()).await.unwrap();
            let before = chart(&lab.api, &run, None).await;
            RetentionPolicy::Histories.write(&lab.site.table, Some(&DeletionAge::parse("1h").unwrap())).await.unwrap();
            let table = Table::new(lab.site.faults.client(), TABLE);
            let cut = lab.retention_over(table.with_retry(RetryPolicy { attempts: 1, ..RetryPolicy::default() }));
            lab.site.faults.cut_off_at(request);
            let removal = cut.archiving_histories(true);
            let outcome = removal.remove_old_histories(&Workspace::default(), now_ms(), &LogReport).await;
            lab.site.faults.work_again();
            assert!(history(&lab, &run).await.ends_with(&points(LONG - 1..LONG)));
            remove_histories(&lab.retention().archiving_histories(true)).await;
            assert!(lists(&lab, &run).await.is_empty() && keys(&lab, &run, "MHIST#").await.is_empty());
            assert!(history(&lab, &run).await.len() < 10);
            assert_eq!(chart(&lab.api, &run, None).await.last(), before.last());
            // What expires is not archived.
            archive(lab.retention()).await.unwrap();
            assert_eq!(objects(&lab).len(), 1);
            runtime::clock::sleep(Duration::from_hours(37 * 24)).await;
            lab.retention().sweep_archive(now_ms()).await.unwrap();
            assert!(objects(&lab).is_empty(), "{request}");
            if outcome.is_ok() {
                assert!(request > 6, "so few requests");
                break;
            }
        }
    });
}

#[test]
fn a_missing_object_is_an_error_of_its_history_only() {
    timed(async {
        let lab = TestServer::new().await;
        let (run, other) = (ended(&lab).await, ended(&lab).await);
        archive_after_an_hour(&lab).await;
        archive(lab.retention()).await.unwrap();
        let before = chart(&lab.api, &run, None).await;
        let object = lists(&lab, &run).await[0].object;
        let [file] = &lab.artifacts(&object.to_string())[..] else { panic!("no object") };
        let content = std::fs::read(file).unwrap();
        let mut changed = content.clone();
        changed[1_000] ^= 1;
        for broken in [None, Some(&content[..content.len() - 1]), Some(&changed)] {
            match broken {
                Some(broken) => std::fs::write(file, broken).unwrap(),
                None => std::fs::remove_file(file).unwrap(),
            }
            let missing = differences(&lab).await.missing;
            assert_eq!(
                missing.keys().copied().collect::<Vec<_>>(),
                if broken.is_none() { vec![object] } else { vec![] }
            );
            let query = [("run_id", run.as_str()), ("metric_key", "loss"), ("max_results", "25000")];
            let message = lab.api.get("metrics/get-history", &query).await.refused(500, "INTERNAL_ERROR");
            let expected = format!(
                "The history of metric 'loss' of run {run} cannot be read, because an object of the archive is missing or damaged."
            );
            assert_eq!(message, expected);
            assert_eq!(chart(&lab.api, &run, None).await, before);
            assert_eq!(latest(&lab.api, &run).await[0]["step"], LONG - 1);
            assert_eq!(history(&lab, &other).await, points(0..LONG));
        }
    });
}

#[test]
fn nothing_is_lost_while_the_archive_is_down() {
    timed(async {
        let lab = TestServer::new().await;
        let run = ended(&lab).await;
        archive_after_an_hour(&lab).await;
        let down = Down::default();
        assert!(archive(lab.retention().with_archive(Archive::over(down.clone()))).await.is_err());
        assert!(down.0.swap(0, Ordering::Relaxed) > 0);
        let api = lab.api_with(Archive::over(down.clone()));
        assert_eq!(pages(&api, &run, 25_000, "").await, points(0..LONG));
        archive(lab.retention()).await.unwrap();
        // Charts, latest values and searches do not use the archive.
        assert!(chart(&api, &run, None).await.len() > 200);
        assert!(!chart(&api, &run, Some((2_000, 2_099))).await.is_empty());
        assert_eq!(latest(&api, &run).await[0]["step"], LONG - 1);
        let filter = json!({ "experiment_ids": ["0"], "filter": "metrics.loss >= 0" });
        assert_eq!(api.post("runs/search", filter).await.ok()["runs"].as_array().unwrap().len(), 1);
        assert_eq!(down.0.load(Ordering::Relaxed), 0);
        let query = [("run_id", run.as_str()), ("metric_key", "loss")];
        api.get("metrics/get-history", &query).await.refused(503, "TEMPORARILY_UNAVAILABLE");
        assert_eq!(history(&lab, &run).await, points(0..LONG));
        check_objects(&lab, &[&run]).await;
    });
}
