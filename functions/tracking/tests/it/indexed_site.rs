//! A site with its own indexer, which runs only when a test calls it.

use std::time::Duration;

use aws_lambda_like::records;
use fts_indexer::{Indexer, StreamBatch};
use serde_json::Value;

use crate::server::Site;

/// Passes everything that has changed since the last call to the indexer.
pub(crate) async fn index(site: &Site) {
    let records = records(site).await;
    index_records(site, records).await;
}

/// Passes records to the indexer, which has to process all of them.
pub(crate) async fn index_records(site: &Site, records: Vec<Value>) {
    // The indexer indexes every change immediately, because other tests cover postponed runs. It
    // does not wait for another indexer, because a test may have stopped that one in the middle of
    // its work.
    let indexer = Indexer::new(site.table.clone()).with_interval(Duration::ZERO).as_only_indexer();
    for batch in records.chunks(1_000) {
        let answer = indexer.handle(StreamBatch { records: batch.to_vec() }).await;
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
    }
}

/// Returns stream records for all items that have a mark.
pub(crate) async fn changes(site: &Site) -> Vec<Value> {
    records(site).await
}

mod aws_lambda_like {
    use key_schema::IndexEntry;
    use key_schema::index::RunsChanged;
    use serde_json::{Value, json};

    use crate::server::Site;

    pub(super) async fn records(site: &Site) -> Vec<Value> {
        let items = site.dump().await.into_values().filter(|item| item.get(RunsChanged::INDEX.sort).is_some());
        let record = |(number, item): (usize, Value)| {
            json!({
                "eventName": "MODIFY",
                "dynamodb": {
                    "Keys": { "PK": item["PK"], "SK": item["SK"] },
                    "NewImage": item,
                    "SequenceNumber": number.to_string(),
                },
            })
        };
        items.enumerate().map(record).collect()
    }
}
