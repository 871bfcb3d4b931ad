//! Traces that change while they are packed, and packings that are interrupted. No acknowledged span is
//! lost, and no earlier version of a span replaces a later one.

use std::time::Duration;

use embedded_engine::faults::FaultInjector;
use entities::attributes::{MARKED_AT, TO_PACK};
use mlflow_api::TraceId;
use runtime::clock::now_ms;
use serde_json::json;
use table::{Item, Table, number};
use test_site::TABLE;
use tokio::sync::Notify;
use trace_blocks::{TraceKey, TracePartition, read_traces};

use crate::marked_spans::{check, counts, delete, for_few_traces, noise, pack, pack_with, try_pack};
use crate::marks::timed;
use crate::server::{Site, id, info, span};

/// The start time of a trace changes, so the spans in its mark or its block are copied. Meanwhile, a later
/// version of a span is exported and packed.
#[test]
fn a_late_copy_of_spans_does_not_replace_a_later_version() {
    timed(async {
        let (first, mut other) = (span(1, 1, None, 0, 50), span(1, 1, None, 0, 50));
        other["name"] = "step other".into();
        let mut started = info(1, "0");
        started["request_time"] = "2023-11-15T22:13:20.000Z".into();
        for is_packed in [false, true] {
            let site = Site::new().await;
            site.server.export(std::slice::from_ref(&first)).await.ok();
            if is_packed {
                pack(&site).await;
            }
            let mut pauses = 0;
            for operation in ["PutItem", "BatchWriteItem"] {
                for nth in 1.. {
                    let copy = site.copy().await;
                    let mut gate = copy.faults.pause_before(operation, nth);
                    let packing = async {
                        gate.reached().await;
                        copy.other().await.export(std::slice::from_ref(&other)).await.ok();
                        check(&copy, &["step other"]).await;
                        pack(&copy).await;
                        gate.open();
                        std::future::pending::<()>().await;
                    };
                    tokio::select! { _ = copy.server.start(&started) => {}, () = packing => {} }
                    if copy.faults.calls(operation) < nth {
                        break;
                    }
                    check(&copy, &["step other"]).await;
                    pack(&copy).await;
                    check(&copy, &["step other"]).await;
                    pauses += 1;
                }
            }
            assert!(pauses > 2, "{pauses}");
        }
    });
}

/// Adds a mark for a trace, as an interrupted request does.
async fn mark(site: &Site) {
    let trace = TraceId::parse(&id(1)).unwrap();
    let trace = read_traces(&site.table, &[&trace]).await.unwrap().remove(&trace).unwrap();
    let mark = Item::new(TracePartition::of(&trace).mark_key(&TraceKey::of(&trace)));
    let mark = mark.with(MARKED_AT, number(now_ms())).with(TO_PACK, number(1));
    site.table.write_many(vec![mark], &[]).await.unwrap();
}

/// The start time of a packed trace changes while its place is packed again. The packer pauses until the
/// other process is about to write the document, which then waits until the packer is about to delete
/// the first item.
#[test]
fn a_packed_trace_that_moves_while_it_is_packed_again_keeps_its_spans() {
    timed(async {
        let mut started = info(1, "0");
        started["request_time"] = "2023-11-15T22:13:20.000Z".into();
        let site = Site::new().await;
        site.server.export(&[span(1, 1, None, 0, 50)]).await.ok();
        pack(&site).await;
        mark(&site).await;
        let mut pauses = 0;
        for operation in ["Query", "BatchGetItem", "GetItem"] {
            for nth in 1.. {
                let copy = site.copy().await;
                let packer = FaultInjector::new(copy.engine.http_client());
                let (mut reading, mut deleting) =
                    (packer.pause_before(operation, nth), packer.pause_before("DeleteItem", 1));
                let mut writing = copy.faults.pause_before("PutItem", 2);
                let table = Table::new(packer.client(), TABLE);
                let is_packed = Notify::new();
                let packing = async {
                    pack_with(&copy, &table, for_few_traces()).await;
                    is_packed.notify_one();
                };
                let move_trace = async {
                    let is_reading = tokio::select! {
                        () = reading.reached() => true,
                        () = deleting.reached() => false,
                        () = is_packed.notified() => false,
                    };
                    if !is_reading {
                        reading.open();
                        deleting.open();
                        return false;
                    }
                    let mut moving = std::pin::pin!(copy.server.start(&started));
                    tokio::select! { () = writing.reached() => {}, _ = &mut moving => panic!("not paused") }
                    reading.open();
                    tokio::select! { () = deleting.reached() => {}, () = is_packed.notified() => {} }
                    writing.open();
                    moving.await.ok();
                    deleting.open();
                    true
                };
                let ((), is_moved) = tokio::join!(packing, move_trace);
                if !is_moved {
                    break;
                }
                check(&copy, &["step 1"]).await;
                pack(&copy).await;
                check(&copy, &["step 1"]).await;
                pauses += 1;
            }
        }
        assert!(pauses > 5, "{pauses}");
    });
}

#[test]
fn the_latest_version_of_a_span_is_kept_if_packing_is_interrupted() {
    timed(async {
        // In one of the cases, the order of the keys is not that of the exports.
        for names in [["step a", "step b", "step c"], ["step a", "step c", "step b"]] {
            let site = Site::new().await;
            for name in names {
                let mut version = span(1, 1, None, 0, 50);
                version["name"] = name.into();
                site.other().await.export(&[version]).await.ok();
                runtime::clock::sleep(Duration::from_secs(1)).await;
            }
            assert_eq!(counts(&site).await.spans, 2);
            for cut in 1.. {
                let copy = site.copy().await;
                copy.faults.cut_off_at(cut);
                let is_packed = try_pack(&copy, &copy.faulty(), for_few_traces()).await;
                copy.faults.work_again();
                check(&copy, &names[2..]).await;
                pack(&copy).await;
                check(&copy, &names[2..]).await;
                if is_packed {
                    assert!(cut > 8, "{cut}");
                    break;
                }
            }
        }
    });
}

/// While the packer is paused, the start time of the trace changes, or the trace is deleted and exported
/// again.
#[test]
fn a_trace_that_changes_while_it_is_packed_keeps_its_spans() {
    timed(async {
        let mut started = info(1, "0");
        started["request_time"] = "2023-11-15T22:13:20.000Z".into();
        let mut span = span(1, 1, None, 0, 50);
        for (is_large, is_deleted) in [(false, false), (false, true), (true, false), (true, true)] {
            if is_large {
                span["attributes"] = json!([{ "key": "noise", "value": { "stringValue": noise(1, 500) } }]);
            }
            let site = Site::new().await;
            site.server.export(std::slice::from_ref(&span)).await.ok();
            let mut pauses = 0;
            for operation in ["PutItem", "DeleteItem", "BatchWriteItem"] {
                for nth in 1.. {
                    let copy = site.copy().await;
                    let mut gate = copy.faults.pause_before(operation, nth);
                    let change = async {
                        gate.reached().await;
                        let other = copy.other().await;
                        if is_deleted {
                            delete(&other).await;
                            copy.other().await.export(std::slice::from_ref(&span)).await.ok();
                        } else {
                            other.start(&started).await.ok();
                        }
                        gate.open();
                        std::future::pending::<()>().await;
                    };
                    let faulty = copy.faulty();
                    tokio::select! { () = pack_with(&copy, &faulty, for_few_traces()) => {}, () = change => {} }
                    if copy.faults.calls(operation) < nth {
                        break;
                    }
                    check(&copy, &["step 1"]).await;
                    pack(&copy).await;
                    check(&copy, &["step 1"]).await;
                    pauses += 1;
                }
            }
            assert!(pauses > 5, "{pauses}");
        }
    });
}
