//! A filter of the changes that are recorded in a table's stream.
//!
//! The engine makes a record of each write, with the item before and after. The stream's reader
//! reads each record, drops or delivers it, and deletes it. Most records are about the indexer's
//! own writes: of some forty records per run, the reader needs four. The reader can therefore set a
//! filter, and records that do not pass it are never written. DynamoDB has no such filter. With
//! Lambda, the event source mapping between the stream and the function filters records.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use rusqlite::Connection;

use crate::EngineError;

/// Describes the records that the reader of a stream needs, by the attributes of their items.
#[derive(Clone, Copy, Debug)]
pub struct StreamFilter {
    /// Attributes for writes. A record of a new or changed item passes if the item has at least one
    /// of these attributes after the write.
    pub written_with: &'static [&'static str],
    /// Attribute for deletions. A record of a deleted item passes if the item had this attribute.
    pub removed_with: &'static str,
}

/// The filters that this process has set, by table.
#[derive(Debug, Default)]
pub(crate) struct Filters(RwLock<HashMap<String, StreamFilter>>);

impl Filters {
    /// Returns the filter of a table's stream.
    pub(crate) fn of(&self, table: &str) -> Option<StreamFilter> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(table).copied()
    }

    pub(crate) fn remember(&self, table: &str, filter: StreamFilter) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(table.to_owned(), filter);
    }
}

/// Sets the filter of a table's stream. Changes that do not pass it are no longer recorded. The
/// filter also applies after a restart, until another one is set. It does not affect the streams of
/// other tables.
pub(crate) fn set(connection: &Connection, table: &str, filter: StreamFilter) -> Result<(), EngineError> {
    let has_none = |attribute: &&str| format!("json_type(NEW.new_image, {}) IS NULL", path(attribute));
    let has_none = filter.written_with.iter().map(has_none).collect::<Vec<_>>().join(" AND ");
    let removed = path(filter.removed_with);
    let (name, table) = (format!("\"app_stream_filter::{}\"", table.replace('"', "\"\"")), text(table));
    // The trigger is dropped and created in one transaction, so that no write can occur in between.
    Ok(connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         DROP TRIGGER IF EXISTS {name};
         CREATE TRIGGER {name} BEFORE INSERT ON _stream_records
         WHEN NEW.table_name = {table}
             AND {has_none}
             AND NOT (NEW.event_name = 'REMOVE' AND json_type(NEW.old_image, {removed}) IS NOT NULL)
         BEGIN SELECT RAISE(IGNORE); END;
         COMMIT;"
    ))?)
}

/// Returns the JSON path of an attribute in an image, as an SQL string.
fn path(attribute: &str) -> String {
    text(&format!("$.\"{attribute}\""))
}

/// Returns a text as an SQL string.
fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::StreamFilter;
    use crate::Engine;

    #[tokio::test]
    async fn only_what_is_wanted_is_recorded() {
        let directory = tempfile::tempdir().unwrap();
        for engine in [Engine::memory().unwrap(), Engine::open(directory.path()).unwrap()] {
            for name in ["filtered", "other"] {
                let table = json!({
                    "TableName": name,
                    "AttributeDefinitions": [{ "AttributeName": "PK", "AttributeType": "S" }],
                    "KeySchema": [{ "AttributeName": "PK", "KeyType": "HASH" }],
                    "BillingMode": "PAY_PER_REQUEST",
                    "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" },
                });
                engine.call("CreateTable", table).await.unwrap();
                // The second filter replaces the first.
                for written_with in [&["something"] as &[_], &["mark", "ask"]] {
                    let filter = StreamFilter { written_with, removed_with: "rev" };
                    engine.filter_stream("filtered", filter).await.unwrap();
                }
                let item = |key: &str, more: Value| {
                    let mut item = json!({ "PK": { "S": key } });
                    item.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
                    json!({ "TableName": name, "Item": item })
                };
                let key = |key: &str| json!({ "TableName": name, "Key": { "PK": { "S": key } } });
                let (mark, rev) = (json!({ "mark": { "S": "it's \"marked\"" } }), json!({ "rev": { "N": "1" } }));
                let plain = json!({ "text": { "S": "\"mark\":{\"S\":" }, "map": { "M": { "mark": { "S": "x" } } } });
                engine.call("PutItem", item("1: not", plain)).await.unwrap();
                engine.call("PutItem", item("2: wanted", mark.clone())).await.unwrap();
                engine.call("PutItem", item("3: not", rev.clone())).await.unwrap();
                // Whether a put is recorded depends only on the item's attributes after the put.
                engine.call("PutItem", item("2: wanted", rev)).await.unwrap();
                engine.call("PutItem", item("4: wanted", mark)).await.unwrap();
                engine.call("PutItem", item("5: wanted", json!({ "ask": { "N": "1" } }))).await.unwrap();
                engine.call("DeleteItem", key("2: wanted")).await.unwrap();
                engine.call("DeleteItem", key("4: wanted")).await.unwrap();
                engine.call("DeleteItem", key("1: not")).await.unwrap();
            }
            let found = recorded(&engine, "filtered").await;
            assert_eq!(found, ["INSERT 2: wanted", "INSERT 4: wanted", "INSERT 5: wanted", "REMOVE 2: wanted"]);
            assert_eq!(recorded(&engine, "other").await.len(), 9);
        }
    }

    async fn recorded(engine: &Engine, table: &str) -> Vec<String> {
        let stream = engine.stream(table).await.unwrap().unwrap();
        let records = stream.oldest(100).await.unwrap();
        let said = |record: &Value| {
            let (name, key) = (&record["eventName"], &record["dynamodb"]["Keys"]["PK"]["S"]);
            format!("{} {}", name.as_str().unwrap(), key.as_str().unwrap())
        };
        records.iter().map(said).collect()
    }
}
