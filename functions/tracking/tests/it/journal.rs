//! Points in the journal are packed and found, no matter where the processes that write, pack or
//! read them are interrupted.

use std::collections::BTreeMap;
use std::time::Duration;

use embedded_engine::faults::InjectedFault;
use entities::attributes::{CLOSING, JOURNAL, LEASED};
use entities::now_ms;
use fts_indexer::{Indexer, StreamBatch};
use key_schema::IndexEntry;
use key_schema::index::RunsChanged;
use serde_json::{Value, json};
use table::RetryPolicy;
use test_site::all_troubles;

use crate::indexed_site::{changes, index};
use crate::server::{Point, Server, Site, metric_json, point};

/// Number of calls with ten metrics that have to precede a call which only adds to the journal and
/// relies on the run's mark.
const CALLS_TO_LEASE: i64 = 6;

async fn run(site: &Site) -> String {
    site.server.run(&site.server.experiment("e").await).await
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("a/long/name/of/m{number:03}")).collect()
}

fn at(step: i64) -> Point {
    (step * 10, step, 0.5)
}

async fn log_step(server: &Server, run: &str, count: usize, step: i64) {
    let metrics: Vec<_> = names(count).iter().map(|name| metric_json(name, at(step))).collect();
    server.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await.ok();
}

async fn log_steps(server: &Server, run: &str, count: usize, steps: std::ops::RangeInclusive<i64>) {
    for step in steps {
        log_step(server, run, count, step).await;
    }
}

/// Checks that every metric has all steps up to `last`, and that `last` is its latest one.
async fn check(server: &Server, run: &str, count: usize, last: i64) {
    let metrics = server.data(run, "metrics").await;
    assert_eq!(metrics.len(), count);
    for name in [&names(count)[0], &names(count)[count - 1]] {
        assert_eq!(point(&metrics[name]), at(last), "{name}");
        assert_eq!(server.history(run, name).await, (1..=last).map(at).collect::<Vec<_>>(), "{name}");
    }
}

async fn document(site: &Site, run: &str) -> Value {
    let items = site.dump().await;
    items.into_iter().find(|(key, _)| key.ends_with(&format!(" R#{run}"))).unwrap().1
}

async fn is_marked(site: &Site, run: &str) -> bool {
    document(site, run).await.get(RunsChanged::INDEX.sort).is_some()
}

pub(crate) async fn keys(site: &Site, part: &str) -> Vec<String> {
    site.dump().await.into_keys().filter(|key| key.contains(part)).collect()
}

pub(crate) async fn end(server: &Server, run: &str) {
    server.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": 9 })).await.ok();
}

/// Returns an indexer whose clock is `time` ahead.
fn later(site: &Site, time: Duration) -> Indexer {
    let ahead = i64::try_from(time.as_millis()).unwrap();
    Indexer::new(site.table.clone()).with_clock(move || now_ms() + ahead)
}

async fn handle(site: &Site, indexer: &Indexer) {
    let answer = indexer.handle(StreamBatch { records: changes(site).await }).await;
    assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
}

/// Runs ticks, and delivers the records that they cause, until no run is postponed.
pub(crate) async fn settle(site: &Site) {
    for minutes in [5, 10, 15] {
        let indexer = later(site, Duration::from_mins(minutes));
        indexer.tick().await.unwrap();
        handle(site, &indexer).await;
    }
}

#[tokio::test]
async fn a_short_run_has_no_journal() {
    let site = Site::new().await;
    let run = run(&site).await;
    log_step(&site.server, &run, 10, 1).await;
    end(&site.server, &run).await;
    index(&site).await;
    assert_eq!(keys(&site, "RUN#").await, Vec::<String>::new());
    assert!(!is_marked(&site, &run).await);
    check(&site.other().await, &run, 10, 1).await;
}

#[tokio::test]
async fn a_run_that_is_logged_to_writes_nothing_to_its_document() {
    for count in [10, 100] {
        let site = Site::new().await;
        let run = run(&site).await;
        log_steps(&site.server, &run, count, 1..=CALLS_TO_LEASE).await;
        let before = document(&site, &run).await;
        assert!(before.get(LEASED.name()).is_some() && before.get(JOURNAL.name()).is_some());
        log_steps(&site.server, &run, count, CALLS_TO_LEASE + 1..=30).await;
        assert_eq!(document(&site, &run).await, before);
        check(&site.other().await, &run, count, 30).await;
        let names = keys(&site, " JN#").await;
        assert_eq!(names.len(), 1, "repeated sets of names get a row");
        end(&site.server, &run).await;
        index(&site).await;
        check(&site.other().await, &run, count, 30).await;
        assert!(is_marked(&site, &run).await, "a call may still rely on the mark");
        settle(&site).await;
        assert!(!is_marked(&site, &run).await);
        let document = document(&site, &run).await;
        assert!([JOURNAL, LEASED, CLOSING].iter().all(|name| document.get(name.name()).is_none()), "{document}");
        assert_eq!(keys(&site, " J#").await, Vec::<String>::new());
        assert_eq!(keys(&site, "LATER#").await, Vec::<String>::new());
        check(&site.other().await, &run, count, 30).await;
        // The client continues to log to the run.
        log_steps(&site.server, &run, count, 31..=40).await;
        check(&site.other().await, &run, count, 40).await;
    }
}

#[tokio::test]
async fn a_run_that_keeps_its_mark_is_packed_but_not_indexed() {
    let site = Site::new().await;
    let experiment = site.server.experiment("e").await;
    let run = site.server.run(&experiment).await;
    index(&site).await;
    let of_index = async || -> BTreeMap<_, _> {
        site.dump().await.into_iter().filter(|(key, _)| key.starts_with("IX#")).collect()
    };
    let before = of_index().await;
    assert!(!before.is_empty());
    log_steps(&site.server, &run, 10, 1..=30).await;
    handle(&site, &later(&site, Duration::from_mins(2))).await;
    assert!(is_marked(&site, &run).await);
    assert_eq!(keys(&site, " J#").await, Vec::<String>::new(), "the points are packed");
    assert_eq!(of_index().await, before);
    let found = async || {
        let filter = format!("metrics.`{}` = 0.5", names(1)[0]);
        site.other().await.search(json!({ "experiment_ids": [experiment], "filter": filter })).await
    };
    assert_eq!(found().await, [run.as_str()]);
    end(&site.server, &run).await;
    handle(&site, &later(&site, Duration::from_mins(4))).await;
    settle(&site).await;
    assert!(!is_marked(&site, &run).await);
    let entries: Vec<_> = of_index().await.into_keys().filter(|key| key.contains("#M#")).collect();
    assert_eq!(entries.len(), 10, "{entries:?}");
    assert_eq!(found().await, [run.as_str()]);
}

/// Interrupts the indexer at each of its requests in turn, or at every third unless `all_troubles`
/// is set. Every point must be read exactly once, both right after the interruption and after a
/// complete pass.
#[tokio::test]
async fn each_point_is_read_once_wherever_packing_stops() {
    for failing in (1..).step_by(if all_troubles() { 1 } else { 3 }) {
        let site = Site::new().await;
        let run = run(&site).await;
        log_steps(&site.server, &run, 10, 1..=15).await;
        site.faults.trouble_at(InjectedFault::Disconnected, failing, u64::MAX);
        let impatient = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        let indexer = Indexer::new(site.faulty().with_retry(impatient));
        let answer = indexer.handle(StreamBatch { records: changes(&site).await }).await;
        site.faults.work_again();
        let other = site.other().await;
        check(&other, &run, 10, 15).await;
        log_step(&other, &run, 10, 16).await;
        check(&site.server, &run, 10, 16).await;
        handle(&site, &Indexer::new(site.table.clone())).await;
        check(&other, &run, 10, 16).await;
        settle(&site).await;
        check(&other, &run, 10, 16).await;
        if answer.batch_item_failures.is_empty() {
            assert!(failing > 8, "a pass makes more than 8 requests");
            return;
        }
    }
}

/// A point is added to a run's document after a pass has read the document and before the pass's
/// final update. Afterwards, the run ends and nothing more is logged.
#[tokio::test]
async fn a_run_that_was_packed_and_not_concluded_is_packed_again() {
    let site = Site::new().await;
    let run = run(&site).await;
    let other = site.other().await;
    for step in 1..=12 {
        other.log_metric(&run, "loss", at(step)).await.ok();
    }
    // The final update of the document is the only `UpdateItem` of a pass.
    let mut gate = site.faults.pause_before("UpdateItem", 1);
    let packing = tokio::spawn({
        let (indexer, records) = (Indexer::new(site.faulty()), changes(&site).await);
        async move { indexer.handle(StreamBatch { records }).await }
    });
    gate.reached().await;
    other.log_metric(&run, "loss", at(13)).await.ok();
    gate.open();
    assert!(packing.await.unwrap().batch_item_failures.is_empty());
    assert!(is_marked(&site, &run).await);
    end(&other, &run).await;
    index(&site).await;
    assert!(!is_marked(&site, &run).await);
    assert_eq!(other.history(&run, "loss").await, (1..=13).map(at).collect::<Vec<_>>());
    assert_eq!(point(&other.data(&run, "metrics").await["loss"]), at(13));
}

/// Tests a batch whose metric names are so long that they do not fit into one item.
#[tokio::test]
async fn the_longest_names_have_room() {
    let site = Site::new().await;
    let run = run(&site).await;
    let names: Vec<_> = (0..900).map(|number| format!("{}{number:03}", "𝕞".repeat(247))).collect();
    for step in 1..=2 {
        let points: Vec<_> = names.iter().map(|name| (name.as_str(), at(step))).collect();
        site.server.log_points(&run, &points).await.ok();
    }
    let metrics = site.server.data(&run, "metrics").await;
    assert!(metrics.len() == 900 && metrics.values().all(|metric| point(metric) == at(2)));
    index(&site).await;
    assert_eq!(site.server.data(&run, "metrics").await, metrics);
    assert_eq!(site.server.history(&run, &names[899]).await, [at(1), at(2)]);
}

/// Many processes add points to a document concurrently. Each of them has read the document when it
/// still had room for its points.
#[tokio::test]
async fn a_document_with_more_points_than_it_should_have_is_packed() {
    let site = Site::new().await;
    let run = run(&site).await;
    let mut held = Vec::new();
    for part in 0..6 {
        let server = site.other().await;
        let names: Vec<_> = (0..30).map(|number| format!("m{}", part * 30 + number)).collect();
        let mut gate = site.faults.pause_before("UpdateItem", 1);
        let faulty = Server::on(&site.faulty(), Duration::from_millis(20)).await;
        drop(server);
        let logging = tokio::spawn({
            let run = run.clone();
            async move {
                let points: Vec<_> = names.iter().map(|name| (name.as_str(), at(1))).collect();
                faulty.log_points(&run, &points).await
            }
        });
        gate.reached().await;
        held.push((gate, logging));
    }
    for (gate, logging) in held {
        gate.open();
        logging.await.unwrap().ok();
    }
    for step in 1..=12 {
        site.server.log_metric(&run, "m0", at(step)).await.ok();
    }
    for _ in 0..3 {
        index(&site).await;
    }
    settle(&site).await;
    assert!(!is_marked(&site, &run).await);
    assert_eq!(site.server.data(&run, "metrics").await.len(), 180);
    assert_eq!(site.server.history(&run, "m0").await, (1..=12).map(at).collect::<Vec<_>>());
}

/// A call is added to a tail of the journal after the tail has been read for packing. The tail must
/// be kept, and packed by the next pass.
#[tokio::test]
async fn a_late_addition_to_a_tail_survives() {
    let site = Site::new().await;
    let run = run(&site).await;
    let other = site.other().await;
    log_steps(&other, &run, 2, 1..=60).await;
    let mut gate = site.faults.pause_before("DeleteItem", 1);
    let packing = tokio::spawn({
        let (indexer, records) = (Indexer::new(site.faulty()), changes(&site).await);
        async move { indexer.handle(StreamBatch { records }).await }
    });
    gate.reached().await;
    log_step(&other, &run, 2, 61).await;
    gate.open();
    assert!(packing.await.unwrap().batch_item_failures.is_empty());
    check(&other, &run, 2, 61).await;
    assert!(!keys(&site, " J#").await.is_empty());
    end(&other, &run).await;
    index(&site).await;
    settle(&site).await;
    check(&other, &run, 2, 61).await;
    assert_eq!(keys(&site, " J#").await, Vec::<String>::new());
}

/// A process crashes before it marks the run, and its client logs the points again through another
/// process.
#[tokio::test]
async fn the_points_are_logged_again_after_a_crash() {
    let site = Site::new().await;
    let run = run(&site).await;
    let other = site.other().await;
    log_steps(&other, &run, 100, 1..=1).await;
    let mut gate = site.faults.pause_after("UpdateItem", 1);
    let logging = tokio::spawn({
        let (server, run) = (site.server.clone(), run.clone());
        async move { log_step(&server, &run, 100, 2).await }
    });
    gate.reached().await;
    logging.abort();
    assert!(logging.await.unwrap_err().is_cancelled());
    log_step(&other, &run, 100, 2).await;
    check(&other, &run, 100, 2).await;
    index(&site).await;
    check(&other, &run, 100, 2).await;
}

/// A run that is no longer logged to, but was never ended, is packed, and its mark is removed.
/// Clients can still log to it later.
#[tokio::test]
async fn a_killed_run_comes_to_rest() {
    let site = Site::new().await;
    let run = run(&site).await;
    log_steps(&site.server, &run, 10, 1..=20).await;
    let mut minutes = 0;
    while is_marked(&site, &run).await {
        minutes += 1;
        assert!(minutes < 10);
        let indexer = later(&site, Duration::from_mins(minutes));
        indexer.tick().await.unwrap();
        handle(&site, &indexer).await;
        check(&site.server, &run, 10, 20).await;
    }
    log_step(&site.other().await, &run, 10, 21).await;
    check(&site.server, &run, 10, 21).await;
}

/// Once the indexer has announced that it will remove the mark, calls may not rely on the mark any
/// more, and mark the run again.
#[tokio::test]
async fn a_call_after_the_closing_keeps_the_mark() {
    let site = Site::new().await;
    let run = run(&site).await;
    log_steps(&site.server, &run, 100, 1..=20).await;
    end(&site.server, &run).await;
    index(&site).await;
    assert!(document(&site, &run).await.get(CLOSING.name()).is_some());
    let other = site.other().await;
    log_step(&other, &run, 100, 21).await;
    assert!(document(&site, &run).await.get(CLOSING.name()).is_none());
    let indexer = later(&site, Duration::from_mins(5));
    indexer.tick().await.unwrap();
    handle(&site, &indexer).await;
    assert!(is_marked(&site, &run).await);
    settle(&site).await;
    settle(&site).await;
    assert!(!is_marked(&site, &run).await);
    check(&other, &run, 100, 21).await;
}

#[tokio::test]
async fn many_processes_log_to_a_run_while_it_is_packed() {
    let site = Site::new().await;
    let run = run(&site).await;
    let mut servers = Vec::new();
    for _ in 0..4 {
        servers.push(site.other().await);
    }
    site.faults.lose_answer_every(5);
    servers.push(site.server.clone());
    let tasks = servers.iter().enumerate().map(|(number, server)| {
        let (server, run) = (server.clone(), run.clone());
        let number = i64::try_from(number).unwrap();
        tokio::spawn(async move {
            for round in 0..20 {
                log_step(&server, &run, 10, 1 + round * 5 + number).await;
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        index(&site).await;
        let _ = later(&site, Duration::from_mins(5)).tick().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    check(&servers[0], &run, 10, 100).await;
    end(&servers[0], &run).await;
    index(&site).await;
    settle(&site).await;
    site.faults.lose_answer_every(0);
    check(&servers[0], &run, 10, 100).await;
    let found: BTreeMap<_, _> = site.dump().await.into_iter().filter(|(key, _)| key.contains(" J#")).collect();
    assert_eq!(found, BTreeMap::new());
}
