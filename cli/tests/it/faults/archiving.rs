//! Archiving of old traces, with a fault at each request to the table and to the archive, and with
//! concurrent changes. Clients find the same traces at any time, nothing is lost, and no object of
//! the archive remains that no block refers to.

pub(crate) mod memory_archive;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use artifact_store::{Archive, ArtifactStore};
use entities::archived_objects::DROPPED_OBJECT_RETENTION_MS;
use entities::layout::{CURRENT_LAYOUT, FIRST_LAYOUT};
use fts_indexer::{Indexer, PackingThresholds, StreamBatch};
use futures::future::{Either, join, select};
use key_schema::{Key, rows};
use mlflow_api::{ArchiveObject, TraceId, Workspace};
use retention::{ArchiveDifferences, Retention};
use runtime::clock::now_ms;
use serde_json::{Value, json};
use spans::Span;
use table::Table;
use test_site::{BACKGROUND_FAULTS, ROOT, TestClient, TestEnvironment, key_of, tried};
use trace_blocks::{Block, TracePartition, objects, read_block_spans, read_blocks};

use self::memory_archive::{ArchiveFault, MemoryArchive};
use crate::faults::expiry::{id, make, sent};
use crate::faults::packing::{counts, indexer_with_archive, keys, pass_by, pass_with_archive, timed};
use crate::faults::removal::Silent;
use crate::faults::trace_invariants;
use crate::faults::write_faults::{client_view, faulty_write};

const DAY: i64 = 86_400_000;
/// Old traces, as numbers and ages in days: five traces of one day, and one trace of the day before.
const OLD: [(u32, i64); 6] = [(1, 200), (2, 200), (3, 200), (4, 200), (5, 200), (6, 201)];
/// A trace that is not old.
const NEW: u32 = 7;

/// The spans of each trace in a block.
type PackedSpans = BTreeMap<TraceId, Vec<Span>>;

fn retention(table: &Table, archive: &MemoryArchive) -> Retention {
    Retention::new(table.clone(), ArtifactStore::default()).with_archive(archive.open())
}

/// Archives old traces once, and sweeps.
async fn archive(table: &Table, archive: &MemoryArchive) -> Result<(), String> {
    let retention = retention(table, archive);
    let archived = retention.archive_traces(&Workspace::default(), now_ms()).await;
    let swept = retention.sweep_archive(now_ms()).await;
    archived.and(swept).map_err(|error| format!("{error:?}"))
}

async fn blocks(site: &TestEnvironment) -> Vec<Block> {
    let partitions: BTreeSet<_> = keys(site).await.iter().filter_map(TracePartition::of_key).collect();
    let mut blocks = Vec::new();
    for partition in partitions {
        blocks.extend(read_blocks(&site.table, &partition, None, usize::MAX).await.unwrap().0);
    }
    blocks
}

/// Returns the spans in all blocks. Fails if spans that a block refers to are missing.
async fn packed_spans(site: &TestEnvironment, archive: &MemoryArchive) -> Result<PackedSpans, String> {
    let mut packed = PackedSpans::new();
    for block in blocks(site).await {
        let traces = block.traces().map_err(|error| error.to_string())?;
        let wanted: Vec<_> = traces.iter().map(|trace| (&block, trace.id())).collect();
        let found: HashMap<_, _> =
            read_block_spans(&site.table, &archive.open(), &wanted).await.map_err(|failure| format!("{failure:?}"))?;
        for trace in &traces {
            let spans = found.get(trace.id()).ok_or_else(|| format!("the block lacks the spans of {}", trace.id()))?;
            packed.insert(trace.id().clone(), spans.clone());
        }
    }
    Ok(packed)
}

/// Returns the objects that blocks refer to.
async fn referenced(site: &TestEnvironment) -> BTreeSet<ArchiveObject> {
    blocks(site).await.iter().flat_map(|block| objects(block.archived())).collect()
}

/// Returns the number of items with spans of old blocks.
async fn old_items(site: &TestEnvironment) -> usize {
    let today = now_ms().div_euclid(DAY);
    let keys = keys(site).await;
    keys.iter().filter_map(rows::BlockSpans::parse).filter(|row| row.day.0 < today - 100).count()
}

async fn rows_of_archive(site: &TestEnvironment) -> usize {
    keys(site).await.iter().filter(|key| key.pk == "ARCHIVED").count()
}

/// A site with old traces in blocks of two, one of which has changed since it was packed, and one new
/// trace.
struct Ground {
    site: TestEnvironment,
    experiment: String,
    /// What clients see, apart from tags that the tests set.
    seen: Value,
    spans: PackedSpans,
}

impl Ground {
    async fn new() -> Self {
        Self::of_layout(CURRENT_LAYOUT).await
    }

    /// Returns a site whose traces were packed with this layout of the table.
    async fn of_layout(layout: i64) -> Self {
        let site = TestEnvironment::new().await;
        let store = tracking::store::Store::new(site.table.clone(), ROOT);
        store.experiment_create_default(&Workspace::default()).await.unwrap();
        let api = faulty_write::api_in_layout(&site.table, layout);
        let created = api.post("experiments/create", json!({ "name": "e" })).await.ok();
        let experiment = created["experiment_id"].as_str().unwrap().to_owned();
        let now = now_ms();
        for (number, days) in OLD {
            make(&api, &experiment, number, now - days * DAY + i64::from(number)).await;
        }
        make(&api, &experiment, NEW, now).await;
        let archive = MemoryArchive::default();
        pass_by(&site, &indexer_with_archive(&site.table, &archive.open()).with_layout(layout)).await;
        let counted = counts(&site).await;
        assert!(counted.marks == 0 && counted.blocks == 5, "{counted:?}");
        tag(&api, 3, "changed").await;
        runtime::clock::sleep(Duration::from_mins(15)).await;
        let seen = view(&site, &archive).await.unwrap();
        let spans = packed_spans(&site, &archive).await.unwrap();
        assert_eq!(spans.len(), OLD.len() + 1);
        Self { site, experiment, seen, spans }
    }

    /// Checks that clients see what they saw at the beginning, and that all spans can be read from
    /// blocks.
    async fn check(&self, site: &TestEnvironment, archive: &MemoryArchive) -> Result<(), String> {
        let found = view(site, archive).await?;
        if found != self.seen {
            return Err(format!("clients see {found}, and not {}", self.seen));
        }
        trace_invariants::check_with_archive(site, &archive.open()).await?;
        if packed_spans(site, archive).await? == self.spans { Ok(()) } else { Err("spans have changed".to_owned()) }
    }

    /// Archives again after an interruption, and checks the final state.
    async fn ends(&self, site: &TestEnvironment, archive: &MemoryArchive) -> Result<(), String> {
        self.check(site, archive).await?;
        settle(site, archive).await?;
        self.check(site, archive).await
    }
}

/// Lets time pass, packs, archives and sweeps until nothing is left to do, and checks that all old
/// spans are archived and that no other objects are left.
async fn settle(site: &TestEnvironment, archive: &MemoryArchive) -> Result<(), String> {
    for _ in 0..2 {
        runtime::clock::sleep(Duration::from_hours(2)).await;
        self::archive(&site.table, archive).await?;
        pass_with_archive(site, &archive.open()).await;
    }
    self::archive(&site.table, archive).await?;
    runtime::clock::sleep(Duration::from_millis(DROPPED_OBJECT_RETENTION_MS.unsigned_abs() + 1_000)).await;
    self::archive(&site.table, archive).await?;
    let (old, rows) = (old_items(site).await, rows_of_archive(site).await);
    if old > 0 || rows > 0 {
        return Err(format!("{old} items with old spans and {rows} rows of the archive are left"));
    }
    let differences = retention(&site.table, archive).check_archive(&[Workspace::default()]).await.unwrap();
    if differences != ArchiveDifferences::default() {
        return Err(format!("{differences:?}"));
    }
    let (stored, referenced) = (archive.objects(), referenced(site).await);
    if stored == referenced { Ok(()) } else { Err(format!("stored: {stored:?}, referenced: {referenced:?}")) }
}

async fn view(site: &TestEnvironment, archive: &MemoryArchive) -> Result<Value, String> {
    client_view::of(&faulty_write::api_with_archive(&site.table, archive.open()), "/traces").await
}

async fn tag(api: &TestClient, number: u32, value: &str) {
    let tags = format!("/api/3.0/mlflow/traces/{}/tags", id(number));
    sent(api, "PATCH", &tags, json!({ "key": "k", "value": value })).await;
}

async fn delete(api: &TestClient, experiment: &str, number: u32) {
    let body = json!({ "experiment_id": experiment, "request_ids": [id(number)] });
    sent(api, "POST", "/api/3.0/mlflow/traces/delete-traces", body).await;
}

#[test]
fn archived_traces_are_found_as_before() {
    timed(async {
        let ground = Ground::new().await;
        let (site, objects) = (&ground.site, MemoryArchive::default());
        archive(&site.table, &objects).await.unwrap();
        ground.check(site, &objects).await.unwrap();
        assert_eq!((old_items(site).await, rows_of_archive(site).await), (0, 0));
        assert_eq!((objects.objects().len(), objects.objects()), (4, referenced(site).await));
        // An archived day is skipped.
        site.faults.keep_order();
        archive(&site.faulty(), &objects).await.unwrap();
        let requests = site.faults.order();
        let reads = requests.iter().all(|request| matches!(request.as_str(), "BatchGetItem" | "GetItem" | "Query"));
        assert!(reads && requests.len() <= 9, "{requests:?}");
        // A change that does not concern spans neither reads nor writes objects.
        let calls = objects.calls();
        let api = faulty_write::api_with_archive(&site.table, objects.open());
        tag(&api, 4, "changed").await;
        pass_with_archive(site, &objects.open()).await;
        assert_eq!((counts(site).await.marks, objects.calls()), (0, calls));
        settle(site, &objects).await.unwrap();
        let after = view(site, &objects).await.unwrap();
        assert_eq!(after["spans"], ground.seen["spans"]);
    });
}

#[test]
fn archiving_survives_a_fault_at_each_request_to_the_table() {
    timed(async { Box::pin(survives_faults(&Ground::new().await)).await });
}

/// Traces that were packed by an earlier version are also stored outside of their blocks. When they
/// are archived, these copies are deleted.
#[test]
fn archiving_releases_traces_of_an_earlier_layout_despite_faults() {
    timed(async {
        let ground = Ground::of_layout(FIRST_LAYOUT).await;
        let (site, objects) = (ground.site.copy(), MemoryArchive::default());
        assert!(blocks(&site).await.iter().all(|block| !block.is_released()));
        settle(&site, &objects).await.unwrap();
        let own = keys(&site).await.iter().filter_map(rows::TraceSpans::parse).count();
        assert_eq!((own, blocks(&site).await.iter().all(Block::is_released)), (0, true));
        Box::pin(survives_faults(&ground)).await;
    });
}

/// Spans that arrive after a trace was packed are not in its block, and must not be deleted with the
/// copies of those that are.
#[test]
fn late_spans_of_a_trace_of_an_earlier_layout_stay() {
    timed(async {
        let ground = Ground::of_layout(FIRST_LAYOUT).await;
        let (site, objects) = (&ground.site, MemoryArchive::default());
        let began = ((now_ms() - 200 * DAY) * 1_000_000).to_string();
        let span = json!({
            "traceId": &id(4)[3..], "spanId": format!("{:016x}", 9), "parentSpanId": format!("{:016x}", 1),
            "name": "late", "startTimeUnixNano": began, "endTimeUnixNano": began,
        });
        let export = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [span] }] }] });
        let api = faulty_write::api_with_archive(&site.table, objects.open());
        sent(&api, "POST", &format!("/v1/traces?experiment={}", ground.experiment), export).await;
        let seen = view(site, &objects).await.unwrap();
        assert!(seen.to_string().contains("late"));
        archive(&site.table, &objects).await.unwrap();
        assert_eq!(view(site, &objects).await.unwrap(), seen);
        settle(site, &objects).await.unwrap();
        assert_eq!(view(site, &objects).await.unwrap(), seen);
    });
}

async fn survives_faults(ground: &Ground) {
    let (clean, objects) = (ground.site.copy(), MemoryArchive::default());
    clean.faults.keep_order();
    archive(&clean.faulty(), &objects).await.unwrap();
    let requests = clean.faults.order();
    assert!(requests.len() > 30, "{requests:?}");
    for (nth, operation) in (1..).zip(&requests) {
        for (trouble, calls) in tried(nth, operation, &BACKGROUND_FAULTS) {
            let course = format!("{trouble:?} at {nth} for {calls}");
            let (site, objects) = (ground.site.copy(), MemoryArchive::default());
            site.faults.trouble_at(trouble, nth, calls);
            let outcome = archive(&site.impatient(), &objects).await;
            site.faults.work_again();
            if calls == 1 {
                outcome.unwrap_or_else(|error| panic!("{course}: a single fault has to be tolerated, but {error}"));
            }
            ground.ends(&site, &objects).await.unwrap_or_else(|what| panic!("{course}: {what}"));
        }
    }
}

#[test]
fn archiving_survives_a_fault_at_each_request_to_the_archive() {
    timed(async {
        let ground = Ground::new().await;
        let objects = MemoryArchive::default();
        archive(&ground.site.copy().table, &objects).await.unwrap();
        assert!(objects.calls() >= 4);
        for nth in 1..=objects.calls() {
            for fault in [ArchiveFault::Refused, ArchiveFault::AnswerLost] {
                for calls in [1, usize::MAX] {
                    let course = format!("{fault:?} at {nth} for {calls}");
                    let (site, objects) = (ground.site.copy(), MemoryArchive::default());
                    objects.fail(fault, nth, calls);
                    archive(&site.table, &objects).await.expect_err(&course);
                    objects.work_again();
                    ground.ends(&site, &objects).await.unwrap_or_else(|what| panic!("{course}: {what}"));
                }
            }
        }
    });
}

#[test]
fn two_archivers_do_not_disturb_each_other() {
    timed(async {
        let ground = Ground::new().await;
        let (site, objects) = (&ground.site, MemoryArchive::default());
        let (one, other) = Box::pin(join(archive(&site.table, &objects), archive(&site.table, &objects))).await;
        one.and(other).unwrap();
        ground.ends(site, &objects).await.unwrap();
    });
}

/// Pauses the archiver before each write, and meanwhile does something else.
async fn meanwhile<F: Future<Output = ()>>(
    ground: &Ground,
    operation: &str,
    change: impl Fn(TestEnvironment, MemoryArchive) -> F,
    check: impl AsyncFn(&TestEnvironment, &MemoryArchive, &str),
) {
    for nth in 1.. {
        let (site, objects) = (ground.site.copy(), MemoryArchive::default());
        let mut gate = site.faults.pause_before(operation, nth);
        let table = site.faulty();
        let mut archiving = Box::pin(archive(&table, &objects));
        match select(Box::pin(gate.reached()), &mut archiving).await {
            Either::Left(_) => {}
            Either::Right(_) => {
                assert!(nth > 2, "{operation}");
                return;
            }
        }
        change(site.clone(), objects.clone()).await;
        gate.open();
        // The archiver may find that the block has changed.
        let _ = archiving.await;
        check(&site, &objects, &format!("{operation} {nth}")).await;
    }
}

#[test]
fn traces_may_be_deleted_and_packed_while_they_are_archived() {
    timed(async {
        let ground = Ground::new().await;
        for operation in ["PutItem", "UpdateItem", "BatchWriteItem"] {
            let change = |site: TestEnvironment, objects: MemoryArchive| {
                let experiment = ground.experiment.clone();
                async move {
                    let api = faulty_write::api_with_archive(&site.table, objects.open());
                    delete(&api, &experiment, 2).await;
                    delete(&api, &experiment, 6).await;
                    // By then, the lock of the archiver has expired.
                    pass_with_archive(&site, &objects.open()).await;
                    pass_with_archive(&site, &objects.open()).await;
                }
            };
            meanwhile(&ground, operation, change, async |site, objects, course| {
                let left = |found: &PackedSpans| found.keys().map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
                settle(site, objects).await.unwrap_or_else(|what| panic!("{course}: {what}"));
                let found = packed_spans(site, objects).await.unwrap_or_else(|what| panic!("{course}: {what}"));
                let expected: Vec<_> = [1, 3, 4, 5, 7].map(id).into();
                assert_eq!(left(&found), expected, "{course}");
                assert!(found.iter().all(|(id, spans)| ground.spans.get(id) == Some(spans)), "{course}");
            })
            .await;
        }
    });
}

#[test]
fn an_experiment_may_be_removed_while_its_traces_are_archived() {
    timed(async {
        let ground = Ground::new().await;
        let change = |site: TestEnvironment, _: MemoryArchive| {
            let experiment = ground.experiment.clone();
            async move {
                let api = faulty_write::api(&site.table);
                api.post("experiments/delete", json!({ "experiment_id": experiment })).await.ok();
                let retention = Retention::new(site.table.clone(), ArtifactStore::default()).leaving_artifacts(true);
                // The lock of the archiver expires meanwhile.
                let found = retention.deleted(&Workspace::default(), None).await.unwrap();
                retention.remove(&Workspace::default(), &found, &Silent).await.unwrap();
            }
        };
        for operation in ["PutItem", "UpdateItem", "BatchWriteItem"] {
            meanwhile(&ground, operation, change, async |site, objects, course| {
                settle(site, objects).await.unwrap_or_else(|what| panic!("{course}: {what}"));
                assert!(objects.objects().is_empty(), "{course}");
                // The stream delivers the archiver's request to pack a partition that is gone.
                for request in keys(site).await.iter().filter(|key| rows::Packing::parse(key).is_some()) {
                    pack(&indexer_with_archive(&site.table, &objects.open()), request).await;
                }
                let left: Vec<_> = keys(site).await.into_iter().filter(|key| key.pk.starts_with('T')).collect();
                assert!(left.is_empty(), "{course}: {left:?}");
            })
            .await;
        }
    });
}

/// Archives everything, and returns the site with the archive.
async fn archived(ground: &Ground) -> (TestEnvironment, MemoryArchive) {
    let (site, objects) = (ground.site.copy(), MemoryArchive::default());
    archive(&site.table, &objects).await.unwrap();
    (site, objects)
}

#[test]
fn a_restored_table_finds_its_objects() {
    timed(async {
        let ground = Ground::new().await;
        let (site, objects) = archived(&ground).await;
        let restored = site.copy();
        let api = faulty_write::api_with_archive(&site.table, objects.open());
        for (number, _) in OLD {
            delete(&api, &ground.experiment, number).await;
        }
        pass_with_archive(&site, &objects.open()).await;
        assert!(referenced(&site).await.is_empty());
        // A table can be restored to any point of the last 35 days.
        runtime::clock::sleep(Duration::from_hours(35 * 24)).await;
        archive(&site.table, &objects).await.unwrap();
        assert_eq!(packed_spans(&restored, &objects).await.unwrap(), ground.spans);
        runtime::clock::sleep(Duration::from_hours(2 * 24)).await;
        archive(&site.table, &objects).await.unwrap();
        assert_eq!(objects.objects(), referenced(&site).await);
        assert!(packed_spans(&restored, &objects).await.is_err());
    });
}

#[test]
fn a_missing_object_is_an_error_for_its_spans_only() {
    timed(async {
        let ground = Ground::new().await;
        let (site, objects) = archived(&ground).await;
        let lost = blocks(&site)
            .await
            .into_iter()
            .find(|block| block.traces().unwrap().iter().any(|trace| trace.id().as_str() == id(1)));
        let lost = lost.unwrap();
        for damage in [MemoryArchive::lose, MemoryArchive::damage] {
            let objects = objects.copy();
            for object in trace_blocks::objects(lost.archived()) {
                damage(&objects, object);
            }
            let read = async |number: u32| {
                let (blocks, trace) = (blocks(&site).await, TraceId::parse(&id(number)).unwrap());
                let block = blocks.iter().find(|block| block.traces().unwrap().iter().any(|of| *of.id() == trace));
                read_block_spans(&site.table, &objects.open(), &[(block.unwrap(), &trace)]).await
            };
            let message = mlflow_api::Error::from(read(1).await.unwrap_err()).message;
            let expected = "cannot be read, because an object of the archive is missing or damaged.";
            assert!(message.contains(&id(1)) && message.ends_with(expected), "{message}");
            read(6).await.unwrap();
            // Lists, and changes of the traces, do not need the spans.
            let api = faulty_write::api_with_archive(&site.table, objects.open());
            tag(&api, 1, "still").await;
            let asked = json!({ "locations": [{ "mlflow_experiment": { "experiment_id": ground.experiment } }] });
            let found = sent(&api, "POST", "/api/3.0/mlflow/traces/search", asked).await;
            assert_eq!(found["traces"].as_array().unwrap().len(), OLD.len() + 1);
        }
    });
}

#[test]
fn missing_and_orphaned_objects_are_found() {
    timed(async {
        let ground = Ground::new().await;
        let (site, objects) = archived(&ground).await;
        let names = [Workspace::default()];
        let check = async || retention(&site.table, &objects).check_archive(&names).await.unwrap();
        assert_eq!(check().await, ArchiveDifferences::default());
        let (orphan, lost) = (Archive::new_object(), objects.objects().pop_first().unwrap());
        objects.open().write(orphan, "x".into()).await.unwrap();
        objects.lose(lost);
        let found = check().await;
        assert_eq!(found.orphaned, BTreeSet::from([orphan]));
        assert_eq!(found.missing.keys().copied().collect::<Vec<_>>(), [lost]);
    });
}

/// Delivers a request of the archiver to pack a partition.
async fn pack(indexer: &Indexer, request: &Key) {
    let record = json!({ "eventName": "MODIFY", "dynamodb": {
        "SequenceNumber": "1", "Keys": { "PK": { "S": request.pk }, "SK": { "S": request.sk } },
        "NewImage": { "to_pack": { "N": "1" }, "all": { "N": "1" } },
    } });
    assert!(indexer.handle(StreamBatch { records: vec![record] }).await.batch_item_failures.is_empty());
}

/// Traces that are too few to be packed are packed when their day is archived.
#[test]
fn few_traces_are_packed_on_request() {
    timed(async {
        let ground = Ground::new().await;
        let (site, objects) = (&ground.site, MemoryArchive::default());
        let key = |site: &TestEnvironment| {
            let engine = site.engine.clone();
            async move {
                let items = engine.items(test_site::TABLE).await.unwrap();
                let asks = items.into_iter().filter(|item| item.get("all").is_some()).map(|item| key_of(&item));
                asks.collect::<Vec<_>>()
            }
        };
        assert!(key(site).await.is_empty());
        archive(&site.table, &objects).await.unwrap();
        let asked = key(site).await;
        assert_eq!(asked.len(), 1, "the partition with a changed trace");
        let packing =
            indexer_with_archive(&site.table, &objects.open()).with_packing_thresholds(PackingThresholds::default());
        pack(&packing, &asked[0]).await;
        assert_eq!(counts(site).await.marks, 0);
        ground.ends(site, &objects).await.unwrap();
    });
}
