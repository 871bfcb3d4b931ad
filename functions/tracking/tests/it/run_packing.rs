//! Injects each kind of fault at each request of a pass that packs a run. At any moment, each point
//! must be found exactly once. After another pass, the table must be in the state that an
//! undisturbed pass leaves.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use entities::attributes::{CHARTED, CLOSING, INDEXED, PACKED, SEEN};
use fts_indexer::{Indexer, StreamBatch};
use serde_json::{Value, json};
use table::Table;
use test_site::{BACKGROUND_FAULTS, TableDump, all_troubles, tried};

use crate::charts::{charted, check_all, log};
use crate::indexed_site::changes;
use crate::journal::{end, keys, settle};
use crate::server::{Point, Server, Site, metric_json, point};

/// Number of metrics of a wide run. Some of them are in buckets.
const WIDE: usize = 132;
/// Two metrics that get points for longer than the others, until they have enough points for a
/// segment. One of them is in the first metrics document, and one in a bucket.
const LONG: [usize; 2] = [0, WIDE - 1];
/// The last step of all metrics, and of the two in `LONG`.
const STEPS: (i64, i64) = (4, 30);

fn name(metric: usize) -> String {
    format!("a/long/name/of/m{metric:03}")
}

fn at(step: i64) -> Point {
    (step * 10, step, 0.5)
}

async fn log_step(server: &Server, run: &str, step: i64, metrics: impl Iterator<Item = usize>) {
    let metrics: Vec<_> = metrics.map(|metric| metric_json(&name(metric), at(step))).collect();
    server.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await.ok();
}

/// Creates a run that has been packed once, has a chart, and has each kind of journal row from
/// calls after the packing.
async fn ground() -> (Site, String) {
    let site = Site::new().await;
    let server = &site.server;
    let run = server.run(&server.experiment("e").await).await;
    log(server, &run, 0..2_000, 1_000).await;
    log_step(server, &run, 1, 0..WIDE).await;
    assert!(pack(&site, &site.table).await);
    log(server, &run, 2_000..3_000, 1_000).await;
    // These points are late, so they are represented by a separate chart row.
    log(server, &run, -20..0, 20).await;
    for step in 2..=STEPS.0 {
        log_step(server, &run, step, 0..WIDE).await;
    }
    for step in STEPS.0 + 1..=STEPS.1 {
        log_step(server, &run, step, LONG.into_iter()).await;
    }
    for row in [" J#", " JC#", " JN#", "L#METRIC#", "MCHART#m#"] {
        assert!(!keys(&site, row).await.is_empty(), "{row}");
    }
    (site, run)
}

/// Delivers the changes to the indexer. Returns whether all records were processed.
async fn pack(site: &Site, table: &Table) -> bool {
    // The clock is fixed, so that the rows do not depend on when the test runs.
    let indexer = Indexer::new(table.clone()).with_interval(Duration::ZERO).with_clock(|| 1_700_000_000_000);
    indexer.handle(StreamBatch { records: changes(site).await }).await.batch_item_failures.is_empty()
}

/// Checks what clients find in the run after `further` additional calls, each of which logged one
/// point of each metric.
async fn check(server: &Server, run: &str, further: i64) {
    let metrics = server.data(run, "metrics").await;
    assert_eq!(metrics.len(), WIDE + 1);
    for metric in 0..WIDE {
        let last = if LONG.contains(&metric) { STEPS.1 } else { STEPS.0 };
        assert_eq!(point(&metrics[&name(metric)]), at(if further > 0 { STEPS.1 + further } else { last }), "{metric}");
    }
    for metric in [LONG[0], 50, LONG[1]] {
        let last = if LONG.contains(&metric) { STEPS.1 } else { STEPS.0 };
        let expected: Vec<_> = (1..=last).chain(STEPS.1 + 1..=STEPS.1 + further).map(at).collect();
        assert_eq!(server.history(run, &name(metric)).await, expected, "{metric}");
    }
    check_all(server, run, -20..3_000 + further).await;
}

async fn log_further(server: &Server, run: &str) {
    log_step(server, run, STEPS.1 + 1, 0..WIDE).await;
    log(server, run, 3_000..3_001, 1).await;
}

/// Returns the keys of the journal's rows, which hold the calls that have not been packed.
async fn journal(site: &Site) -> Vec<String> {
    [keys(site, " J#").await, keys(site, " JC#").await].concat()
}

/// Removes the attributes that may differ between passes: how often points were packed and the run
/// was indexed, whether the run's mark is about to be removed, and how many points are in no chart
/// row. The test checks these points at the end.
fn lasting(mut dump: TableDump) -> TableDump {
    for item in dump.values_mut().filter_map(Value::as_object_mut) {
        for passing in [CHARTED.name(), PACKED.name(), SEEN.name(), INDEXED.name(), CLOSING.name()] {
            item.remove(passing);
        }
    }
    dump
}

/// Returns the attributes that differ from those expected. The following additional rows are
/// allowed, because readers find each point exactly once in spite of them:
///
/// - The row that schedules the next check of the run, if an interrupted indexer leaves it behind.
///   A tick deletes it.
/// - An additional segment. If a bucket was written but the first document was not, the bucket's
///   points are packed again, except for the latest ones.
/// - Additional chart rows. If the first document was written but its calls are still in the
///   journal, the segments of these calls are represented by further rows.
fn difference(expected: &TableDump, found: &TableDump) -> Vec<String> {
    let keys: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let may_be_twice = |key: &str| key.contains(" MHIST#") || key.contains(" MCHART#") || key.starts_with("LATER#");
    let is_further = |key: &&&String| may_be_twice(key) && !expected.contains_key(**key);
    let keys = keys.into_iter().filter(|key| !is_further(&key));
    let differ = keys.filter(|key| expected.get(*key) != found.get(*key));
    let described = differ.flat_map(|key| {
        let of = |dump: &TableDump| dump.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
        let (expected, found) = (of(expected), of(found));
        let names: BTreeSet<_> = expected.keys().chain(found.keys()).cloned().collect();
        let differ = names.into_iter().filter(move |name| expected.get(name) != found.get(name));
        differ.map(move |name| format!("{name} of {key}"))
    });
    described.collect()
}

#[tokio::test]
async fn a_pass_may_meet_any_fault_anywhere() {
    let (site, run) = ground().await;
    let undisturbed = site.copy();
    undisturbed.faults.keep_order();
    assert!(pack(&undisturbed, &undisturbed.faulty()).await);
    check(&undisturbed.server, &run, 0).await;
    let (requests, left) = (undisturbed.faults.order(), lasting(undisturbed.dump().await));
    assert_eq!(journal(&undisturbed).await, Vec::<String>::new());
    // States of the table that have been seen before are skipped, because the remaining steps
    // depend only on the content of the table.
    let (mut seen, mut courses) = (HashSet::new(), 0);
    for (nth, operation) in (1..).zip(&requests) {
        for (trouble, calls) in tried(nth, operation, &BACKGROUND_FAULTS) {
            courses += 1;
            let course = format!("{trouble:?} at {nth}, {operation}, for {calls}");
            let copy = site.copy();
            copy.faults.trouble_at(trouble, nth, calls);
            let is_done = pack(&copy, &(*copy).impatient()).await;
            copy.faults.work_again();
            assert!(is_done || calls > 1, "{course}: a single fault is tolerated");
            let found = copy.dump().await;
            if !seen.insert(format!("{is_done} {found:?}")) {
                continue;
            }
            check(&copy.server, &run, 0).await;
            let other = copy.copy();
            assert!(pack(&copy, &copy.table).await, "{course}: again");
            check(&copy.server, &run, 0).await;
            let differs = difference(&left, &lasting(copy.dump().await));
            assert!(differs.is_empty(), "{course}: {differs:#?}");
            // Only some of the states are tested here, because this part takes as long as all other
            // parts of the test.
            if seen.len() % 4 != 1 {
                continue;
            }
            // In a second variant, the client continues to log before the run is packed again, and
            // then ends the run.
            log_further(&other.server, &run).await;
            check(&other.server, &run, 1).await;
            assert!(pack(&other, &other.table).await, "{course}: with further points");
            check(&other.server, &run, 1).await;
            end(&other.server, &run).await;
            settle(&other).await;
            assert_eq!(journal(&other).await, Vec::<String>::new(), "{course}");
            assert_eq!(keys(&other, "LATER#").await, Vec::<String>::new(), "{course}");
            let charted = charted(&other, &run).await;
            assert!(charted.points + charted.left >= 3_020, "{course}: every point is counted");
        }
    }
    println!("{courses} courses, {} tables", seen.len());
    let (least, tables) = if all_troubles() { (3 * requests.len(), 2) } else { (requests.len() / 10, 32) };
    assert!(requests.len() > 25 && courses >= least && seen.len() > requests.len() / tables);
}
