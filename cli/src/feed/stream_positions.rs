//! How far each shard of a stream has been delivered, stored in the table.
//!
//! A position is only stored after a batch that contains events for webhooks. Delivering other
//! records again is safe, and storing a position after every batch would change the table, which
//! the stream would report as another record.

use std::collections::HashMap;

use entities::attributes::{EXPIRES, HOOK, POSITION};
use key_schema::{Name, rows};
use runtime::clock::now_ms;
use serde_json::Value;
use table::{Condition, Item, Query, Result, Table, number, text};

/// How long a position is stored, in seconds: longer than the stream keeps a record or a shard.
const RETENTION_SECONDS: i64 = 3 * 24 * 60 * 60;

/// The stored positions in a table's stream.
pub(crate) struct StreamPositions(pub(crate) Table);

impl StreamPositions {
    /// Returns, by shard, the sequence number of the last record that does not have to be delivered
    /// again.
    pub(super) async fn read(&self) -> Result<HashMap<String, String>> {
        let rows = self.0.query(Query::of(rows::StreamPosition::all())).await?;
        let position = |item: &Item| {
            let shard = rows::StreamPosition::parse(&item.key()?)?.stream_shard.0;
            Some((shard, item.get(POSITION)?.to_owned()))
        };
        Ok(rows.iter().filter_map(position).collect())
    }

    /// Stores the position `last` of a shard, if any of these records is an event for webhooks. A
    /// failure is only logged, because its sole consequence is that the events are sent again after
    /// a restart.
    pub(super) async fn store(&self, shard: &str, records: &[Value], last: &str) {
        if !records.iter().any(is_event) {
            return;
        }
        let item = Item::new(rows::StreamPosition::key(&Name::from(shard)))
            .with(POSITION.name(), text(last))
            .with(EXPIRES.name(), number(now_ms() / 1_000 + RETENTION_SECONDS));
        if let Err(failure) = self.0.put(item, &Condition::Always).await {
            tracing::warn!(?failure, "the position in the stream could not be stored");
        }
    }
}

fn is_event(record: &Value) -> bool {
    record["dynamodb"]["NewImage"][HOOK.name()].is_object()
}
