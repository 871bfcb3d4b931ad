//! Searches while the packer is running. The results must not depend on whether the packer has run,
//! is running, or never runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use access::Visibility;
use artifact_store::{Archive, ArtifactStore};
use embedded_engine::StreamReader;
use entities::StoredTrace;
use fts_indexer::{Indexer, PackingThresholds, StreamBatch};
use key_schema::Key;
use mlflow_api::Workspace;
use retention::Retention;
use serde_json::{Value, json};
use table::{Item, UsageMeter, number};
use test_site::{TABLE, TestAuthorizer, key_of};
use trace_blocks::{TraceKey, TracePartition, is_mark, read_blocks};

use crate::blocks::{TRACES, all_searches, answers, change, make, same};
use crate::counting_archive::CountingArchive;
use crate::marks::timed;
use crate::server::{ALL, Server, Site, id, span};

/// The packer of a site's traces.
struct Packer {
    indexer: Indexer,
    stream: StreamReader,
}

impl Packer {
    async fn of(site: &Site, most: usize) -> Self {
        let sizes = PackingThresholds {
            min_new_marks: 2,
            min_changed_marks: 2,
            max_traces: most,
            pause: Duration::ZERO,
            ..PackingThresholds::default()
        };
        let indexer =
            Indexer::new(site.table.clone()).with_clock(runtime::clock::now_ms).with_packing_thresholds(sizes);
        Self { indexer, stream: site.engine.stream(TABLE).await.unwrap().unwrap() }
    }

    /// Requests packing of all partitions, and delivers the records of the stream.
    async fn pack(&self, site: &Site) {
        let keys = site.items().await.iter().map(key_of).collect::<Vec<_>>();
        let partitions: BTreeSet<_> = keys.iter().filter_map(TracePartition::of_key).collect();
        for partition in partitions {
            let ask = Item::new(partition.packing_key()).with("to_pack", number(runtime::clock::now_ms()));
            site.table.write_many(vec![ask], &[]).await.unwrap();
        }
        loop {
            let records = self.stream.oldest(1_000).await.unwrap();
            let Some(last) = records.last() else { return };
            let last = last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned();
            let wanted = records.into_iter().filter(fts_indexer::is_for_indexer).collect();
            let answer = self.indexer.handle(StreamBatch { records: wanted }).await;
            assert!(answer.batch_item_failures.is_empty());
            self.stream.forget_through(&last).await.unwrap();
        }
    }
}

async fn blocks(site: &Site) -> usize {
    site.items().await.iter().filter(|item| key_of(item).sk.starts_with("B#")).count()
}

/// Returns the traces that have neither a mark nor a copy in the block for their position in the
/// time order.
async fn lost(site: &Site) -> Vec<String> {
    let items = site.items().await;
    let keys: BTreeSet<_> = items.iter().map(key_of).collect();
    let mut lost = Vec::new();
    for item in items.iter().filter(|item| key_of(item).sk == "T#HEAD") {
        let trace = mlflow_api::TraceId::parse(key_of(item).pk.trim_start_matches("TRACE#")).unwrap();
        let trace = trace_blocks::read_traces(&site.table, &[&trace]).await.unwrap().remove(&trace).unwrap();
        let (partition, place) = (TracePartition::of(&trace), TraceKey::of(&trace));
        let is_here = |key: &Key| {
            TracePartition::of_key(key) == Some(partition) && TraceKey::of_key(key).as_ref() == Some(&place)
        };
        if keys.iter().any(|key| is_mark(key) && is_here(key)) {
            continue;
        }
        let blocks = read_blocks(&site.table, &partition, None, usize::MAX).await.unwrap().0;
        let owner = blocks.iter().find(|block| *block.end() >= place);
        let is_it = |packed: &StoredTrace| *packed == trace || StoredTrace::behind_pointer(packed) == trace;
        let packed = owner.is_some_and(|block| block.traces().unwrap().iter().any(is_it));
        if !packed {
            lost.push(format!("{item} at {}", place.text()));
        }
    }
    lost
}

async fn beside_a_packer(seed: u64, most: usize) {
    let site = Site::new().await;
    make(&site.server, seed).await;
    let twin = site.copy().await;
    let packer = Packer::of(&twin, most).await;
    let rounds = if all_searches() { 3 } else { 2 };
    for round in 0..rounds {
        let expected: Vec<Value> = answers(&site.server, round).await;
        same(&expected, &answers(&twin.server, round).await, "before");
        runtime::clock::sleep(Duration::from_mins(4)).await;
        let ((), found) = tokio::join!(packer.pack(&twin), answers(&twin.server, round));
        assert_eq!(lost(&twin).await, Vec::<String>::new(), "round {round}");
        same(&expected, &found, &format!("beside, round {round}"));
        assert!(blocks(&twin).await > 2);
        same(&expected, &answers(&twin.server, round).await, "after");
        assert_eq!(lost(&twin).await, Vec::<String>::new(), "changed, round {round}");
        change(&site.server, seed + round).await;
        // Some traces are changed while the packer runs again.
        let ((), ()) = tokio::join!(packer.pack(&twin), change(&twin.server, seed + round));
    }
    same(&answers(&site.server, rounds).await, &answers(&twin.server, rounds).await, "changed beside");
}

#[test]
fn a_search_beside_the_packer_finds_what_it_finds_without() {
    timed(beside_a_packer(2, 20));
}

/// Returns the traces with their spans.
async fn whole_traces(server: &Server) -> Vec<Value> {
    let mut all = Vec::new();
    for number in 1..=TRACES {
        let trace = id(number);
        let answer = server.get_at(&format!("{ALL}/get"), &[("trace_id", trace.as_str())]).await;
        all.push(json!([answer.status, answer.body]));
    }
    all
}

/// Archived traces are found and read as those that were never packed, also after they have changed.
async fn archived(seed: u64) {
    let site = Site::new().await;
    make(&site.server, seed).await;
    let twin = site.copy().await;
    let directory = tempfile::tempdir().unwrap();
    let artifacts = ArtifactStore::in_directory(directory.path());
    let server = Server::storing_in(&twin.table, directory.path()).await;
    let mut packer = Packer::of(&twin, 4).await;
    packer.indexer = packer.indexer.with_archive(Archive::new(artifacts.clone()));
    let retention = Retention::new(twin.table.clone(), artifacts);
    let rounds = if all_searches() { 16 } else { 2 };
    for round in 0..rounds {
        runtime::clock::sleep(Duration::from_hours(49)).await;
        packer.pack(&twin).await;
        retention.archive_traces(&Workspace::default(), runtime::clock::now_ms()).await.unwrap();
        let of_blocks = twin.items().await.iter().filter(|item| key_of(item).pk.starts_with("TS#")).count();
        assert_eq!(of_blocks, 0, "round {round}");
        assert!(std::fs::read_dir(directory.path().join(".archive")).unwrap().count() > 2);
        same(&whole_traces(&site.server).await, &whole_traces(&server).await, "archived");
        same(&answers(&site.server, round).await, &answers(&server, round).await, &format!("archived, round {round}"));
        change(&site.server, seed + round).await;
        change(&server, seed + round).await;
        same(&answers(&site.server, round).await, &answers(&server, round).await, &format!("changed, round {round}"));
    }
}

#[test]
fn archived_traces_are_found_as_those_that_are_not_packed() {
    timed(archived(7));
}

/// Returns the number of traces on the first page of a search.
async fn found(server: &Server, filter: &str) -> usize {
    let place = json!({ "mlflow_experiment": { "experiment_id": "0" } });
    let body = json!({ "locations": [place], "filter": filter, "max_results": 100 });
    let page = server.call_at("POST", &format!("{ALL}/search"), body.to_string()).await.ok();
    page["traces"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_search_reads_the_archive_about_once_per_block() {
    timed(async {
        let site = Site::new().await;
        for number in 1..=100 {
            site.server.export(&[span(number, 1, None, 0, 9), span(number, 2, Some(1), 1, 2)]).await.ok();
        }
        runtime::clock::sleep(Duration::from_mins(4)).await;
        Packer::of(&site, 64).await.pack(&site).await;
        let archive = CountingArchive::default();
        let retention = Retention::new(site.table.clone(), ArtifactStore::default()).with_archive(archive.open());
        retention.archive_traces(&Workspace::default(), runtime::clock::now_ms()).await.unwrap();
        assert_eq!((blocks(&site).await, archive.objects()), (2, 2));
        let server = Server::with_archive(&site.table, archive.open()).await;
        let before = archive.reads();
        assert_eq!(found(&server, "").await, 100);
        assert_eq!(archive.reads(), before, "without a condition on spans");
        for (name, traces) in [("step 2", 100), ("step 3", 0)] {
            let before = archive.reads();
            assert_eq!(found(&server, &format!("span.name = '{name}'")).await, traces);
            assert!((1..=5).contains(&(archive.reads() - before)), "{name}: {} reads", archive.reads() - before);
        }
    });
}

/// Returns a site with three packed traces. The spans of the last one are too large for a block.
async fn packed() -> Site {
    let site = Site::new().await;
    for number in 1..=3 {
        let mut root = span(number, 1, None, 0, 9);
        if number == 3 {
            root["attributes"] = json!([{ "key": "text", "value": { "stringValue": "x".repeat(400_000) } }]);
        }
        site.server.export(&[root]).await.ok();
    }
    runtime::clock::sleep(Duration::from_mins(4)).await;
    Packer::of(&site, 20).await.pack(&site).await;
    let items = site.items().await;
    let own = items.iter().filter(|item| key_of(item).pk.starts_with("SPANS#")).count();
    let pointers = items.iter().filter(|item| item["in_block"]["N"] == "1").count();
    assert_eq!((blocks(&site).await, own, pointers), (1, 1, 3));
    site
}

#[test]
fn late_spans_of_a_packed_trace_are_returned_at_once() {
    timed(async {
        let site = packed().await;
        // The spans change nothing in the documents. They are sent to a process that has cached them, and
        // to one that has not.
        site.server.export(&[span(1, 2, Some(1), 1, 2)]).await.ok();
        site.other().await.export(&[span(2, 2, Some(1), 1, 2)]).await.ok();
        site.other().await.export(&[span(3, 2, Some(1), 1, 2)]).await.ok();
        for server in [&site.server, &site.other().await] {
            for number in 1..=3 {
                assert_eq!(server.spans(number).await, ["step 1", "step 2"]);
            }
        }
    });
}

#[test]
fn a_packed_trace_takes_three_requests_and_a_refused_one_takes_one() {
    timed(async {
        let site = packed().await;
        let meter = UsageMeter::default();
        let table = site.table.metered(meter.clone());
        let server = Server::on(&table).await;
        // The first request of a process also reads the retention policies.
        server.spans(1).await;
        for number in 1..=3 {
            meter.take();
            assert_eq!(server.spans(number).await, ["step 1"]);
            assert_eq!(meter.take().requests, 3, "trace {number}");
        }
        let refusing = TestAuthorizer::new(Visibility::nothing(), |_| false);
        let server = Server::guarded(&table, Arc::new(refusing)).await;
        meter.take();
        assert_eq!(server.get_at(&format!("{ALL}/get"), &[("trace_id", id(1).as_str())]).await.status, 403);
        assert_eq!(meter.take().requests, 1);
    });
}

/// Returns the number of items with spans under the keys of traces.
async fn own_items(site: &Site) -> usize {
    site.items().await.iter().filter(|item| key_of(item).pk.starts_with("SPANS#")).count()
}

#[test]
fn spans_that_become_too_large_for_their_block_are_not_missed() {
    timed(async {
        let site = Site::new().await;
        let large = |number: u32, place: u64, bytes: usize| {
            let mut span = span(number, place, (place > 1).then_some(1), 0, 9);
            span["attributes"] = json!([{ "key": "text", "value": { "stringValue": "x".repeat(bytes) } }]);
            span
        };
        let packer = Packer::of(&site, 20).await;
        let traces = 1..=2;
        for number in traces.clone() {
            site.server.export(&[large(number, 1, 300_000)]).await.ok();
        }
        runtime::clock::sleep(Duration::from_mins(4)).await;
        packer.pack(&site).await;
        for number in traces.clone() {
            site.server.export(&[large(number, 2, 100_000)]).await.ok();
        }
        runtime::clock::sleep(Duration::from_mins(4)).await;
        // A reader is paused before each of its requests, and the packer moves the spans meanwhile.
        let mut pauses = 0;
        for operation in ["Query", "GetItem", "BatchGetItem"] {
            for nth in 1.. {
                let copy = site.copy().await;
                let packer = Packer::of(&copy, 20).await;
                let mut gate = copy.faults.pause_before(operation, nth);
                let packing = async {
                    gate.reached().await;
                    packer.pack(&copy).await;
                    assert_eq!(own_items(&copy).await, 4);
                    gate.open();
                    std::future::pending::<()>().await;
                };
                let spans = tokio::select! { spans = copy.server.spans(1) => spans, () = packing => unreachable!() };
                assert_eq!(spans, ["step 1", "step 2"], "{operation} {nth}");
                if copy.faults.calls(operation) < nth {
                    break;
                }
                pauses += 1;
            }
        }
        assert!(pauses > 2, "{pauses}");
        let reads = async {
            for number in traces.cycle().take(60) {
                assert_eq!(site.server.spans(number).await, ["step 1", "step 2"]);
            }
        };
        let ((), ()) = tokio::join!(packer.pack(&site), reads);
        assert_eq!(own_items(&site).await, 4, "all spans are stored with their traces");
    });
}
