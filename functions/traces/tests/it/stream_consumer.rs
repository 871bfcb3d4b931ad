//! The stream delivers writes to its consumer, which packs the traces. The responses to requests
//! must not change.

use std::time::Duration;

use fts_indexer::{Indexer, PackingThresholds, StreamBatch};
use test_site::TABLE;

use crate::blocks::{all_searches, answers, change, make, same};
use crate::marks::timed;
use crate::server::Site;

/// Delivers the records of the stream, waits until the traces have not changed for long enough, and
/// packs them.
pub(crate) async fn pack(site: &Site, indexer: &Indexer) {
    carry_over(site, indexer).await;
    runtime::clock::sleep(Duration::from_mins(5)).await;
    indexer.tick().await.unwrap();
    carry_over(site, indexer).await;
}

async fn carry_over(site: &Site, indexer: &Indexer) {
    let stream = site.engine.stream(TABLE).await.unwrap().unwrap();
    loop {
        let records = stream.oldest(1_000).await.unwrap();
        let Some(last) = records.last() else { return };
        let last = last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned();
        let records = records.into_iter().filter(fts_indexer::is_for_indexer).collect();
        assert!(indexer.handle(StreamBatch { records }).await.batch_item_failures.is_empty());
        stream.forget_through(&last).await.unwrap();
    }
}

/// Returns the numbers of blocks and of marks.
pub(crate) async fn counted(site: &Site) -> (usize, usize) {
    let items = site.items().await;
    let count =
        |beginning: &str| items.iter().filter(|item| item["SK"]["S"].as_str().unwrap().starts_with(beginning)).count();
    (count("B#"), count("M#"))
}

#[test]
fn what_the_consumer_packs_is_answered_as_before() {
    timed(async {
        let site = Site::new().await;
        let packing = PackingThresholds {
            min_new_marks: 2,
            min_changed_marks: 2,
            max_traces: 8,
            pause: Duration::ZERO,
            ..PackingThresholds::default()
        };
        let indexer = Indexer::new(site.table.clone()).with_packing_thresholds(packing);
        make(&site.server, 7).await;
        let unpacked = site.copy().await;
        pack(&site, &indexer).await;
        let (blocks, marks) = counted(&site).await;
        assert!(blocks > 5 && marks < 3, "{blocks} blocks, {marks} marks");
        let expected = answers(&unpacked.server, 0).await;
        same(&expected, &answers(&site.server, 0).await, "packed");
        let rounds = if all_searches() { 4 } else { 2 };
        for seed in 1..=rounds {
            change(&site.server, seed).await;
            change(&unpacked.server, seed).await;
            let expected = answers(&unpacked.server, seed).await;
            same(&expected, &answers(&site.server, seed).await, "changed");
            pack(&site, &indexer).await;
            same(&expected, &answers(&site.server, seed).await, "packed again");
        }
        let (blocks, marks) = counted(&site).await;
        assert!(blocks > 1 && marks < 12, "{blocks} blocks, {marks} marks");
    });
}
