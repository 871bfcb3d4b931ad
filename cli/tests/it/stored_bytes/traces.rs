//! Bytes of traces in the table and in the archive, before they are packed, packed, and archived.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use artifact_store::{Archive, ArtifactStore};
use fts_indexer::{Indexer, PackingThresholds};
use key_schema::{Key, rows};
use mlflow_api::Workspace;
use mlflow_api::proto_json::time_text;
use retention::Retention;
use runtime::clock::now_ms;
use table::Item;
use test_site::{ROOT, TestEnvironment, sample_traces};
use trace_blocks::is_mark;

use crate::faults::archiving::memory_archive::MemoryArchive;
use crate::faults::expiry::sent;
use crate::faults::packing::{counts, pass_by, timed};
use crate::faults::write_faults::faulty_write;
use crate::stored_bytes::items::{TotalsByKind, for_each_item, mean};
use crate::stored_bytes::page;

const DAY_MS: i64 = 86_400_000;
/// Age of the traces in days.
const AGE: i64 = 40;
/// Number of traces of the page, and of the comparison in `make test`.
const ALL: u32 = 100_000;
const FEW: u32 = 1_500;

/// Kinds of items, with their descriptions.
const KINDS: [(&str, &str); 6] = [
    ("documents", "documents (`TRACE#`)"),
    ("pointers", "pointers (`TRACE#`)"),
    ("own spans", "spans of single traces (`SPANS#`)"),
    ("marks", "marks (`M#`)"),
    ("blocks", "blocks (`B#`): documents and columns"),
    ("block spans", "spans of blocks (`TS#`)"),
];

/// The mean bytes of a trace by kind of item, and in the archive.
#[derive(Debug)]
struct Measured {
    kinds: BTreeMap<&'static str, f64>,
    archive: f64,
}

impl Measured {
    fn of(&self, kind: &str) -> f64 {
        self.kinds.get(kind).copied().unwrap_or_default()
    }

    fn in_table(&self) -> f64 {
        self.kinds.values().sum()
    }
}

fn kind_of(item: &Item, key: &Key) -> Option<&'static str> {
    Some(match () {
        () if rows::Trace::parse(key).is_some() && entities::TracePointer::of(item).is_some() => "pointers",
        () if rows::Trace::parse(key).is_some() => "documents",
        () if rows::TraceSpans::parse(key).is_some() => "own spans",
        () if is_mark(key) => "marks",
        () if rows::TraceBlock::parse(key).is_some() => "blocks",
        () if rows::BlockSpans::parse(key).is_some() => "block spans",
        () => return None,
    })
}

async fn measure(site: &TestEnvironment, archive: &MemoryArchive, traces: u32) -> Measured {
    let mut totals = TotalsByKind::default();
    for_each_item(site, |key, item| {
        if let Some(kind) = kind_of(item, key) {
            totals.add(kind, item.size());
        }
    })
    .await;
    Measured {
        kinds: totals.0.into_iter().map(|(kind, total)| (kind, mean(total.bytes, traces))).collect(),
        archive: mean(archive.bytes(), traces),
    }
}

/// Packs all traces into blocks of the usual size.
async fn pack(site: &TestEnvironment, archive: &Archive) {
    let packing = PackingThresholds {
        pause: Duration::ZERO,
        min_new_marks: 1,
        max_duration: Duration::from_hours(1),
        ..PackingThresholds::default()
    };
    let indexer = Indexer::new(site.table.clone()).with_packing_thresholds(packing).with_archive(archive.clone());
    while counts(site).await.marks > 0 {
        pass_by(site, &indexer).await;
    }
}

/// Returns the bytes of a trace before packing, packed, and archived.
async fn measured(traces: u32) -> [Measured; 3] {
    let (site, archive) = (TestEnvironment::new().await, MemoryArchive::default());
    let store = tracking::store::Store::new(site.table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let api = faulty_write::api_with_archive(&site.table, archive.open());
    let day = (now_ms() / DAY_MS - AGE) * DAY_MS;
    for number in 0..traces {
        // One trace every 0.8 seconds of a day.
        let time = day + i64::from(number) * (DAY_MS / i64::from(ALL));
        let export = sample_traces::export(number, 0..10, time.unsigned_abs());
        sent(&api, "POST", "/v1/traces?experiment=0", export).await;
        sent(&api, "POST", "/api/3.0/mlflow/traces", sample_traces::start(number, "0", &time_text(time))).await;
    }
    let unpacked = measure(&site, &archive, traces).await;
    pack(&site, &archive.open()).await;
    let packed = measure(&site, &archive, traces).await;
    let retention = Retention::new(site.table.clone(), ArtifactStore::default()).with_archive(archive.open());
    retention.archive_traces(&Workspace::default(), now_ms()).await.unwrap();
    [unpacked, packed, measure(&site, &archive, traces).await]
}

fn section([unpacked, packed, archived]: &[Measured; 3]) -> String {
    let mut section = "\
## Traces

100,000 traces of one day were sent by OTLP and `StartTrace`, packed, and archived 40 days later. Each has ten spans and 5 KB, as in
[capacity-traces.md](capacity-traces.md). The index of the blocks' ends is not included. It has about 2 bytes per trace.

| bytes of a trace | not packed | packed | archived |
|---|---:|---:|---:|
"
    .to_owned();
    let mut row = |name: &str, value: &dyn Fn(&Measured) -> f64| {
        writeln!(section, "| {name} | {:.0} | {:.0} | {:.0} |", value(unpacked), value(packed), value(archived))
            .unwrap();
    };
    for (kind, name) in KINDS {
        row(name, &|measured| measured.of(kind));
    }
    row("**table**", &Measured::in_table);
    row("**archive** (`.archive/` in the bucket)", &|measured| measured.archive);
    section
}

#[test]
fn the_page_says_how_many_bytes_traces_take() {
    // Few traces leave a larger part of the last block empty.
    page::compare(&timed(async { section(&measured(FEW).await) }));
}

#[test]
#[ignore = "sends 100,000 traces; part of `make test-slow`"]
fn a_hundred_thousand_traces_take_as_many_bytes_as_the_page_says() {
    page::check(&timed(async { section(&measured(ALL).await) }));
}
