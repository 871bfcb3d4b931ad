//! A packer, traces in the form in which the traces function writes them, and checks of the
//! invariants of packing.

use artifact_store::Archive;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embedded_engine::StreamReader;
use embedded_engine::faults::FaultInjector;
use entities::attributes::{IN_BLOCK, IN_MARK};
use entities::{StoredTrace, TraceItem, TracePointer};
use fts_indexer::{Indexer, PackingThresholds, StreamBatch};
use key_schema::{Ordinal, WideDigest, rows};
use mlflow_api::{ExperimentId, TraceId};
use serde_json::Value;
use spans::Span;
use table::{Condition, Item, Map, RetryPolicy, Table, bytes, map, number, text};
use trace_blocks::{
    Block, LargeTraceTurn, TraceKey, TracePartition, day_of, in_mark_key, mark_with_spans, read_block_spans,
    read_blocks, read_trace_item, read_trace_spans, read_traces, restore_marked_spans, restore_spans,
};

use crate::{Site, TABLE};

pub(super) const DAY: i64 = 86_400_000;
pub(super) const TIME: i64 = 19_000 * DAY + 3_600_000;

pub(super) fn partition() -> TracePartition {
    TracePartition { experiment: ExperimentId::DEFAULT, day: day_of(TIME), shard: 0 }
}

pub(super) fn id(number: u32) -> TraceId {
    TraceId::new(number.into())
}

/// Returns an item with one span of this name.
fn span_of(number_of: u32, name: &str) -> Item {
    let span = Span { name: format!("{name} of {number_of}"), span_id: name.into(), ..Span::default() };
    let packed = spans::pack(&[span], 1 << 20).parts.concat();
    let digest = WideDigest::of_bytes(&packed);
    let key = rows::TraceSpans::key(&ExperimentId::DEFAULT, &id(number_of), &digest, &Ordinal(0));
    Item::new(key).with("arrived", number(1)).with("parts", number(1)).with("content", bytes(packed))
}

/// Returns the mark and the document of a trace whose span is in the mark.
fn in_mark(mark: Item, document: Item, span: &Item) -> [Item; 2] {
    let trace = StoredTrace::of(document.clone()).unwrap();
    let (partition, place) = (TracePartition::of(&trace), TraceKey::of(&trace));
    let (export, mark) = mark_with_spans(mark, &partition, &place, span).unwrap();
    [mark, document.with("in_mark", bytes(export.0.to_be_bytes().to_vec()))]
}

pub(super) struct TestPacker {
    site: Site,
    stream: StreamReader,
    time: Arc<AtomicI64>,
    sizes: PackingThresholds,
    indexer: Indexer,
    /// An indexer whose requests are subject to the injected faults.
    faulty: Indexer,
    /// The names of the spans that were written for each trace.
    span_names: Mutex<BTreeMap<TraceId, BTreeSet<String>>>,
}

impl TestPacker {
    pub(super) async fn new() -> Self {
        Self::with_sizes(PackingThresholds { pause: Duration::ZERO, ..PackingThresholds::default() }).await
    }

    pub(super) async fn with_sizes(sizes: PackingThresholds) -> Self {
        let lab = Self::on(Site::new().await, TIME + 1_000_000, sizes).await;
        lab.set_stage("active").await;
        lab
    }

    /// Returns a copy of the current state, with processes that have just started.
    pub(super) async fn copy(&self) -> Self {
        let copy = Self::on(self.site.snapshot(), self.now(), self.sizes).await;
        *copy.span_names.lock().unwrap() = self.span_names.lock().unwrap().clone();
        copy
    }

    fn knows_span(&self, number_of: u32, name: &str) {
        let name = format!("{name} of {number_of}");
        self.span_names.lock().unwrap().entry(id(number_of)).or_default().insert(name);
    }

    async fn on(site: Site, now: i64, sizes: PackingThresholds) -> Self {
        let stream = site.engine.stream(TABLE).await.unwrap().unwrap();
        let time = Arc::new(AtomicI64::new(now));
        let over = |table: Table| {
            let time = Arc::clone(&time);
            Indexer::new(table).with_clock(move || time.load(Ordering::Relaxed)).with_packing_thresholds(sizes)
        };
        let impatient = RetryPolicy { attempts: 2, ..RetryPolicy::default() };
        let indexer = over(site.table.clone());
        let faulty = over(Table::new(site.faults.client(), TABLE).with_retry(impatient));
        Self { site, stream, time, sizes, indexer, faulty, span_names: Mutex::default() }
    }

    pub(super) fn table(&self) -> &Table {
        &self.site.table
    }

    pub(super) fn faults(&self) -> &FaultInjector {
        &self.site.faults
    }

    pub(super) fn now(&self) -> i64 {
        self.time.load(Ordering::Relaxed)
    }

    pub(super) fn passes(&self, ms: i64) {
        self.time.fetch_add(ms, Ordering::Relaxed);
    }

    async fn set_stage(&self, stage: &str) {
        let experiment = Item::new(rows::Experiment::key(&ExperimentId::DEFAULT))
            .with("name", text("e"))
            .with("location", text("s3://b"))
            .with("created", number(1))
            .with("updated", number(1))
            .with("stage", text(stage))
            .with("stage_version", number(0))
            .with("tags", map(Map::new()));
        self.table().put(experiment, &Condition::Always).await.unwrap();
    }

    pub(super) async fn delete_experiment(&self) {
        self.set_stage("deleted").await;
    }

    pub(super) async fn restore_experiment(&self) {
        self.set_stage("active").await;
    }

    pub(super) async fn remove_experiment(&self) {
        self.table().delete(&rows::Experiment::key(&ExperimentId::DEFAULT), &Condition::Always).await.unwrap();
    }

    /// Returns the mark for a position in the time order.
    pub(super) fn mark(&self, place: &TraceKey) -> Item {
        let day = TracePartition { day: day_of(place.time), ..partition() };
        Item::new(day.mark_key(place)).with("marked", number(self.now())).with("to_pack", number(1))
    }

    /// Returns the mark for a document's position in the time order, and the document as it is
    /// written with that mark.
    fn marked(&self, item: Item) -> [Item; 2] {
        let trace = StoredTrace::of(item.clone()).unwrap();
        let item = item.with("marked", number(self.now())).with("edits", number(trace.edits() + 1));
        [self.mark(&TraceKey::of(&trace)), item]
    }

    /// Writes items in few requests.
    pub(super) async fn write(&self, items: impl IntoIterator<Item = Item>) {
        self.table().write_many(items.into_iter().collect(), &[]).await.unwrap();
    }

    /// Writes a new trace with one span.
    pub(super) async fn put(&self, number_of: u32, time: i64) {
        self.put_all([number_of], |_| time).await;
    }

    /// Writes new traces with one span each.
    pub(super) async fn put_all(&self, numbers: impl IntoIterator<Item = u32>, time: impl Fn(u32) -> i64) {
        self.write(numbers.into_iter().flat_map(|number_of| self.new_trace(number_of, time(number_of)))).await;
    }

    /// Returns the items of a new trace: mark, span and document. Every second trace has its span in the
    /// mark.
    fn new_trace(&self, number_of: u32, time: i64) -> Vec<Item> {
        let item = Item::new(rows::Trace::key(&id(number_of)))
            .with("experiment", text("0"))
            .with("start_time", number(time))
            .with("state", text("OK"))
            .with("edits", number(number_of))
            .with("tags", map(Map::from([("mlflow.traceName".to_owned(), text("agent"))])))
            .with("metadata", map(Map::new()))
            .with("assessments", map(Map::new()));
        let [mark, item] = self.marked(item);
        self.knows_span(number_of, "first");
        let span = span_of(number_of, "first");
        if number_of.is_multiple_of(2) { vec![span, mark, item] } else { in_mark(mark, item, &span).into() }
    }

    /// Writes a new trace with one span of this name, which is in the trace's mark.
    pub(super) async fn put_with_span_in_mark(&self, number_of: u32, name: &str, time: i64) {
        let document = self.new_trace(number_of, time).pop().unwrap();
        let mark = self.mark(&TraceKey::of(&StoredTrace::of(document.clone()).unwrap()));
        self.write(in_mark(mark, document, &span_of(number_of, name))).await;
    }

    /// Writes a mark with a span to which no document refers.
    pub(super) async fn put_spans_in_mark(&self, number_of: u32, name: &str, time: i64) {
        let place = TraceKey { time, trace: id(number_of) };
        let mark = mark_with_spans(self.mark(&place), &partition(), &place, &span_of(number_of, name));
        self.write(mark.map(|(_, mark)| mark)).await;
    }

    /// Returns the spans of a trace.
    pub(super) async fn spans_of(&self, number_of: u32) -> Vec<Span> {
        let trace = self.trace(number_of).await.unwrap();
        let turn = LargeTraceTurn::default();
        read_trace_spans(self.table(), &Archive::default(), &trace, &turn).await.unwrap().to_vec()
    }

    pub(super) async fn add_span(&self, number_of: u32, name: &str) {
        self.knows_span(number_of, name);
        self.write([span_of(number_of, name)]).await;
    }

    async fn trace(&self, number_of: u32) -> Option<StoredTrace> {
        read_trace_item(self.table(), &id(number_of)).await.unwrap().and_then(TraceItem::trace)
    }

    /// Returns the document of a trace, as a change is based on it.
    async fn document(&self, number_of: u32) -> Option<Item> {
        self.trace(number_of).await.map(|trace| trace.item().clone())
    }

    pub(super) async fn with(&self, number_of: u32, attribute: &str, value: &str) {
        let item = self.document(number_of).await.unwrap();
        self.write(self.marked(item.with(attribute, text(value)))).await;
    }

    pub(super) async fn tag(&self, number_of: u32, value: &str) {
        self.with(number_of, "response", value).await;
    }

    /// Moves a trace to another time. The marks at its old and new positions are written first.
    pub(super) async fn put_again(&self, number_of: u32, time: i64) {
        let trace = self.trace(number_of).await.unwrap();
        self.write([self.mark(&TraceKey::of(&trace))]).await;
        let mut item = trace.item().clone();
        if trace.has_packed_spans() {
            restore_spans(self.table(), &Archive::default(), &trace).await.unwrap();
            item.take(IN_BLOCK);
        }
        restore_marked_spans(self.table(), &trace).await.unwrap();
        item.take(IN_MARK);
        self.write(self.marked(item.with("start_time", number(time)))).await;
    }

    pub(super) async fn delete_but_spans(&self, number_of: u32) {
        let Some(item) = self.document(number_of).await else { return };
        self.span_names.lock().unwrap().remove(&id(number_of));
        let key = item.key().unwrap();
        let mark = self.mark(&TraceKey::of(&StoredTrace::of(item).unwrap()));
        self.table().write_many(vec![mark], &[key]).await.unwrap();
    }

    pub(super) async fn delete(&self, number_of: u32) {
        let mark = self.trace(number_of).await.as_ref().and_then(in_mark_key);
        self.delete_but_spans(number_of).await;
        self.table().write_many(Vec::new(), &mark.into_iter().collect::<Vec<_>>()).await.unwrap();
        let spans = self
            .table()
            .query(table::Query::of(rows::TraceSpans::all(&ExperimentId::DEFAULT, &id(number_of))))
            .await
            .unwrap();
        let keys: Vec<_> = spans.iter().filter_map(Item::key).collect();
        self.table().write_many(Vec::new(), &keys).await.unwrap();
    }

    /// Delivers the records of the stream, and the records that result from them.
    pub(super) async fn carry_over(&self) {
        self.carry_over_by(&self.indexer).await;
    }

    /// Delivers the records of the stream to an indexer that has read an earlier layout.
    pub(super) async fn carry_over_in_layout(&self, layout: i64) {
        assert!(self.carry_over_by(&self.indexer.clone().with_layout(layout)).await);
    }

    async fn carry_over_by(&self, indexer: &Indexer) -> bool {
        loop {
            let records = self.stream.oldest(1_000).await.unwrap();
            let Some(last) = records.last() else { return true };
            let last = last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned();
            let wanted = records.into_iter().filter(fts_indexer::is_for_indexer).collect();
            if !indexer.handle(StreamBatch { records: wanted }).await.batch_item_failures.is_empty() {
                return false;
            }
            self.stream.forget_through(&last).await.unwrap();
        }
    }

    pub(super) async fn tick(&self) {
        self.indexer.tick().await.unwrap();
    }

    /// Requests packing of the partition.
    pub(super) async fn ask(&self) {
        // The clock is advanced, so that each request for packing differs from the previous one.
        self.passes(1);
        let row = Item::new(partition().packing_key()).with("to_pack", number(self.now()));
        self.table().put(row, &Condition::Always).await.unwrap();
    }

    pub(super) async fn pack(&self) {
        self.tick().await;
        self.carry_over().await;
    }

    pub(super) async fn pack_after(&self, ms: i64) {
        self.carry_over().await;
        self.passes(ms);
        self.pack().await;
    }

    /// Packs the partition, and returns whether packing succeeded.
    pub(super) async fn pack_through_faults(&self) -> bool {
        self.ask().await;
        self.carry_over_by(&self.faulty).await
    }

    /// Returns all items whose sort key has this prefix.
    pub(super) async fn items(&self, beginning: &str) -> Vec<Value> {
        let items = self.site.dump().await.into_iter();
        items
            .filter(|(key, _)| key.split_once(' ').is_some_and(|(_, sk)| sk.starts_with(beginning)))
            .map(|(_, item)| item)
            .collect()
    }

    /// Counts the rows of traces whose sort key has this prefix.
    pub(super) async fn rows(&self, beginning: &str) -> usize {
        let is_of_traces = |item: &&Value| !item["PK"]["S"].as_str().unwrap().starts_with("TRACE#");
        self.items(beginning).await.iter().filter(is_of_traces).count()
    }

    pub(super) async fn spans(&self) -> BTreeSet<String> {
        self.items("S#").await.iter().map(|item| item["SK"]["S"].as_str().unwrap().to_owned()).collect()
    }

    pub(super) async fn blocks_of(&self, partition: &TracePartition) -> Vec<Block> {
        read_blocks(self.table(), partition, None, usize::MAX).await.unwrap().0
    }

    /// Returns the number of traces in each block, newest first.
    pub(super) async fn counts(&self) -> Vec<usize> {
        self.blocks_of(&partition()).await.iter().map(Block::count).collect()
    }

    async fn marks_of(&self, partition: &TracePartition) -> BTreeSet<TraceKey> {
        let marks = self.table().query(table::Query::of(partition.marks())).await.unwrap();
        marks.iter().filter_map(|item| TraceKey::of_key(&item.key()?)).collect()
    }

    pub(super) async fn marks(&self) -> Vec<TraceId> {
        self.marks_of(&partition()).await.into_iter().map(|place| place.trace).collect()
    }

    /// Compares the names of spans with those that were written for a trace. Returns the names that
    /// were expected, if there is a difference.
    fn names_of(&self, trace: &TraceId, spans: &[Span]) -> Option<BTreeSet<String>> {
        let found: BTreeSet<_> = spans.iter().map(|span| span.name.clone()).collect();
        let expected = self.span_names.lock().unwrap().get(trace).cloned().unwrap_or_default();
        (found != expected).then_some(expected)
    }

    /// Checks that each trace has a mark at its position in the time order, or is up to date in its
    /// block. If a block contains an outdated or deleted trace, there must be a mark at its
    /// position.
    pub(super) async fn check(&self) {
        let documents = self.items("T#HEAD").await;
        let id = |item: &Value| TraceId::parse(item["PK"]["S"].as_str().unwrap().trim_start_matches("TRACE#")).unwrap();
        let ids: Vec<TraceId> = documents.iter().map(id).collect();
        let traces = read_traces(self.table(), &ids.iter().collect::<Vec<_>>()).await.unwrap();
        assert_eq!(traces.len(), ids.len());
        let mut expected: BTreeMap<TracePartition, BTreeMap<TraceKey, StoredTrace>> = BTreeMap::new();
        for trace in traces.into_values() {
            expected.entry(TracePartition::of(&trace)).or_default().insert(TraceKey::of(&trace), trace);
        }
        for trace in expected.values().flat_map(BTreeMap::values) {
            let (table, turn) = (self.table(), LargeTraceTurn::default());
            let spans = read_trace_spans(table, &Archive::default(), trace, &turn).await.unwrap();
            assert_eq!(self.names_of(trace.id(), &spans), None, "spans of {}", trace.id());
        }
        for (partition, traces) in expected {
            let marks = self.marks_of(&partition).await;
            let blocks = self.blocks_of(&partition).await;
            let mut packed: BTreeMap<TraceKey, StoredTrace> = BTreeMap::new();
            let mut before: Option<TraceKey> = None;
            for block in &blocks {
                let mut wanted = Vec::new();
                let traces = block.traces().unwrap();
                for trace in &traces {
                    let place = TraceKey::of(trace);
                    assert!(before.as_ref().is_none_or(|before| *before < place) && place <= *block.end());
                    if !marks.contains(&place) {
                        wanted.push((block, trace.id()));
                        let is_released = self.table().get(&rows::Trace::key(trace.id())).await.unwrap();
                        let is_released = is_released.is_some_and(|item| TracePointer::of(&item).is_some());
                        let trace = if is_released { StoredTrace::behind_pointer(trace) } else { trace.clone() };
                        packed.insert(place, trace);
                    }
                }
                let spans = read_block_spans(self.table(), &Archive::default(), &wanted).await.unwrap();
                for (_, trace) in wanted {
                    assert_eq!(self.names_of(trace, &spans[trace]), None, "spans of {trace} in the block");
                }
                before = Some(block.end().clone());
            }
            let unmarked = traces.into_iter().filter(|(place, _)| !marks.contains(place)).collect::<BTreeMap<_, _>>();
            assert_eq!(packed.keys().collect::<Vec<_>>(), unmarked.keys().collect::<Vec<_>>());
            assert!(packed == unmarked, "a block has an old version of a trace");
        }
    }
}
