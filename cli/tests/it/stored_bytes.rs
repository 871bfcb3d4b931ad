//! Generates `docs/reference/stored-bytes.md`: how many bytes traces take in the table and in the
//! archive, before they are packed, packed, and archived. `make test-slow` measures 100,000 traces, and
//! rewrites the page with `UPDATE_DOCS=1`. `make test` measures fewer traces, and compares the results
//! with the page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use artifact_store::{Archive, ArtifactStore};
use fts_indexer::{Indexer, PackingThresholds};
use key_schema::{Key, rows};
use mlflow_api::Workspace;
use mlflow_api::proto_json::time_text;
use retention::Retention;
use runtime::clock::now_ms;
use table::Item;
use test_site::{ROOT, TABLE, TestEnvironment, key_of, sample_traces};

use crate::faults::archiving::memory_archive::MemoryArchive;
use crate::faults::expiry::sent;
use crate::faults::packing::{counts, pass_by, timed};
use crate::faults::write_faults::faulty_write;

const DAY_MS: i64 = 86_400_000;
/// Age of the traces in days.
const AGE: i64 = 40;
/// Number of traces of the page, and of the comparison in `make test`.
const ALL: u32 = 100_000;
const FEW: u32 = 1_500;
/// Bytes that DynamoDB bills for each item in addition to its content.
const ITEM_OVERHEAD: usize = 100;
/// How much the comparison may differ from the page.
const TOLERANCE: f64 = 0.04;

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
        () if rows::TraceMark::parse(key).is_some() => "marks",
        () if rows::TraceBlock::parse(key).is_some() => "blocks",
        () if rows::BlockSpans::parse(key).is_some() => "block spans",
        () => return None,
    })
}

async fn measure(site: &TestEnvironment, archive: &MemoryArchive, traces: u32) -> Measured {
    let keys: Vec<_> = site.engine.items(TABLE).await.unwrap().iter().map(key_of).collect();
    let mut bytes: BTreeMap<&'static str, usize> = BTreeMap::new();
    for keys in keys.chunks(100) {
        for (key, item) in site.table.get_many(keys).await.unwrap() {
            if let Some(kind) = kind_of(&item, &key) {
                *bytes.entry(kind).or_default() += item.size() + ITEM_OVERHEAD;
            }
        }
    }
    let mean = |bytes: usize| f64::from(u32::try_from(bytes).unwrap()) / f64::from(traces);
    Measured {
        kinds: bytes.into_iter().map(|(kind, bytes)| (kind, mean(bytes))).collect(),
        archive: mean(archive.bytes()),
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

fn page([unpacked, packed, archived]: &[Measured; 3]) -> String {
    let mut page = "\
# Bytes of stored traces

Measured by `make test-slow` against the embedded engine, and generated by `make docs`; do not edit. `make test` compares the page with
fewer traces. 100,000 traces of one day were sent by OTLP and `StartTrace`, packed, and archived 40 days later. Each has ten spans and 5 KB,
as in [capacity-traces.md](capacity-traces.md). Bytes are means per trace. They include the 100 bytes that DynamoDB adds to each item, but
not the index of the blocks' ends, which has about 2 bytes per trace. [cost.md](cost.md) uses these figures.

| bytes of a trace | not packed | packed | archived |
|---|---:|---:|---:|
"
    .to_owned();
    let mut row = |name: &str, value: &dyn Fn(&Measured) -> f64| {
        writeln!(page, "| {name} | {:.0} | {:.0} | {:.0} |", value(unpacked), value(packed), value(archived)).unwrap();
    };
    for (kind, name) in KINDS {
        row(name, &|measured| measured.of(kind));
    }
    row("**table**", &Measured::in_table);
    row("**archive** (`.archive/` in the bucket)", &|measured| measured.archive);
    page
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/stored-bytes.md")
}

/// Returns the figures of a page, in the order of its cells.
fn figures(page: &str) -> Vec<f64> {
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| bytes"));
    rows.flat_map(|row| row.split('|').filter_map(|cell| cell.trim().parse().ok()).collect::<Vec<f64>>()).collect()
}

#[test]
fn the_page_says_how_many_bytes_traces_take() {
    let written = fs::read_to_string(path()).unwrap();
    let (here, there) = (figures(&timed(async { page(&measured(FEW).await) })), figures(&written));
    assert_eq!(here.len(), there.len());
    // Few traces leave a larger part of the last block empty.
    let differs = |(here, there): &(&f64, &f64)| (*here - *there).abs() > TOLERANCE * there.max(400.0);
    let different: Vec<_> = here.iter().zip(&there).filter(differs).collect();
    assert!(different.is_empty(), "measured and written: {different:?}\n{here:?}\n{there:?}");
}

#[test]
#[ignore = "sends 100,000 traces; part of `make test-slow`"]
fn a_hundred_thousand_traces_take_as_many_bytes_as_the_page_says() {
    let measured = timed(async { page(&measured(ALL).await) });
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path(), &measured).unwrap();
    }
    assert_eq!(fs::read_to_string(path()).unwrap(), measured, "run `make docs`");
}
