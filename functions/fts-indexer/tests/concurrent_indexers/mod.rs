//! Two indexers of one table. The stream delivers records to only one indexer at a time, but there
//! is no guarantee that the previous one has stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use embedded_engine::faults::Gate;
use entities::RunLocation;
use fts_indexer::{Indexer, StreamBatch};
use key_schema::IndexEntry;
use key_schema::index::RunsChanged;
use serde_json::Value;
use table::Table;

use crate::{Site, TABLE, TIME, changed};

/// Two indexers with a common clock. Only the requests of the first one are subject to the injected
/// faults.
struct TwoIndexers {
    site: Site,
    late: Indexer,
    other: Indexer,
    time: Arc<AtomicI64>,
    at: RunLocation,
}

impl TwoIndexers {
    /// Sets up a run that was indexed with one value of a metric, and then got another value.
    async fn new() -> Self {
        let site = Site::new().await;
        let time = Arc::new(AtomicI64::new(TIME));
        let indexer = |table: Table| {
            let time = Arc::clone(&time);
            Indexer::new(table).with_interval(Duration::ZERO).with_clock(move || time.load(Ordering::Relaxed))
        };
        let (late, other) = (indexer(Table::new(site.faults.client(), TABLE)), indexer(site.table.clone()));
        let at = site.run(1, "x").await;
        site.log(&at, "loss", 1, 100.0).await;
        let two = Self { site, late, other, time, at };
        two.other_indexes().await;
        assert!(!two.is_marked().await);
        two.site.log(&two.at, "loss", 2, 1.0).await;
        two
    }

    async fn other_indexes(&self) {
        let answer = self.other.handle(StreamBatch { records: changed(&self.at) }).await;
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
    }

    /// Starts the first indexer, and pauses it before its `nth` call of an operation. Returns
    /// `None` if it makes fewer calls of the operation.
    async fn late_waits_before(&self, operation: &str, nth: u64) -> Option<(Gate, tokio::task::JoinHandle<()>)> {
        let mut gate = self.site.faults.pause_before(operation, nth);
        let (late, records) = (self.late.clone(), changed(&self.at));
        let mut indexing = tokio::spawn(async move {
            // If the other indexer has processed the run first, these records are reported for
            // redelivery.
            late.handle(StreamBatch { records }).await;
        });
        tokio::select! {
            () = gate.reached() => Some((gate, indexing)),
            outcome = &mut indexing => {
                outcome.unwrap();
                None
            }
        }
    }

    async fn is_marked(&self) -> bool {
        self.site.dump().await.into_values().any(|item| item.get(RunsChanged::INDEX.sort).is_some())
    }

    /// Ticks and delivers records until nothing is left to do.
    async fn settle(&self) {
        for _ in 0..3 {
            self.time.fetch_add(300_000, Ordering::Relaxed);
            self.other.tick().await.unwrap();
            self.other_indexes().await;
        }
        assert!(!self.is_marked().await);
        assert!(self.site.sort_keys("DUE#").await.is_empty());
    }

    /// Returns the index that a single indexer creates from the changes that these tests make.
    async fn undisturbed() -> Vec<(String, Value)> {
        let two = Self::new().await;
        two.other_indexes().await;
        two.site.log(&two.at, "loss", 3, 100.0).await;
        two.other_indexes().await;
        two.site.index().await
    }
}

/// While the first indexer is paused, the metric gets its old value back, and the second indexer
/// writes the old entry again. The first indexer must not delete this entry when it continues.
#[tokio::test]
async fn a_late_indexer_takes_nothing_away() {
    let expected = Box::pin(TwoIndexers::undisturbed()).await;
    for (operation, most) in [("PutItem", 1), ("BatchWriteItem", 2), ("UpdateItem", 1)] {
        for nth in 1.. {
            let two = TwoIndexers::new().await;
            let Some((gate, indexing)) = two.late_waits_before(operation, nth).await else {
                assert_eq!(nth - 1, most, "{operation}");
                break;
            };
            two.site.log(&two.at, "loss", 3, 100.0).await;
            two.other_indexes().await;
            gate.open();
            indexing.await.unwrap();
            two.settle().await;
            assert_eq!(two.site.index().await, expected, "before {operation} {nth}");
        }
    }
}

/// The second indexer postpones the run while the first indexer may be active. If the first one
/// never finishes, the second one takes over.
#[tokio::test]
async fn a_run_of_another_indexer_waits_for_its_turn() {
    let two = TwoIndexers::new().await;
    let before = two.site.keys("M#loss").await;
    let (gate, indexing) = two.late_waits_before("BatchWriteItem", 1).await.unwrap();
    indexing.abort();
    drop(gate);
    two.other_indexes().await;
    assert_eq!(two.site.keys("M#loss").await, before);
    assert!(two.is_marked().await, "searches read the run themselves");
    assert_eq!(two.site.sort_keys("DUE#").await.len(), 1, "a tick will check the run");
    two.settle().await;
    let after = two.site.keys("M#loss").await;
    assert!(after.len() == 1 && after != before, "{after:?}");
}

/// An indexer that is declared to be the only one does not wait for others. A lock must exclude
/// other processes. With such a lock, a server that is restarted on a laptop after it was killed
/// continues indexing immediately.
#[tokio::test]
async fn an_indexer_that_is_alone_waits_for_nobody() {
    let two = TwoIndexers::new().await;
    let before = two.site.keys("M#loss").await;
    let (gate, indexing) = two.late_waits_before("BatchWriteItem", 1).await.unwrap();
    indexing.abort();
    drop(gate);
    let answer = two.other.clone().as_only_indexer().handle(StreamBatch { records: changed(&two.at) }).await;
    assert!(answer.batch_item_failures.is_empty());
    assert!(!two.is_marked().await);
    assert_ne!(two.site.keys("M#loss").await, before);
}
