//! Packs traces into blocks, with the same result as the packer.

use std::collections::BTreeMap;

use artifact_store::Archive;
use entities::attributes::{EDITS, IN_MARK, MARKED_AT, TO_PACK};
use entities::{StoredTrace, now_ms};
use key_schema::rows;
use mlflow_api::TraceId;
use table::{Item, Update, number};
use test_site::{TestEnvironment, key_of};
use trace_blocks::{
    LargeTraceTurn, SpansToPack, TraceKey, TracePartition, TraceToPack, copy_spans_of_mark, pack, read_trace_spans,
    read_traces,
};

/// Packs the traces for which `is_wanted` returns `true` into blocks of `of_block` traces. The
/// argument of `is_wanted` is the index of a trace in its partition, newest first. All other traces
/// keep their marks. Previous blocks are deleted.
pub(crate) async fn pack_some(site: &TestEnvironment, of_block: usize, is_wanted: impl Fn(usize) -> bool) {
    store_marked_spans(site).await;
    let keys: Vec<_> = site.items().await.iter().map(key_of).collect();
    let old: Vec<_> = keys.iter().filter(|key| key.sk.starts_with("B#")).cloned().collect();
    site.table.write_many(Vec::new(), &old).await.unwrap();
    let ids = keys.iter().filter(|key| key.sk == "T#HEAD").map(|key| key.pk.trim_start_matches("TRACE#"));
    let ids: Vec<TraceId> = ids.map(|id| TraceId::parse(id).unwrap()).collect();
    let traces = read_traces(&site.table, &ids.iter().collect::<Vec<_>>()).await.unwrap();
    let mut partitions: BTreeMap<TracePartition, Vec<StoredTrace>> = BTreeMap::new();
    for trace in traces.into_values() {
        partitions.entry(TracePartition::of(&trace)).or_default().push(trace);
    }
    for (partition, mut traces) in partitions {
        traces.sort_by_key(TraceKey::of);
        let mut places = 0..;
        traces.retain(|_| places.next().is_some_and(&is_wanted));
        for block in traces.chunks(of_block) {
            let end = TraceKey::of(block.last().unwrap());
            let mut packed = Vec::new();
            for trace in block {
                let spans = read_trace_spans(&site.table, &Archive::default(), trace, &LargeTraceTurn::default()).await;
                let spans = spans.unwrap();
                packed.push(TraceToPack { trace: trace.clone(), spans: SpansToPack::of(trace.id(), &spans) });
            }
            let made = pack(&partition, &end, packed, now_ms(), now_ms()).unwrap();
            let marks: Vec<_> = block.iter().map(|trace| partition.mark_key(&TraceKey::of(trace))).collect();
            site.table.write_many(made.spans, &[]).await.unwrap();
            site.table.write_many(vec![made.block], &marks).await.unwrap();
        }
    }
}

/// Stores spans that are in marks under the keys of their traces, as they are in an earlier layout, because
/// the documents of the packed traces remain.
async fn store_marked_spans(site: &TestEnvironment) {
    for key in site.items().await.iter().map(key_of) {
        let Some(row) = rows::TraceMarkWithSpans::parse(&key) else { continue };
        let mark = site.table.get(&key).await.unwrap().unwrap();
        let item = site.table.get(&rows::Trace::key(&row.trace)).await.unwrap();
        let trace = item.and_then(|item| StoredTrace::of(item).ok());
        if let Some(trace) = trace.filter(|trace| trace.in_mark() == Some(row.export)) {
            copy_spans_of_mark(&site.table, &trace, &mark).await.unwrap();
            let update = Update::new(rows::Trace::key(&row.trace)).remove(IN_MARK).add(EDITS, number(1));
            site.table.apply(&update).await.unwrap();
            let plain = Item::new(TracePartition::of(&trace).mark_key(&TraceKey::of(&trace)));
            let plain = plain.with(MARKED_AT, number(trace.marked_at())).with(TO_PACK, number(1));
            site.table.write_many(vec![plain], &[]).await.unwrap();
        }
        site.table.write_many(Vec::new(), &[key]).await.unwrap();
    }
}

/// Packs all traces, and deletes all marks, including those without a trace.
pub(crate) async fn pack_all(site: &TestEnvironment, of_block: usize) {
    pack_some(site, of_block, |_| true).await;
    let marks = site.items().await.iter().map(key_of).filter(|key| key.sk.starts_with("M#")).collect::<Vec<_>>();
    site.table.write_many(Vec::new(), &marks).await.unwrap();
}
