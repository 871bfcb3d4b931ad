//! Packed traces are restored unchanged, and arbitrary bytes are not read as traces.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use artifact_store::Archive;
use std::collections::{BTreeMap, HashMap};

use embedded_engine::Engine;
use entities::StoredTrace;
use entities::attributes::{Attribute, BLOCK_SPANS, Bytes, CORE, COUNT, HEADS, NEWEST};
use key_schema::rows;
use mlflow_api::{ExperimentId, TraceId};
use proptest::prelude::*;
use spans::Span;
use table::{Condition, Item, Map, Table, bytes, bytes_set, map, number, text};
use trace_blocks::{
    Block, SpansToPack, TraceKey, TracePartition, TraceToPack, pack, read_block_spans, read_blocks, read_spans_to_pack,
    room,
};

const PARTITION: TracePartition = TracePartition { experiment: ExperimentId::DEFAULT, day: 0, shard: 0 };

fn texts(entries: &HashMap<String, String>) -> Map {
    entries.iter().map(|(key, value)| (entities::entry_name(key).into_owned(), text(value))).collect()
}

fn document(id: &str, time: i64) -> Item {
    Item::new(rows::Trace::key(&TraceId::parse(id).unwrap()))
        .with("experiment", text("0"))
        .with("start_time", number(time))
        .with("state", text("OK"))
        .with("marked", number(time))
        .with("edits", number(7))
        .with("tags", map(Map::new()))
        .with("metadata", map(Map::new()))
        .with("assessments", map(Map::new()))
}

fn span(name: &str) -> Span {
    Span { name: name.to_owned(), trace_id: vec![1; 16], span_id: vec![2; 8], ..Span::default() }
}

/// Returns documents of traces with different IDs, all from one day.
fn documents() -> impl Strategy<Value = Vec<StoredTrace>> {
    let entries = || prop::collection::hash_map("(|mlflow.traceName|mlflow.trace.session|.{0,5})", ".{0,30}", 0..4);
    let state = prop::sample::select(vec!["OK", "ERROR", "IN_PROGRESS", "STATE_UNSPECIFIED"]);
    let rest = (entries(), entries(), state, any::<Option<i64>>(), any::<Option<[u8; 9]>>());
    prop::collection::btree_map("[a-z0-9_-]{1,40}", (0_i64..50, rest), 1..40).prop_map(|traces| {
        let traces = traces.into_iter().map(|(id, (time, (tags, metadata, state, duration, run)))| {
            let mut item = document(&format!("t{id}"), time)
                .with("state", text(state))
                .with("tags", map(texts(&tags)))
                .with("metadata", map(texts(&metadata)));
            if let Some(duration) = duration {
                item = item.with("duration", number(duration));
            }
            if let Some(run) = run {
                item = item.with("nc", bytes(run.to_vec())).with("prompts", bytes_set([b"p/1".to_vec()]));
            }
            StoredTrace::of(item).unwrap()
        });
        traces.collect()
    })
}

fn packed(traces: &[StoredTrace], spans: impl Fn(usize) -> SpansToPack) -> (Item, Vec<Item>) {
    let end = traces.iter().map(TraceKey::of).max().unwrap();
    let to_pack = traces.iter().enumerate().map(|(at, trace)| TraceToPack { trace: trace.clone(), spans: spans(at) });
    let packed = pack(&PARTITION, &end, to_pack.collect(), 5, 9).unwrap();
    (packed.block, packed.spans)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn documents_come_back(traces in documents()) {
        let (item, spans) = packed(&traces, |_| SpansToPack::Elsewhere);
        prop_assert!(spans.is_empty());
        let block = Block::of(item).unwrap();
        let mut expected = traces.clone();
        expected.sort_by_key(TraceKey::of);
        prop_assert_eq!(&block.traces().unwrap(), &expected);
        prop_assert_eq!((block.count(), block.partition(), block.edits()), (expected.len(), PARTITION, 5));
        prop_assert_eq!(block.newest(), expected[0].request_time());
        prop_assert_eq!(Some(block.end().clone()), expected.iter().map(TraceKey::of).max());
        for (core, trace) in block.core().unwrap().iter().zip(&expected) {
            let info = trace.info().unwrap();
            prop_assert_eq!(&core.place, &TraceKey::of(trace));
            prop_assert_eq!((core.duration, core.state), (info.duration, info.state));
            prop_assert_eq!(core.name.as_deref(), info.tag("mlflow.traceName"));
            prop_assert_eq!(core.session.as_deref(), info.metadata("mlflow.trace.session"));
        }
    }

    #[test]
    fn a_block_that_was_damaged_is_an_error_or_what_it_was(traces in documents(), which in 0_usize..3, at: usize, with: u8) {
        let (item, _) = packed(&traces, |_| SpansToPack::Elsewhere);
        let whole = Block::of(item.clone()).unwrap().traces().unwrap();
        let attribute = [CORE, HEADS, BLOCK_SPANS][which];
        let mut content = item.bytes(attribute).unwrap().to_vec();
        let at = at % content.len();
        content[at] ^= with.max(1);
        let damaged = item.clone().with(attribute, bytes(content.clone()));
        // Because there is no checksum, damaged bytes may be read as other values. Reading must not
        // panic, and must return the same number of traces.
        if let Ok(read) = Block::of(damaged).and_then(|block| block.traces()) {
            prop_assert_eq!(read.len(), whole.len());
        }
        content.truncate(at);
        let cut = Block::of(item.with(attribute, bytes(content)));
        prop_assert!(cut.and_then(|block| block.traces()).is_err());
    }
}

#[test]
fn a_block_that_contradicts_itself_cannot_be_read() {
    let traces: Vec<_> = (0..3).map(|at| StoredTrace::of(document(&format!("t{at}"), 10 + at)).unwrap()).collect();
    let (item, _) = packed(&traces, |_| SpansToPack::Elsewhere);
    assert!(Block::of(item.clone()).unwrap().traces().is_ok());
    let without = |attribute: Attribute<Bytes>| {
        let mut item = item.clone();
        item.take(attribute);
        item
    };
    let elsewhere = TraceKey { time: 11, trace: TraceId::parse("t1").unwrap() };
    let mut moved = item.clone();
    moved.0.extend(Item::new(PARTITION.block_key(&elsewhere)).0);
    let wrong = [
        without(CORE),
        without(HEADS),
        without(BLOCK_SPANS),
        item.clone().with(COUNT, number(2)),
        item.clone().with(COUNT, number(0)),
        item.clone().with(NEWEST, number(13)),
        item.clone().with(HEADS, item.value(CORE).unwrap().clone()),
        moved,
    ];
    for item in wrong {
        assert!(Block::of(item).and_then(|block| block.traces()).is_err());
    }
}

#[test]
fn what_is_no_block_is_not_packed() {
    let trace = |id: &str, time| TraceToPack {
        trace: StoredTrace::of(document(id, time)).unwrap(),
        spans: SpansToPack::Elsewhere,
    };
    let end = TraceKey { time: 5, trace: TraceId::parse("t1").unwrap() };
    let try_to_pack = |traces| pack(&PARTITION, &end, traces, 1, 1).is_ok();
    assert!(try_to_pack(vec![trace("t1", 5), trace("t0", 5)]));
    assert!(!try_to_pack(vec![]), "no traces");
    assert!(!try_to_pack(vec![trace("t1", 5), trace("t1", 5)]), "a duplicate");
    assert!(!try_to_pack(vec![trace("t2", 5)]), "after the end");
    assert!(!try_to_pack(vec![trace("t1", 86_400_000)]), "of another day");
    assert!(!try_to_pack((0..129).map(|at| trace(&format!("t{at}"), 6)).collect()), "too many");
}

#[tokio::test]
async fn spans_are_found_by_block_and_trace() {
    let table = Table::new(Engine::memory().unwrap().client(), "blocks");
    table.create_if_missing().await.unwrap();
    let traces: Vec<_> = (0..60).map(|at| StoredTrace::of(document(&format!("t{at}"), 100 - at)).unwrap()).collect();
    // The spans take 20 KB per trace, so 17 traces fit into an item. Some traces have spans that
    // are stored elsewhere, and some have none.
    let long = |at: usize, name| span(&format!("{at}-{name}-{}", "x".repeat(10_000)));
    let spans_of = |at: usize| (0..at % 3).map(|name| long(at, name)).collect::<Vec<_>>();
    let id_of = |at: usize| traces[at].id();
    let is_elsewhere = |at: usize| at % 20 == 7;
    let to_pack =
        |at| if is_elsewhere(at) { SpansToPack::Elsewhere } else { SpansToPack::of(id_of(at), &spans_of(at)) };
    let (item, spans) = packed(&traces, to_pack);
    assert!(spans.len() > 3);
    table.write_many(spans.clone(), &[]).await.unwrap();
    let block = Block::of(item.clone()).unwrap();
    let groups: usize = block.groups().iter().map(|group| group.traces).sum();
    assert_eq!((groups, block.groups().iter().filter(|group| group.digest.is_none()).count()), (60, 3));
    let wanted: Vec<_> = traces.iter().map(|trace| (&block, trace.id())).collect();
    let found = read_block_spans(&table, &Archive::default(), &wanted).await.unwrap();
    for (at, trace) in traces.iter().enumerate() {
        assert_eq!(found.get(trace.id()), (at % 20 != 7).then(|| spans_of(at)).as_ref(), "{at}");
    }
    let one = read_block_spans(&table, &Archive::default(), &[(&block, traces[5].id())]).await.unwrap();
    assert_eq!(one, HashMap::from([(traces[5].id().clone(), spans_of(5))]));

    // Spans that were read from a block are packed into the same items again.
    let read = read_spans_to_pack(&table, &Archive::default(), &wanted).await.unwrap();
    let (_, same) = packed(&traces, |at| read.get(id_of(at)).cloned().unwrap_or(SpansToPack::Elsewhere));
    assert_eq!(same, spans);
    let large = [span(&"x".repeat(400 << 10))];
    assert!(matches!(SpansToPack::of(id_of(0), &large), SpansToPack::Elsewhere));

    // If an item with spans is missing, the traces whose spans it contained are missing in the
    // result. An unreadable item is an error.
    let key = spans[0].key().unwrap();
    table.write_many(Vec::new(), std::slice::from_ref(&key)).await.unwrap();
    let found = read_block_spans(&table, &Archive::default(), &wanted).await.unwrap();
    let lost = block
        .groups()
        .iter()
        .find(|group| group.digest.is_some_and(|digest| PARTITION.spans_key(&digest) == key))
        .unwrap()
        .traces;
    assert_eq!(found.len(), 57 - lost);
    table.put(spans[0].clone().with("content", bytes(vec![1, 2, 3])), &Condition::Always).await.unwrap();
    assert!(read_block_spans(&table, &Archive::default(), &wanted).await.is_err());

    // A group whose traces have not changed is kept. The same spans are packed into the same item.
    let digests: Vec<_> = block.groups().iter().flat_map(|group| vec![group.digest; group.traces]).collect();
    let stay = |at: usize| digests[at].map_or(SpansToPack::Elsewhere, SpansToPack::In);
    let (again, none) = packed(&traces, stay);
    assert!(none.is_empty());
    assert_eq!(Block::of(again).unwrap().groups(), block.groups());
    let (_, same) = packed(&traces, to_pack);
    assert_eq!(same, spans);
}

#[tokio::test]
async fn blocks_are_read_from_a_place_on() {
    let table = Table::new(Engine::memory().unwrap().client(), "blocks");
    table.create_if_missing().await.unwrap();
    let traces: Vec<_> = (0..100).map(|at| StoredTrace::of(document(&format!("t{at}"), 1_000 - at)).unwrap()).collect();
    for traces in traces.chunks(10) {
        let (block, _) = packed(traces, |_| SpansToPack::Elsewhere);
        table.put(block, &Condition::item_missing()).await.unwrap();
    }
    let read = async |behind: Option<usize>, most| {
        let place = behind.map(|at| TraceKey::of(&traces[at]));
        let (blocks, more) = read_blocks(&table, &PARTITION, place.as_ref(), most).await.unwrap();
        let first = blocks.first().map(|block| 1_000 - block.newest());
        assert!(blocks.is_sorted_by_key(|block| block.end().clone()));
        (first, blocks.len(), more)
    };
    assert_eq!(read(None, usize::MAX).await, (Some(0), 10, false));
    assert_eq!(read(None, 10).await.0, Some(0));
    assert_eq!(read(Some(8), 1_000).await, (Some(0), 10, false));
    assert_eq!(read(Some(9), 1_000).await, (Some(10), 9, false));
    assert_eq!(read(Some(99), 10).await, (None, 0, false));
    let (_, some, more) = read(None, 1).await;
    assert!(more && some < 10);
}

#[tokio::test]
async fn a_half_of_a_block_is_not_taken_for_the_whole() {
    let table = Table::new(Engine::memory().unwrap().client(), "blocks");
    table.create_if_missing().await.unwrap();
    let traces: Vec<_> = (0..20).map(|at| StoredTrace::of(document(&format!("t{at}"), 1_000 - at)).unwrap()).collect();
    let (newer, older) = traces.split_at(10);
    let (newer, _) = packed(newer, |_| SpansToPack::Elsewhere);
    let (older, _) = packed(older, |_| SpansToPack::Elsewhere);
    let end = TraceKey::of(&traces[9]);
    let older = older.with("behind", text(end.text())).with("written", number(entities::now_ms()));
    table.put(older.clone(), &Condition::Always).await.unwrap();
    let requests = async |behind: Option<&TraceKey>| {
        let meter = table::UsageMeter::default();
        let (blocks, _) = read_blocks(&table.metered(meter.clone()), &PARTITION, behind, 15).await.unwrap();
        (blocks.len(), meter.take().requests)
    };
    // Because the newer half of the split block has not been read, the reader searches for it once.
    // A reader that begins after the newer half does not search for it.
    assert_eq!(requests(None).await, (1, 2));
    assert_eq!(requests(Some(&TraceKey::of(&traces[5]))).await, (1, 2));
    assert_eq!(requests(Some(&end)).await, (1, 1));
    // Long after the split, the reader does not search for the newer half, because it must have
    // been deleted.
    let old = older.clone().with("written", number(entities::now_ms() - 3_600_000));
    table.put(old, &Condition::Always).await.unwrap();
    assert_eq!(requests(None).await, (1, 1));
    table.put(older, &Condition::Always).await.unwrap();
    table.put(newer, &Condition::Always).await.unwrap();
    assert_eq!(requests(None).await, (2, 1));
}

#[test]
fn a_block_is_small() {
    // Like the traces of a real agent, these differ from each other only in ids, times and texts.
    let traces: Vec<_> = (0..128_u32)
        .map(|at| {
            let id = format!("tr-{:032x}", u128::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
            let tags =
                BTreeMap::from([("mlflow.traceName", "agent"), ("mlflow.trace.spansLocation", "TRACKING_STORE")]);
            let metadata =
                BTreeMap::from([("mlflow.user", "somebody"), ("mlflow.source.name", "/home/somebody/agent.py")]);
            let entries = |map: BTreeMap<&str, &str>| -> Map {
                map.into_iter().map(|(key, value)| (key.to_owned(), text(value))).collect()
            };
            let item = document(&id, 1_000_000 - i64::from(at))
                .with("tags", map(entries(tags)))
                .with("metadata", map(entries(metadata)))
                .with("request", text(format!("what is {at} times {}", at * 7)));
            StoredTrace::of(item).unwrap()
        })
        .collect();
    assert!(traces.iter().all(|trace| room(trace).unwrap() < 1_000));
    let (block, _) = packed(&traces, |_| SpansToPack::Elsewhere);
    assert!(block.size() < 6_000, "{}", block.size());
}
