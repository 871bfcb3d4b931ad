//! Two indexers of one table: the stream promises one at a time, and nobody that it has stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use embedded_engine::faults::Gate;
use entities::RunLocation;
use fts_indexer::{Batch, Indexer};
use key_schema::IndexEntry;
use key_schema::index::RunsChanged;
use serde_json::Value;
use table::Table;

use crate::{Site, TABLE, TIME, changed};

/// Two indexers with one clock. The requests of the first meet the faults.
struct Two {
    site: Site,
    late: Indexer,
    other: Indexer,
    time: Arc<AtomicI64>,
    at: RunLocation,
}

impl Two {
    /// With a run that was indexed with a value, and has another one since.
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
        let answer = self.other.handle(Batch { records: changed(&self.at) }).await;
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
    }

    /// Has the first one index until it comes to such a call; `None` if it comes to none.
    async fn late_waits_before(&self, operation: &str, nth: u64) -> Option<(Gate, tokio::task::JoinHandle<()>)> {
        let mut gate = self.site.faults.pause_before(operation, nth);
        let (late, records) = (self.late.clone(), changed(&self.at));
        let mut indexing = tokio::spawn(async move {
            // Where the other one was faster, its records have to come again.
            late.handle(Batch { records }).await;
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

    /// Ticks, and records come, until nothing is left to do.
    async fn settle(&self) {
        for _ in 0..3 {
            self.time.fetch_add(300_000, Ordering::Relaxed);
            self.other.tick().await.unwrap();
            self.other_indexes().await;
        }
        assert!(!self.is_marked().await);
        assert!(self.site.sort_keys("DUE#").await.is_empty());
    }

    /// The index as one indexer makes it of the same changes.
    async fn undisturbed() -> Vec<(String, Value)> {
        let two = Self::new().await;
        two.other_indexes().await;
        two.site.log(&two.at, "loss", 3, 100.0).await;
        two.other_indexes().await;
        two.site.index().await
    }
}

/// The run gets its old value back while the first one waits. What that one deletes late is what
/// the other one has put.
#[tokio::test]
async fn a_late_indexer_takes_nothing_away() {
    let expected = Two::undisturbed().await;
    for (operation, most) in [("PutItem", 1), ("BatchWriteItem", 2), ("UpdateItem", 1)] {
        for nth in 1.. {
            let two = Two::new().await;
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

/// The other one leaves the run alone while the first one may be at work, and takes over when it
/// never ends.
#[tokio::test]
async fn a_run_of_another_indexer_waits_for_its_turn() {
    let two = Two::new().await;
    let before = two.site.keys("M#loss").await;
    let (gate, indexing) = two.late_waits_before("BatchWriteItem", 1).await.unwrap();
    indexing.abort();
    drop(gate);
    two.other_indexes().await;
    assert_eq!(two.site.keys("M#loss").await, before);
    assert!(two.is_marked().await, "searches read it themselves");
    assert_eq!(two.site.sort_keys("DUE#").await.len(), 1, "a tick looks after it");
    two.settle().await;
    let after = two.site.keys("M#loss").await;
    assert!(after.len() == 1 && after != before, "{after:?}");
}

/// A lock keeps others away on a laptop. A server that starts again does not wait for the one that
/// was killed.
#[tokio::test]
async fn an_indexer_that_is_alone_waits_for_nobody() {
    let two = Two::new().await;
    let before = two.site.keys("M#loss").await;
    let (gate, indexing) = two.late_waits_before("BatchWriteItem", 1).await.unwrap();
    indexing.abort();
    drop(gate);
    let answer = two.other.clone().alone().handle(Batch { records: changed(&two.at) }).await;
    assert!(answer.batch_item_failures.is_empty());
    assert!(!two.is_marked().await);
    assert_ne!(two.site.keys("M#loss").await, before);
}
