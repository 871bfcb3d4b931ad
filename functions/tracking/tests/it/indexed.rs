//! A site with its own indexer, which is fed when a test says so.

use std::time::Duration;

use aws_lambda_like::records;
use fts_indexer::{Batch, Indexer};
use serde_json::Value;

use crate::server::Site;

/// Feeds the indexer with everything that has changed since it was last fed.
pub(crate) async fn index(site: &Site) {
    let records = records(site).await;
    index_records(site, records).await;
}

/// Feeds the indexer with records; all of them have to be carried over.
pub(crate) async fn index_records(site: &Site, records: Vec<Value>) {
    // With each change: postponed runs have a test of their own. Another one may have been stopped.
    let indexer = Indexer::new(site.table.clone()).with_interval(Duration::ZERO).alone();
    for batch in records.chunks(1_000) {
        let answer = indexer.handle(Batch { records: batch.to_vec() }).await;
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
    }
}

/// Records as the stream has them, for all items that carry a mark.
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
