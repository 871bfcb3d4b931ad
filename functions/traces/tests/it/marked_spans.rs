//! Spans of a new trace are stored in its mark. No acknowledged span is lost, in any order of exports,
//! changes, deletions and packing.

use std::collections::BTreeSet;
use std::time::Duration;

use entities::attributes::TO_PACK;
use fts_indexer::{Indexer, PackingThresholds, StreamBatch};
use key_schema::rows;
use runtime::clock::now_ms;
use serde_json::{Value, json};
use table::{Item, Table, number};
use test_site::key_of;
use trace_blocks::{TracePartition, is_mark};

use crate::marks::timed;
use crate::server::{ALL, Server, Site, id, info, span};

/// Lets time pass, and packs all traces.
pub(crate) async fn pack(site: &Site) {
    pack_by(site, for_few_traces()).await;
}

pub(crate) fn for_few_traces() -> PackingThresholds {
    PackingThresholds { min_new_marks: 1, min_changed_marks: 1, pause: Duration::ZERO, ..PackingThresholds::default() }
}

async fn pack_by(site: &Site, sizes: PackingThresholds) {
    pack_with(site, &site.table, sizes).await;
}

/// Packs all traces with requests to `table`.
pub(crate) async fn pack_with(site: &Site, table: &Table, sizes: PackingThresholds) {
    assert!(try_pack(site, table, sizes).await);
}

/// Packs all traces with requests to `table`, and returns whether that succeeded.
pub(crate) async fn try_pack(site: &Site, table: &Table, sizes: PackingThresholds) -> bool {
    runtime::clock::sleep(Duration::from_mins(20)).await;
    let keys: Vec<_> = site.items().await.iter().map(key_of).collect();
    let partitions: BTreeSet<_> = keys.iter().filter(|key| is_mark(key)).filter_map(TracePartition::of_key).collect();
    let indexer = Indexer::new(table.clone()).with_clock(now_ms).with_packing_thresholds(sizes);
    let record = |partition: &TracePartition| {
        let key = partition.packing_key();
        json!({ "eventName": "MODIFY", "dynamodb": {
            "SequenceNumber": "1", "Keys": { "PK": { "S": key.pk }, "SK": { "S": key.sk } },
            "NewImage": { TO_PACK.name(): { "N": now_ms().to_string() } },
        } })
    };
    let ask = |partition: &TracePartition| Item::new(partition.packing_key()).with(TO_PACK, number(now_ms()));
    site.table.write_many(partitions.iter().map(ask).collect(), &[]).await.unwrap();
    let answer = indexer.handle(StreamBatch { records: partitions.iter().map(record).collect() }).await;
    answer.batch_item_failures.is_empty()
}

/// Numbers of items of traces.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) marks: usize,
    pub(crate) marks_with_spans: usize,
    pub(crate) spans: usize,
    /// Documents that refer to a mark with spans.
    pub(crate) referring: usize,
}

pub(crate) async fn counts(site: &Site) -> Counts {
    let items = site.items().await;
    let count = |is_meant: &dyn Fn(&Value) -> bool| items.iter().filter(|item| is_meant(item)).count();
    Counts {
        marks: count(&|item| rows::TraceMark::parse(&key_of(item)).is_some()),
        marks_with_spans: count(&|item| rows::TraceMarkWithSpans::parse(&key_of(item)).is_some()),
        spans: count(&|item| rows::TraceSpans::parse(&key_of(item)).is_some()),
        referring: count(&|item| item.get("in_mark").is_some()),
    }
}

async fn spans(server: &Server) -> BTreeSet<String> {
    let spans = server.spans(1).await;
    let names: BTreeSet<_> = spans.iter().cloned().collect();
    assert_eq!(names.len(), spans.len(), "a span is returned twice");
    names
}

pub(crate) async fn check(site: &Site, expected: &[&str]) {
    for server in [&site.server, &site.other().await] {
        assert_eq!(spans(server).await, expected.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(server.found(&["0"], "", "", 1).await.iter().filter(|found| **found == id(1)).count(), 1);
        assert_eq!(server.found(&["0"], "span.name LIKE 'step%'", "", 10).await.len(), 1);
    }
}

pub(crate) async fn delete(server: &Server) {
    let asked = json!({ "experiment_id": "0", "request_ids": [id(1)] });
    assert_eq!(
        server.call_at("POST", &format!("{ALL}/delete-traces"), asked.to_string()).await.ok()["traces_deleted"],
        1
    );
}

/// Returns text that cannot be compressed to less than half.
pub(crate) fn noise(seed: u64, words: usize) -> String {
    let next = |last: &u64| Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    let words: Vec<_> =
        std::iter::successors(Some(seed), next).take(words).map(|word| format!("{word:016x}")).collect();
    words.concat()
}

#[test]
fn small_spans_of_a_new_trace_are_in_its_mark() {
    timed(async {
        let site = Site::new().await;
        site.server.export(&[span(1, 1, None, 0, 5)]).await.ok();
        assert_eq!(counts(&site).await, Counts { marks: 0, marks_with_spans: 1, spans: 0, referring: 1 });
        check(&site, &["step 1"]).await;
        // Large spans have items of their own.
        let mut large = span(2, 1, None, 0, 5);
        large["attributes"] = json!([{ "key": "noise", "value": { "stringValue": noise(1, 500) } }]);
        site.server.export(&[large]).await.ok();
        assert_eq!(counts(&site).await.spans, 1);
        pack(&site).await;
        assert_eq!(counts(&site).await, Counts { marks: 0, marks_with_spans: 0, spans: 0, referring: 0 });
        assert_eq!(spans(&site.server).await, BTreeSet::from(["step 1".to_owned()]));
    });
}

#[test]
fn further_exports_are_stored_under_the_key_of_the_trace() {
    timed(async {
        for is_packed in [false, true] {
            for is_known in [false, true] {
                let site = Site::new().await;
                let (first, second) = (span(1, 1, None, 0, 50), span(1, 2, Some(1), 1, 5));
                site.server.export(std::slice::from_ref(&first)).await.ok();
                if is_packed {
                    pack(&site).await;
                }
                let server = if is_known { site.server.clone() } else { site.other().await };
                // The client repeats the first export, because it received no response.
                server.export(&[first]).await.ok();
                check(&site, &["step 1"]).await;
                server.export(std::slice::from_ref(&second)).await.ok();
                check(&site, &["step 1", "step 2"]).await;
                site.other().await.export(&[second]).await.ok();
                check(&site, &["step 1", "step 2"]).await;
                pack(&site).await;
                check(&site, &["step 1", "step 2"]).await;
                assert_eq!(counts(&site).await, Counts { marks: 0, marks_with_spans: 0, spans: 0, referring: 0 });
            }
        }
    });
}

#[test]
fn a_repeated_export_takes_precedence_over_those_in_between() {
    timed(async {
        let site = Site::new().await;
        let (first, mut other) = (span(1, 1, None, 0, 50), span(1, 1, None, 0, 50));
        other["name"] = "step other".into();
        for (spans, expected) in [(&first, "step 1"), (&other, "step other"), (&first, "step 1")] {
            runtime::clock::sleep(Duration::from_secs(1)).await;
            site.other().await.export(std::slice::from_ref(spans)).await.ok();
            check(&site, &[expected]).await;
        }
        pack(&site).await;
        check(&site, &["step 1"]).await;
    });
}

#[test]
fn spans_leave_the_mark_when_the_start_time_changes() {
    timed(async {
        for is_known in [false, true] {
            let site = Site::new().await;
            site.server.export(&[span(1, 1, None, 0, 50)]).await.ok();
            let server = if is_known { site.server.clone() } else { site.other().await };
            let mut started = info(1, "0");
            started["request_time"] = "2023-11-15T22:13:20.000Z".into();
            let mut cut = 1;
            loop {
                let copy = site.copy().await;
                copy.faults.cut_off_at(cut);
                let status = copy.server.start(&started).await.status;
                copy.faults.work_again();
                check(&copy, &["step 1"]).await;
                if status == 200 {
                    break;
                }
                cut += 1;
            }
            assert!(cut > 4, "{cut}");
            server.start(&started).await.ok();
            assert_eq!(counts(&site).await, Counts { marks: 1, marks_with_spans: 1, spans: 1, referring: 0 });
            check(&site, &["step 1"]).await;
            pack(&site).await;
            check(&site, &["step 1"]).await;
            assert_eq!(counts(&site).await, Counts { marks: 0, marks_with_spans: 0, spans: 0, referring: 0 });
        }
    });
}

#[test]
fn marks_of_many_processes_at_one_place_are_deleted_early() {
    timed(async {
        for (exists, is_large) in [(true, false), (true, true), (false, false)] {
            let site = Site::new().await;
            let mut names = Vec::new();
            for number in 1..=(if is_large { 400 } else { 30 }) {
                let server = Server::on(&site.faulty()).await;
                let mut span = span(1, number, (number > 1).then_some(1), 0, 5);
                if is_large {
                    span["attributes"] = json!([{ "key": "noise", "value": { "stringValue": noise(number, 180) } }]);
                }
                if !exists {
                    // The process stops after it has written the mark. The first one also creates the day.
                    site.faults.cut_off_at(if number == 1 { 5 } else { 4 });
                }
                let answer = server.export(&[span]).await;
                site.faults.work_again();
                assert_eq!(answer.status == 200, exists);
                names.push(format!("step {number}"));
            }
            let (before, expected) = (counts(&site).await, names.len());
            assert_eq!((before.marks, before.marks_with_spans), (0, expected));
            pack_by(&site, PackingThresholds::default()).await;
            let after = counts(&site).await;
            assert!(after.marks_with_spans <= 2, "{after:?}");
            if exists {
                assert_eq!((after.referring, after.spans), (1, before.spans));
                assert_eq!(spans(&site.server).await, names.into_iter().collect());
            } else {
                assert!(after.marks_with_spans > 0, "a place without a mark is never packed");
            }
            pack(&site).await;
            // A block does not contain spans of more than 1 MB.
            let spans = if is_large { expected } else { 0 };
            assert_eq!(counts(&site).await, Counts { marks: 0, marks_with_spans: 0, spans, referring: 0 });
        }
    });
}

#[test]
fn a_process_that_was_suspended_leaves_no_spans_behind() {
    timed(async {
        for cut in 1.. {
            let site = Site::new().await;
            // The process is suspended before it receives the response about its mark.
            let mut gate = site.faults.pause_after("BatchWriteItem", 1);
            let suspension = async {
                gate.reached().await;
                assert_eq!(counts(&site).await.marks_with_spans, 1);
                pack(&site).await;
                assert_eq!(counts(&site).await.marks_with_spans, 0);
                site.faults.cut_off_at(cut);
                gate.open();
            };
            let spans = [span(1, 1, None, 0, 50)];
            let (exported, ()) = tokio::join!(site.server.export(&spans), suspension);
            site.faults.work_again();
            if exported.status == 200 {
                assert!(cut > 2, "{cut}");
                check(&site, &["step 1"]).await;
            }
            pack(&site).await;
            assert_eq!(counts(&site).await, Counts { marks: 0, marks_with_spans: 0, spans: 0, referring: 0 }, "{cut}");
            if exported.status == 200 {
                break;
            }
        }
    });
}

#[test]
fn a_deleted_trace_leaves_no_spans_in_marks() {
    timed(async {
        for wait in [0, 70, 600] {
            let site = Site::new().await;
            site.server.export(&[span(1, 1, None, 0, 50)]).await.ok();
            runtime::clock::sleep(Duration::from_secs(wait)).await;
            let server = site.other().await;
            delete(&server).await;
            // A mark that is not quiet yet is left to the packer.
            let left = usize::from(wait < 600);
            assert_eq!(counts(&site).await, Counts { marks: 1, marks_with_spans: left, spans: 0, referring: 0 });
            let later = site.copy().await;
            pack_by(&later, PackingThresholds::default()).await;
            assert_eq!(counts(&later).await, Counts { marks: 1, marks_with_spans: 0, spans: 0, referring: 0 });
            // The export creates the trace again.
            server.export(&[span(1, 1, None, 0, 50)]).await.ok();
            check(&site, &["step 1"]).await;
            pack(&site).await;
            check(&site, &["step 1"]).await;
        }
    });
}

#[test]
fn the_packer_deletes_spans_of_deleted_traces_even_if_there_are_few_marks() {
    timed(async {
        let site = Site::new().await;
        for number in 1..=2 {
            site.server.export(&[span(number, 1, None, 0, 50)]).await.ok();
        }
        runtime::clock::sleep(Duration::from_secs(70)).await;
        // The change writes a mark without spans.
        let tag = json!({ "key": "key", "value": "value" });
        site.server.call_at("PATCH", &format!("{ALL}/{}/tags", id(1)), tag.to_string()).await.ok();
        delete(&site.server).await;
        let before = counts(&site).await;
        assert_eq!(before, Counts { marks: 1, marks_with_spans: 2, spans: 0, referring: 1 });
        pack_by(&site, PackingThresholds::default()).await;
        assert_eq!(counts(&site).await, Counts { marks: 1, marks_with_spans: 1, spans: 0, referring: 1 });
        assert_eq!(site.server.spans(2).await, ["step 1"]);
    });
}

#[test]
fn a_trace_that_is_deleted_during_a_repeated_export_is_created_again() {
    timed(async {
        for wait in [0, 20, 70, 600] {
            // The trace is deleted before the second export writes the document.
            let site = Site::new().await;
            site.other().await.export(&[span(1, 1, None, 0, 50)]).await.ok();
            runtime::clock::sleep(Duration::from_secs(wait) + Duration::from_millis(1)).await;
            let mut gate = site.faults.pause_before("PutItem", 1);
            let deletion = async {
                gate.reached().await;
                delete(&site.other().await).await;
                runtime::clock::sleep(Duration::from_millis(5)).await;
                gate.open();
            };
            let spans = [span(1, 1, None, 0, 50)];
            let (exported, ()) = tokio::join!(site.server.export(&spans), deletion);
            assert_eq!(exported.status, 200);
            check(&site, &["step 1"]).await;
            pack(&site).await;
            check(&site, &["step 1"]).await;
        }
    });
}

#[test]
fn a_trace_that_is_deleted_while_an_older_attempt_is_in_flight_is_created_again() {
    timed(async {
        for wait in [0, 5, 20] {
            // The first attempt has written the mark when another process completes the export, and writes
            // its document after the trace was deleted.
            let site = Site::new().await;
            let spans = [span(1, 1, None, 0, 50)];
            let mut gate = site.faults.pause_before("PutItem", 1);
            let others = async {
                gate.reached().await;
                runtime::clock::sleep(Duration::from_millis(1)).await;
                let other = site.other().await;
                other.export(&spans).await.ok();
                runtime::clock::sleep(Duration::from_secs(wait)).await;
                delete(&other).await;
                gate.open();
            };
            let (exported, ()) = tokio::join!(site.server.export(&spans), others);
            assert_eq!(exported.status, 200);
            check(&site, &["step 1"]).await;
            pack(&site).await;
            check(&site, &["step 1"]).await;
        }
    });
}

#[test]
fn spans_of_a_deleted_trace_do_not_stay_at_another_place() {
    timed(async {
        let site = Site::new().await;
        site.server.export(&[span(1, 1, None, 0, 50)]).await.ok();
        // Another process, which has not cached the trace, writes a mark at a later start time.
        site.other().await.export(&[span(1, 2, Some(1), 7, 9)]).await.ok();
        check(&site, &["step 1", "step 2"]).await;
        delete(&site.other().await).await;
        pack_by(&site, PackingThresholds::default()).await;
        let left = counts(&site).await;
        assert_eq!((left.marks_with_spans, left.spans, left.referring), (0, 0, 0));
    });
}

#[test]
fn an_interrupted_export_is_completed_by_its_repetition() {
    timed(async {
        let exports = [vec![span(1, 1, None, 0, 50)], vec![span(1, 1, None, 0, 50), span(1, 2, Some(1), 1, 5)]];
        for exists in [false, true] {
            let site = Site::new().await;
            if exists {
                site.other().await.export(&exports[0]).await.ok();
            }
            let mut cut = 1;
            loop {
                let copy = site.copy().await;
                copy.faults.cut_off_at(cut);
                let status = copy.server.export(&exports[1]).await.status;
                copy.faults.work_again();
                let later = copy.copy().await;
                pack(&later).await;
                for site in [&copy, &later] {
                    if exists {
                        assert!(spans(&site.server).await.contains("step 1"));
                    }
                    site.other().await.export(&exports[1]).await.ok();
                    check(site, &["step 1", "step 2"]).await;
                    pack(site).await;
                    check(site, &["step 1", "step 2"]).await;
                    assert_eq!(counts(site).await, Counts { marks: 0, marks_with_spans: 0, spans: 0, referring: 0 });
                }
                if status == 200 {
                    break;
                }
                cut += 1;
            }
            assert!(cut > 2, "{cut}");
        }
    });
}

#[test]
fn a_trace_that_was_linked_before_it_arrived_has_its_spans_in_the_mark() {
    timed(async {
        let site = Site::new().await;
        let run = site.server.post("runs/create", json!({ "experiment_id": "0" })).await.ok();
        let run = run["run"]["info"]["run_id"].as_str().unwrap().to_owned();
        site.server.post("traces/link-to-run", json!({ "run_id": run, "trace_ids": [id(1)] })).await.ok();
        site.other().await.export(&[span(1, 1, None, 0, 50)]).await.ok();
        assert_eq!(counts(&site).await, Counts { marks: 0, marks_with_spans: 1, spans: 0, referring: 1 });
        check(&site, &["step 1"]).await;
        assert_eq!(site.server.found(&["0"], &format!("run_id = '{run}'"), "", 10).await, [id(1)]);
        pack(&site).await;
        check(&site, &["step 1"]).await;
    });
}
