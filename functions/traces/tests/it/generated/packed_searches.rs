//! Searches of many packed traces. This module creates their blocks directly, in the form in which
//! the stream's consumer creates them.

use std::time::Duration;

use artifact_store::ArtifactStore;
use entities::attributes::{
    ARRIVED, CLIENT_REQUEST, CONTENT, IN_MARK, MARKED_AT, PARTS, REQUEST, RESPONSE, START_TIME, TAGS,
};
use entities::{StoredTrace, client_request_entry};
use fts_indexer::{Indexer, PackingThresholds, StreamBatch};
use key_schema::{Ordinal, WideDigest, rows};
use mlflow_api::{ExperimentId, TraceId, Workspace};
use retention::Retention;
use search::TimeRange;
use search::trace::metrics::{Aggregation, MetricView, MetricsQuery, MetricsRequest};
use serde_json::json;
use table::{ConsumedUnits, Item, Table, UsageMeter, Value, bytes, number, text};
use test_site::ledger::{CostLedger, MeteredProcesses, budget};
use test_site::sample_traces::words;
use trace_blocks::{
    Block, SpansToPack, TraceKey, TracePartition, TraceToPack, in_mark_key, mark_with_spans, pack, read_blocks,
};
use traces::store::Store;

use super::{body, counted, document, export, found, granted, scope, start};

/// Number of traces, one every eight seconds of a day.
const TRACES: u32 = 10_000;
/// Start of the day in ms.
const DAY: i64 = 1_699_920_000_000;
/// Number of traces per block.
const OF_BLOCK: usize = 128;
/// Number of the trace that has a client's request id, and the request id.
pub(crate) const REQUESTED: (u32, &str) = (5_000, "0b54b9c0-7a2f-4f6e-9a53-2f6f0f7c9d11");

fn time(trace: u32) -> i64 {
    DAY + 8_000 * i64::from(trace)
}

/// Returns a copy of a trace with another number.
fn like(document: &Item, number_of: u32) -> StoredTrace {
    let trace = TraceId::new(number_of.into());
    let mut item = Item::new(rows::Trace::key(&trace));
    // The spans of the copies are not in their marks.
    let own = document.0.iter().filter(|(name, _)| !item.0.contains_key(*name) && *name != IN_MARK.name());
    let own: Vec<_> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    item.0.extend(own);
    let seed = u64::from(number_of) * 100;
    let item = item.with(REQUEST, text(words(seed, 20))).with(RESPONSE, text(words(seed + 1, 30)));
    let mut item = item.with(START_TIME, number(time(number_of))).with(MARKED_AT, number(1));
    if let Some(Value::M(tags)) = item.0.get_mut(TAGS.name()).filter(|_| number_of.is_multiple_of(100)) {
        tags.insert("team".to_owned(), text("search"));
    }
    let trace = StoredTrace::of(item).unwrap();
    let (requested, request) = REQUESTED;
    let request = if trace.item().has(CLIENT_REQUEST) {
        // The copied document contains the client request ID of the original, so each copy gets one
        // of its own.
        format!("{number_of:08x}{}", &request[8..])
    } else if number_of == requested {
        request.to_owned()
    } else {
        return trace;
    };
    let entry = client_request_entry(&request, trace.experiment(), trace.id());
    StoredTrace::of(trace.item().clone().with(CLIENT_REQUEST, text(request)).indexed(entry)).unwrap()
}

/// Packs all traces. In addition, writes the documents of the first two traces and of the one with
/// a request id.
async fn fill(bench: &MeteredProcesses<Store>, experiment: ExperimentId) {
    export(&bench.store, experiment, 1, 0..10).await;
    start(&bench.store, experiment, 1, None).await;
    let template = document(&bench.store, 1).await.item().clone();
    let table = service::DomainStore::table(&bench.store);
    // The trace that created the day, and the template of all other traces, are removed.
    for trace in [1_u32, 1_000] {
        let trace = document(&bench.store, trace).await;
        let (partition, place) = (TracePartition::of(&trace), TraceKey::of(&trace));
        let keys = [partition.mark_key(&place), rows::Trace::key(trace.id())].into_iter().chain(in_mark_key(&trace));
        table.write_many(Vec::new(), &keys.collect::<Vec<_>>()).await.unwrap();
    }
    for number_of in [1, 2, REQUESTED.0] {
        table.write_many(vec![like(&template, number_of).item().clone()], &[]).await.unwrap();
    }
    let numbers: Vec<u32> = (1..=TRACES).collect();
    for block in numbers.chunks(OF_BLOCK) {
        let traces = block.iter().map(|number_of| {
            let mut exports = spans::read(spans::ExportFormat::Json, None, &body(*number_of, 0..10)).unwrap();
            let mut spans = exports.pop().unwrap().spans;
            if number_of.is_multiple_of(500) {
                "a needle in the hay".clone_into(&mut spans[3].name);
            }
            let trace = like(&template, *number_of);
            let spans = SpansToPack::of(trace.id(), &spans);
            TraceToPack { trace, spans }
        });
        let traces: Vec<_> = traces.collect();
        let (partition, end) = (TracePartition::of(&traces[0].trace), TraceKey::of(&traces[0].trace));
        let packed = pack(&partition, &end, traces, 1, 1).unwrap();
        table.write_many(packed.spans, &[]).await.unwrap();
        table.write_many(vec![packed.block], &[]).await.unwrap();
    }
}

/// Returns the number of points in the hourly overview of the day.
async fn by_hour(store: &Store, experiment: ExperimentId, metric: &str, aggregations: Vec<Aggregation>) -> usize {
    let asked = MetricsRequest {
        view: MetricView::Traces,
        metric,
        aggregations,
        dimensions: &[],
        filters: &[],
        interval: 3_600,
        times: TimeRange { from: Some(DAY), until: Some(DAY + 86_399_999) },
        max_results: 1_000,
    };
    let experiment = scope(store, access::Target::Experiment(experiment)).await.experiment(experiment).unwrap();
    store.trace_metrics(&[experiment], MetricsQuery::of(asked).unwrap()).await.unwrap().data_points.len()
}

/// Writes a thousand traces, numbered from `first`, with their spans in marks that are old enough to be
/// packed.
pub(crate) async fn put_unpacked(bench: &MeteredProcesses<Indexer>, document: &Item, first: u32) -> TracePartition {
    let mut items = Vec::new();
    for number_of in first..first + 1_000 {
        let trace = like(document, number_of);
        let (partition, place) = (TracePartition::of(&trace), TraceKey::of(&trace));
        let mut exports = spans::read(spans::ExportFormat::Json, None, &body(number_of, 0..10)).unwrap();
        let content = spans::pack(&exports.pop().unwrap().spans, 380 << 10).parts.concat();
        let digest = WideDigest::of_bytes(&content);
        let spans = rows::TraceSpans::key(&trace.experiment(), trace.id(), &digest, &Ordinal(0));
        let spans = Item::new(spans).with(ARRIVED, number(1)).with(PARTS, number(1)).with(CONTENT, bytes(content));
        let mark = Item::new(partition.mark_key(&place)).with(MARKED_AT, number(1));
        let (export, mark) = mark_with_spans(mark, &partition, &place, &spans).unwrap();
        items.extend([trace.item().clone().with(IN_MARK, bytes(export.0.to_be_bytes().to_vec())), mark]);
    }
    bench.table().write_many(items, &[]).await.unwrap();
    TracePartition::of(&like(document, first))
}

pub(crate) async fn packing(ledger: &mut CostLedger) {
    ledger.section("Packing and archiving 1,000 traces (mean per trace)");
    let (bench, document) = packer(None).await;
    // The traces are on two days.
    let partitions = [put_unpacked(&bench, &document, 1).await, put_unpacked(&bench, &document, 10_801).await];
    let mean = budget([4.0, 5.0, 3.0], [4.0, 5.0, 3.0]);
    ledger
        .mean("pack a trace", mean, &bench, partitions, 1_000, async |indexer, partition, call| {
            // All traces are packed in the first call.
            if call == 0 {
                pack_now(indexer, partition).await;
            }
        })
        .await;
    for partition in partitions {
        check_all_packed(&bench, &partition).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let artifacts = ArtifactStore::in_directory(directory.path());
    let archivers = MeteredProcesses::new(bench.table().clone(), move |table| Retention::new(table, artifacts.clone()));
    let mean = budget([0.2, 1.0, 0.4], [0.2, 1.0, 0.4]);
    ledger
        .mean("archive a trace", mean, &archivers, partitions, 1_000, async |retention, partition, call| {
            // All traces of the day, and no others, are archived in the first call.
            if call == 0 {
                let now = (partition.day + 32) * 86_400_000;
                retention.archive_traces(&Workspace::default(), now).await.unwrap();
            }
        })
        .await;
}

/// Returns an indexer that packs everything in one pass. Even on a slow machine, the pass ends
/// before its lock expires.
fn indexer(table: Table) -> Indexer {
    let at_once = PackingThresholds {
        pause: Duration::ZERO,
        max_duration: Duration::from_hours(1),
        ..PackingThresholds::default()
    };
    Indexer::new(table).with_packing_thresholds(at_once)
}

/// Creates a table with one trace, and a packer for it. Also returns the trace's document.
pub(crate) async fn packer(request: Option<&str>) -> (MeteredProcesses<Indexer>, Item) {
    let (store, experiment) = super::bench().await;
    export(&store.store, experiment, 1, 0..10).await;
    start(&store.store, experiment, 1, request).await;
    let document = document(&store.store, 1).await.item().clone();
    (MeteredProcesses::new(store.table().clone(), indexer), document)
}

/// Delivers a stream record that requests a partition to be packed.
pub(crate) async fn pack_now(indexer: &Indexer, partition: &TracePartition) {
    let key = partition.packing_key();
    let record = json!({
        "eventName": "INSERT",
        "dynamodb": {
            "Keys": { "PK": { "S": key.pk }, "SK": { "S": key.sk } },
            "NewImage": { "to_pack": { "N": "1" } },
            "SequenceNumber": "1",
        },
    });
    assert!(indexer.handle(StreamBatch { records: vec![record] }).await.batch_item_failures.is_empty());
}

pub(crate) async fn check_all_packed(bench: &MeteredProcesses<Indexer>, partition: &TracePartition) {
    let (blocks, _) = read_blocks(bench.table(), partition, None, usize::MAX).await.unwrap();
    assert_eq!(blocks.iter().map(Block::count).sum::<usize>(), 1_000);
}

/// Returns the cost of packing a thousand traces, with or without ids of clients' requests.
pub(crate) async fn cost_of_packing(request: Option<&str>) -> ConsumedUnits {
    let (bench, document) = packer(request).await;
    let partition = put_unpacked(&bench, &document, 1).await;
    let meter = UsageMeter::default();
    pack_now(&indexer(bench.table().metered(meter.clone())), &partition).await;
    check_all_packed(&bench, &partition).await;
    meter.take()
}

pub(crate) async fn searches(ledger: &mut CostLedger) {
    ledger.section("Searching 10,000 traces of one day that are packed");
    let (bench, experiment) = super::bench().await;
    fill(&bench, experiment).await;
    let bench = &bench;
    let latest = budget([4.0, 0.0, 60.0], [4.0, 0.0, 60.0]);
    ledger
        .row("the latest 100", latest, bench, [(), ()], async |store, ()| {
            assert_eq!(found(store, experiment, "", &[]).await, 100);
        })
        .await;
    let range = budget([10.0, 0.0, 60.0], [10.0, 0.0, 60.0]);
    ledger
        .row("10 by a tag, in a time range of 1,000 traces", range, bench, [(), ()], async |store, ()| {
            let (from, until) = (time(4_000), time(5_000));
            let filter = format!("tag.team = 'search' AND timestamp_ms > {from} AND timestamp_ms <= {until}");
            assert_eq!(found(store, experiment, &filter, &[]).await, 10);
        })
        .await;
    let one = budget([5.0, 0.0, 8.0], [5.0, 0.0, 8.0]);
    ledger
        .row("one by its client request ID", one, bench, [(), ()], async |store, ()| {
            let filter = format!("client_request_id = '{}'", REQUESTED.1);
            assert_eq!(found(store, experiment, &filter, &[]).await, 1);
        })
        .await;
    let texts = budget([20.0, 0.0, 2_000.0], [20.0, 0.0, 2_000.0]);
    ledger
        .row("20 by a text in their spans", texts, bench, [(), ()], async |store, ()| {
            assert_eq!(found(store, experiment, "trace.text LIKE '%needle in%'", &[]).await, 20);
        })
        .await;
    let all = budget([20.0, 0.0, 600.0], [20.0, 0.0, 600.0]);
    ledger
        .row("the slowest 100", all, bench, [(), ()], async |store, ()| {
            assert_eq!(found(store, experiment, "", &["execution_time DESC".to_owned()]).await, 100);
        })
        .await;
    let figures = budget([8.0, 0.0, 600.0], [8.0, 0.0, 600.0]);
    ledger
        .row("median and 99th percentile of their durations by hour", figures, bench, [(), ()], async |store, ()| {
            let percentiles = vec![Aggregation::Percentile(50.0), Aggregation::Percentile(99.0)];
            assert_eq!(by_hour(store, experiment, "latency", percentiles).await, 23);
        })
        .await;
    ledger
        .row("counting their spans", texts, bench, [(), ()], async |store, ()| {
            assert!(counted(store, experiment, MetricView::Spans, "span_count").await > 99_999.5);
        })
        .await;
    ledger
        .row("set a tag of one", budget([3.0, 3.0, 1.0], [3.0, 3.0, 1.0]), bench, [1_u32, 2], async |store, number| {
            let trace = granted(store, *number).await;
            store.trace_set_tag(&trace, "team", "search").await.unwrap();
        })
        .await;
}
