//! Packing of traces, with smaller blocks than in production.

use std::collections::BTreeSet;
use std::time::Duration;

use artifact_store::Archive;
use entities::attributes::TO_PACK;
use fts_indexer::{Indexer, PackingThresholds, StreamBatch};
use key_schema::{Key, rows};
use runtime::clock::{SimulatedClock, now_ms};
use serde_json::json;
use table::{Item, Table, number};
use test_site::{TABLE, TestEnvironment, key_of};
use trace_blocks::{TracePartition, is_mark};

/// Step by which a test lets time pass. It is long enough for quiet traces to be packed, and for
/// postponed partitions to be checked.
pub(crate) const STEP: Duration = Duration::from_mins(5);

/// Runs a test on a simulated clock, which jumps to the next time that a task waits for.
pub(crate) fn timed<T>(test: impl Future<Output = T>) -> T {
    let simulation = SimulatedClock::begin();
    let test = Box::pin(test);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::select! { done = test => done, () = simulation.drive() => panic!("the clock has ended") }
    })
}

/// Creates a fresh indexer that makes blocks of one or two traces.
pub(crate) fn indexer(table: &Table) -> Indexer {
    indexer_with_archive(table, &Archive::default())
}

/// Creates an indexer like [`indexer`], with an archive.
pub(crate) fn indexer_with_archive(table: &Table, archive: &Archive) -> Indexer {
    let packing = PackingThresholds {
        min_new_marks: 1,
        min_changed_marks: 1,
        max_traces: 2,
        pause: Duration::ZERO,
        ..PackingThresholds::default()
    };
    Indexer::new(table.clone()).with_packing_thresholds(packing).with_archive(archive.clone())
}

/// Returns the keys of all items.
pub(crate) async fn keys(site: &TestEnvironment) -> Vec<Key> {
    site.engine.items(TABLE).await.unwrap().iter().map(key_of).collect()
}

/// Numbers of traces, marks and blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) traces: usize,
    pub(crate) marks: usize,
    pub(crate) blocks: usize,
}

/// Counts the traces, marks and blocks of a site.
pub(crate) async fn counts(site: &TestEnvironment) -> Counts {
    let keys = keys(site).await;
    let count = |is_meant: &dyn Fn(&Key) -> bool| keys.iter().filter(|key| is_meant(key)).count();
    Counts {
        traces: count(&|key| rows::Trace::parse(key).is_some()),
        marks: count(&is_mark),
        blocks: count(&|key| rows::TraceBlock::parse(key).is_some()),
    }
}

/// Lets time pass, and packs all partitions that have marks, as if the packing requests had arrived
/// over the stream.
pub(crate) async fn pass(site: &TestEnvironment) {
    pass_with_archive(site, &Archive::default()).await;
}

/// Packs like [`pass`], on a site whose old traces may be archived.
pub(crate) async fn pass_with_archive(site: &TestEnvironment, archive: &Archive) {
    pass_by(site, &indexer_with_archive(&site.table, archive)).await;
}

/// Packs like [`pass`], by the given indexer.
pub(crate) async fn pass_by(site: &TestEnvironment, indexer: &Indexer) {
    runtime::clock::sleep(STEP).await;
    let keys = keys(site).await;
    let marks = keys.iter().filter(|key| is_mark(key));
    let partitions: BTreeSet<_> = marks.filter_map(TracePartition::of_key).collect();
    let ask = |partition: &TracePartition| Item::new(partition.packing_key()).with(TO_PACK, number(now_ms()));
    site.table.write_many(partitions.iter().map(ask).collect(), &[]).await.unwrap();
    let record = |partition: &TracePartition| {
        let key = partition.packing_key();
        json!({ "eventName": "MODIFY", "dynamodb": {
            "SequenceNumber": "1", "Keys": { "PK": { "S": key.pk }, "SK": { "S": key.sk } },
            "NewImage": { TO_PACK: { "N": now_ms().to_string() } },
        } })
    };
    let records = partitions.iter().map(record).collect();
    let answer = indexer.handle(StreamBatch { records }).await;
    assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
}
