//! Tests the policy for metric histories.

use std::time::Duration;

use key_schema::Key;
use mlflow_api::Workspace;
use retention::{DeletionAge, HistoryScans, LogReport, RetentionPolicy};
use runtime::clock::{SimulatedClock, now_ms};
use serde_json::{Value, json};
use table::{Condition, Item, RetryPolicy, Table, bytes};
use test_site::{TABLE, all_troubles};

use crate::test_server::{TestServer, remove_histories};

/// Number of points of the metric `loss` in a long history. It is large enough for charts to be
/// read from chart rows.
const LOSS: i64 = 11_500;

/// Runs a test with a simulated clock that jumps to the next time that a task waits for.
fn timed(test: impl Future<Output = ()>) {
    let simulation = SimulatedClock::begin();
    let test = Box::pin(test);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::select! { () = test => {}, () = simulation.drive() => {} }
    });
}

async fn set(lab: &TestServer, age: &str) {
    RetentionPolicy::Histories.write(&lab.site.table, Some(&DeletionAge::parse(age).unwrap())).await.unwrap();
}

/// Logs points of the metric `loss`, one per step, with one call per thousand points. `time` is the
/// timestamp of step 0.
async fn log_from(lab: &TestServer, run: &str, time: i64, steps: std::ops::Range<i64>) {
    let steps: Vec<_> = steps.collect();
    for steps in steps.chunks(1_000) {
        let point = |step: &i64| json!({ "key": "loss", "value": step, "timestamp": time + step, "step": step });
        let metrics: Vec<_> = steps.iter().map(point).collect();
        lab.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await;
    }
}

/// Logs points with timestamps long ago.
async fn log(lab: &TestServer, run: &str, steps: std::ops::Range<i64>) {
    log_from(lab, run, 1_000, steps).await;
}

async fn end(lab: &TestServer, run: &str, at: i64) {
    lab.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": at })).await;
    lab.index().await;
    lab.rest().await;
}

/// Creates a run that ended long ago.
async fn ended(lab: &TestServer, points: i64) -> String {
    ended_at(lab, points, 20_000).await
}

async fn ended_at(lab: &TestServer, points: i64, time: i64) -> String {
    let new = lab.post("runs/create", json!({ "experiment_id": "0", "start_time": 1 })).await;
    let run = new["run"]["info"]["run_id"].as_str().unwrap().to_owned();
    log(lab, &run, 0..points).await;
    end(lab, &run, time).await;
    run
}

async fn history(lab: &TestServer, run: &str) -> Vec<i64> {
    let query = [("run_id", run), ("metric_key", "loss"), ("max_results", "25000")];
    let found = lab.api.get("metrics/get-history", &query).await.ok();
    found["metrics"].as_array().into_iter().flatten().map(|point| point["step"].as_i64().unwrap()).collect()
}

/// Checks whether a history was shortened: only its latest point is left, and possibly some points
/// that were not in a segment yet.
fn is_short(history: &[i64], latest: i64) -> bool {
    history.len() < 10 && history.last() == Some(&latest)
}

/// Returns the steps of the run's chart, or of a part of it.
async fn chart(lab: &TestServer, run: &str, part: Option<(&str, &str)>) -> Vec<i64> {
    let mut query = vec![("run_ids", run), ("metric_key", "loss"), ("max_results", "320")];
    query.extend(part.into_iter().flat_map(|(first, last)| [("start_step", first), ("end_step", last)]));
    let found = lab.api.get("metrics/get-history-bulk-interval", &query).await.ok();
    found["metrics"].as_array().into_iter().flatten().map(|point| point["step"].as_i64().unwrap()).collect()
}

async fn latest(lab: &TestServer, run: &str) -> Value {
    lab.api.get("runs/get", &[("run_id", run)]).await.ok()["run"]["data"]["metrics"].clone()
}

/// Returns the keys of the run's segments.
async fn segments(lab: &TestServer, run: &str) -> Vec<String> {
    let mut keys = lab.items(run).await;
    keys.retain(|key| key.contains("MHIST#"));
    keys
}

fn key(dumped: &str) -> Key {
    let (pk, sk) = dumped.split_once(' ').unwrap();
    Key { pk: pk.to_owned(), sk: sk.to_owned() }
}

#[test]
fn what_a_policy_keeps_no_longer_is_gone_and_the_latest_points_stay() {
    timed(async {
        let lab = TestServer::new().await;
        let (run, running) = (ended(&lab, LOSS).await, lab.run("0").await);
        lab.index().await;
        lab.rest().await;
        let before = latest(&lab, &run).await;
        assert_eq!(history(&lab, &run).await.len(), usize::try_from(LOSS).unwrap());
        assert_eq!(chart(&lab, &run, Some(("2000", "2099"))).await.len(), 100);
        let of_others = segments(&lab, &running).await;
        assert!(segments(&lab, &run).await.len() > 10 && !of_others.is_empty());

        for (age, gone) in [(None, 0), (Some("36500d"), 0), (Some("1h"), 1), (Some("1h"), 0)] {
            if let Some(age) = age {
                set(&lab, age).await;
            }
            let outcome = remove_histories(&lab.retention()).await;
            assert_eq!(outcome.removed.len(), gone, "{age:?}: {outcome:?}");
        }
        assert_eq!((segments(&lab, &run).await, segments(&lab, &running).await), (Vec::new(), of_others));
        assert_eq!(latest(&lab, &run).await, before);
        assert!(is_short(&history(&lab, &run).await, LOSS - 1));
        let found = lab
            .post("runs/search", json!({ "experiment_ids": ["0"], "filter": format!("metrics.loss = {}", LOSS - 1) }));
        assert_eq!(found.await["runs"].as_array().unwrap().len(), 1);
        // The long history can still be charted, completely and in part.
        let whole = chart(&lab, &run, None).await;
        assert!(whole.len() > 200 && whole.last() == Some(&(LOSS - 1)), "{whole:?}");
        let part = chart(&lab, &run, Some(("2000", "2099"))).await;
        assert!((15..100).contains(&part.len()) && part.iter().all(|step| (2_000..2_100).contains(step)), "{part:?}");

        // If more points are logged to the ended run, it has a history again.
        log(&lab, &run, LOSS..2 * LOSS).await;
        lab.index().await;
        lab.rest().await;
        assert!(history(&lab, &run).await.ends_with(&(LOSS..2 * LOSS).collect::<Vec<_>>()));
        let whole = chart(&lab, &run, None).await;
        assert!(whole.len() > 300 && whole.last() == Some(&(2 * LOSS - 1)), "{whole:?}");
        assert_eq!(remove_histories(&lab.retention()).await.removed.len(), 1);
        assert!(is_short(&history(&lab, &run).await, 2 * LOSS - 1));
    });
}

#[test]
fn a_run_that_goes_on_again_keeps_its_history() {
    timed(async {
        let lab = TestServer::new().await;
        let run = ended(&lab, 1_100).await;
        set(&lab, "1h").await;
        lab.post("runs/update", json!({ "run_id": run, "status": "RUNNING" })).await;
        lab.index().await;
        lab.rest().await;
        assert!(remove_histories(&lab.retention()).await.removed.is_empty());
        assert_eq!(history(&lab, &run).await.len(), 1_100);
        lab.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": 20_000 })).await;
        lab.index().await;
        lab.rest().await;
        assert_eq!(remove_histories(&lab.retention()).await.removed.len(), 1);
    });
}

/// Points that are newer than the end of their run are kept. There may be such points, because
/// clients set both the timestamps of points and the end time of a run.
#[test]
fn points_that_are_newer_than_the_end_of_their_run_stay() {
    timed(async {
        let lab = TestServer::new().await;
        let run = ended(&lab, 1_100).await;
        set(&lab, "1h").await;
        log_from(&lab, &run, now_ms(), 2_000..2_100).await;
        lab.index().await;
        lab.rest().await;
        remove_histories(&lab.retention()).await;
        let kept = history(&lab, &run).await;
        assert!(kept.ends_with(&(2_000..2_100).collect::<Vec<_>>()) && kept.len() < 110, "{kept:?}");
    });
}

#[test]
fn it_may_stop_at_any_request_and_be_done_again() {
    timed(async {
        for request in 1.. {
            let lab = TestServer::new().await;
            let run = ended(&lab, 1_100).await;
            set(&lab, "1h").await;
            let table = Table::new(lab.site.faults.client(), TABLE);
            let cut = lab.retention_over(table.with_retry(RetryPolicy { attempts: 1, ..RetryPolicy::default() }));
            lab.site.faults.cut_off_at(request);
            let outcome = cut
                .looking(HistoryScans::AtNewOnes)
                .remove_old_histories(&Workspace::default(), now_ms(), &LogReport)
                .await;
            lab.site.faults.work_again();
            // Readers get the complete history or a part of it, and never an error.
            assert!(history(&lab, &run).await.ends_with(&[1_099]));
            assert!(!chart(&lab, &run, None).await.is_empty());
            remove_histories(&lab.retention().looking(HistoryScans::AtNewOnes)).await;
            assert!(is_short(&history(&lab, &run).await, 1_099));
            assert_eq!(segments(&lab, &run).await, Vec::<String>::new(), "{request}");
            if outcome.is_ok() {
                assert!(request > 6, "so few requests");
                break;
            }
        }
    });
}

/// Clients log points while the history is being deleted. New points must be kept. Old points may
/// be deleted, but the latest point must be kept, and no request may fail.
#[test]
fn a_run_that_is_logged_to_and_packed_meanwhile_is_whole() {
    timed(async {
        let places = [("Query", 3), ("BatchWriteItem", 1)];
        for (at, is_new, is_packed) in places
            .into_iter()
            .flat_map(|at| [(at, true, false), (at, true, true), (at, false, false), (at, false, true)])
            // By default, only half of the cases run. For each of the two places where the removal
            // is paused, these cases cover both new and old points, and both packed and unpacked
            // points.
            .filter(|((operation, _), is_new, is_packed)| {
                all_troubles() || (*is_new == *is_packed) == (*operation == "Query")
            })
        {
            let lab = TestServer::new().await;
            let run = ended(&lab, LOSS).await;
            set(&lab, "1h").await;
            // The removal is paused before it queries the segments, or before it deletes the
            // segments that it has found.
            let mut gate = lab.site.faults.pause_before(at.0, at.1);
            let retention = lab.retention_over(Table::new(lab.site.faults.client(), TABLE));
            let removing = tokio::spawn(async move { remove_histories(&retention).await });
            gate.reached().await;
            let (first, last) = (LOSS, LOSS + 1_000);
            log_from(&lab, &run, if is_new { now_ms() } else { 1_000 }, first..last).await;
            // These points have lower steps than existing points that chart rows represent.
            log_from(&lab, &run, if is_new { now_ms() } else { 500 }, 20..60).await;
            if is_packed {
                lab.index().await;
                lab.rest().await;
            }
            gate.open();
            removing.await.unwrap();
            lab.index().await;
            lab.rest().await;
            let kept = history(&lab, &run).await;
            assert!(kept.contains(&(last - 1)), "{is_new} {is_packed}");
            if is_new {
                assert!((first..last).chain(20..60).all(|step| kept.contains(&step)), "{is_packed}");
            }
            assert_eq!(chart(&lab, &run, None).await.last(), Some(&(last - 1)));
            assert_eq!(latest(&lab, &run).await[0]["step"], last - 1);
            remove_histories(&lab.retention()).await;
            assert_eq!(chart(&lab, &run, None).await.last(), Some(&(last - 1)));
            assert_eq!(latest(&lab, &run).await[0]["step"], last - 1);
        }
    });
}

/// Neither the indexer nor a chart fails if a segment that the journal refers to has been deleted.
#[test]
fn a_segment_that_is_gone_stops_nobody() {
    timed(async {
        let lab = TestServer::new().await;
        let run = ended(&lab, LOSS).await;
        // These points arrive late: they have lower steps than existing points that chart rows
        // represent.
        log_from(&lab, &run, 500, 20..60).await;
        for key in segments(&lab, &run).await {
            lab.site.table.delete(&self::key(&key), &Condition::Always).await.unwrap();
        }
        assert!(chart(&lab, &run, None).await.len() > 200);
        lab.index().await;
        lab.rest().await;
        assert!(chart(&lab, &run, None).await.len() > 200);
        assert!(is_short(&history(&lab, &run).await, LOSS - 1));
    });
}

#[test]
fn a_segment_that_cannot_be_read_stays_and_stops_no_other() {
    timed(async {
        let lab = TestServer::new().await;
        let (run, other) = (ended(&lab, 1_100).await, ended_at(&lab, 1_100, 30_000).await);
        set(&lab, "1h").await;
        let [first, ..] = &segments(&lab, &run).await[..] else { panic!("no segment") };
        let broken = Item::new(key(first)).with("points", bytes(vec![1, 2]));
        lab.site.table.put(broken, &Condition::Always).await.unwrap();
        let outcome = lab.retention().remove_old_histories(&Workspace::default(), now_ms(), &LogReport).await;
        assert!(outcome.is_err());
        assert_eq!(segments(&lab, &run).await, std::slice::from_ref(first));
        assert_eq!(segments(&lab, &other).await, Vec::<String>::new());
    });
}

/// A long-running process scans only runs that ended since its previous scan.
#[test]
fn a_look_goes_on_where_the_last_one_ended() {
    timed(async {
        let lab = TestServer::new().await;
        let (first, second) = (ended(&lab, 1_100).await, ended_at(&lab, 1_100, 30_000).await);
        set(&lab, "1h").await;
        let looking = lab.retention().looking(HistoryScans::AtNewOnes);
        assert_eq!(remove_histories(&looking).await.removed.iter().collect::<Vec<_>>(), ["histories of 2 runs of 0"]);
        for run in [&first, &second] {
            log(&lab, run, 1_100..2_200).await;
        }
        lab.index().await;
        lab.rest().await;
        assert_eq!(remove_histories(&looking).await.removed.iter().collect::<Vec<_>>(), ["histories of 1 runs of 0"]);
        assert!(segments(&lab, &second).await.is_empty() && !segments(&lab, &first).await.is_empty());
        // Extending the retention period, and setting it back, causes no error.
        set(&lab, "36500d").await;
        assert!(remove_histories(&looking).await.removed.is_empty());
        set(&lab, "1h").await;
        assert!(remove_histories(&looking).await.removed.is_empty());
        // All runs are scanned once a month.
        runtime::clock::sleep(Duration::from_hours(24 * 30)).await;
        assert_eq!(remove_histories(&looking).await.removed.len(), 1);
        assert!(segments(&lab, &first).await.is_empty());
    });
}

/// If the removal fails for a run, the next scan starts with this run again instead of after it.
#[test]
fn a_look_does_not_go_on_after_a_run_that_failed() {
    timed(async {
        let lab = TestServer::new().await;
        let run = ended(&lab, 1_100).await;
        ended_at(&lab, 1_100, 30_000).await;
        set(&lab, "1h").await;
        let [first, ..] = &segments(&lab, &run).await[..] else { panic!("no segment") };
        let key = key(first);
        let whole = lab.site.table.get(&key).await.unwrap().unwrap();
        let broken = Item::new(key).with("points", bytes(vec![1, 2]));
        lab.site.table.put(broken, &Condition::Always).await.unwrap();
        let looking = lab.retention().looking(HistoryScans::AtNewOnes);
        assert!(looking.remove_old_histories(&Workspace::default(), now_ms(), &LogReport).await.is_err());
        lab.site.table.put(whole, &Condition::Always).await.unwrap();
        assert_eq!(remove_histories(&looking).await.removed.len(), 1);
        assert!(segments(&lab, &run).await.is_empty());
    });
}
