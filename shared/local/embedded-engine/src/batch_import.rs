//! A fast path for batches that only put items. Most of the indexer's writes are such batches, and
//! so are spans with the marks of their traces.
//!
//! When the engine executes such a batch itself, it reads the item that each put replaces, looks up
//! the last sequence number of the stream, and creates a record with both images, which the
//! stream's filter may then drop. The engine's import is faster, because it looks up the table's
//! indexes and the last sequence number only once per batch. It creates no records if the filter
//! drops the records of all items. Otherwise it creates a record for each item, and the filter
//! drops the unneeded ones.

use std::collections::HashSet;

use dynoxide::types::{item_size, write_capacity_units};
use dynoxide::{Database, ImportOptions, Item, TableMetadata};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stream_filter::{Filters, StreamFilter};

/// DynamoDB's limit for the number of items in a batch.
const MAX_ITEMS: usize = 25;
/// Length of a request, in bytes, below which none of its items can exceed DynamoDB's maximum item
/// size, which the import does not check.
const MAX_REQUEST_BYTES: usize = 400_000;

#[derive(Deserialize)]
struct Key {
    #[serde(rename = "AttributeName")]
    attribute: String,
}

#[derive(Deserialize)]
struct Index {
    #[serde(rename = "KeySchema")]
    keys: Vec<Key>,
    #[serde(rename = "Projection")]
    projection: Value,
}

/// Executes a `BatchWriteItem` in one commit and returns the response. Returns `None`, with nothing
/// written, for batches that the fast path does not support, including any that might fail
/// validation. The regular operation handles those and reports the error.
pub(crate) fn import(database: &Database, filters: &Filters, body: &[u8]) -> Option<String> {
    if body.len() >= MAX_REQUEST_BYTES {
        return None;
    }
    let mut batch: Value = serde_json::from_slice(body).ok()?;
    let requests = batch.as_object_mut()?;
    let tables = requests.remove("RequestItems")?;
    let is_metered = requests.get("ReturnConsumedCapacity").is_some_and(|report| report == "TOTAL");
    if is_metered {
        requests.remove("ReturnConsumedCapacity");
    }
    if requests.values().any(|other| !other.is_null()) {
        return None;
    }
    let Value::Object(tables) = tables else { return None };
    let mut tables = tables.into_iter();
    let (Some((table, Value::Array(writes))), None) = (tables.next(), tables.next()) else { return None };
    let filter = filters.of(&table)?;
    if writes.is_empty() || writes.len() > MAX_ITEMS {
        return None;
    }
    let (mut items, mut record_streams) = (Vec::new(), false);
    for write in writes {
        let (item, is_wanted) = put(write, filter)?;
        record_streams |= is_wanted;
        items.push(item);
    }
    let known = database.get_table_metadata(&table).ok()??;
    let names: Vec<Key> = serde_json::from_str(&known.key_schema).ok()?;
    let mut seen = HashSet::new();
    for item in &items {
        let key = names.iter().map(|key| item.get(&key.attribute)).collect::<Option<Vec<_>>>()?;
        // DynamoDB rejects batches that contain a key twice.
        if !seen.insert(serde_json::to_string(&key).ok()?) {
            return None;
        }
    }
    let mut answer = json!({ "UnprocessedItems": {} });
    if is_metered {
        let units = consumption(&known, &names, &items)?;
        answer["ConsumedCapacity"] = json!([{ "TableName": table, "CapacityUnits": units }]);
    }
    let options = ImportOptions { record_streams, ..ImportOptions::default() };
    database.import_items(&table, items, options).ok()?;
    Some(answer.to_string())
}

/// Returns the write units of a batch as if all items were new. Replaced items are not looked up,
/// because that would take as long as the rest of the batch.
fn consumption(table: &TableMetadata, names: &[Key], items: &[Item]) -> Option<f64> {
    let mut indexes: Vec<Index> = Vec::new();
    for definitions in [&table.lsi_definitions, &table.gsi_definitions].into_iter().flatten() {
        indexes.extend(serde_json::from_str::<Vec<Index>>(definitions).ok()?);
    }
    if indexes.iter().any(|index| index.projection["ProjectionType"] != "KEYS_ONLY") {
        return None;
    }
    let mut units = 0.0;
    for item in items {
        units += write_capacity_units(item_size(item));
        for index in indexes.iter().filter(|index| index.keys.iter().all(|key| item.contains_key(&key.attribute))) {
            let entry = names.iter().chain(&index.keys).filter_map(|key| item.get_key_value(&key.attribute));
            let entry: Item = entry.map(|(name, value)| (name.clone(), value.clone())).collect();
            units += write_capacity_units(item_size(&entry));
        }
    }
    Some(units)
}

/// Returns the item of a put, and whether the filter passes its record.
fn put(mut write: Value, filter: StreamFilter) -> Option<(Item, bool)> {
    let write = write.as_object_mut()?;
    if write.len() != 1 {
        return None;
    }
    let item = write.get_mut("PutRequest")?.get_mut("Item")?.take();
    let attributes = item.as_object()?;
    let is_wanted = filter.written_with.iter().any(|attribute| attributes.contains_key(*attribute));
    if attributes.contains_key("") {
        return None;
    }
    Some((serde_json::from_value(item).ok()?, is_wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Engine, StreamFilter};

    async fn with_table() -> Engine {
        let engine = Engine::memory().unwrap();
        let key = |range: &str| json!([{ "AttributeName": "PK", "KeyType": "HASH" }, { "AttributeName": range, "KeyType": "RANGE" }]);
        let table = json!({
            "TableName": "table",
            "AttributeDefinitions": (["PK", "SK", "local", "global"].map(|name| json!({ "AttributeName": name, "AttributeType": "S" }))),
            "KeySchema": key("SK"),
            "LocalSecondaryIndexes": [{ "IndexName": "local", "KeySchema": key("local"), "Projection": { "ProjectionType": "KEYS_ONLY" } }],
            "GlobalSecondaryIndexes": [{
                "IndexName": "global", "KeySchema": [{ "AttributeName": "global", "KeyType": "HASH" }],
                "Projection": { "ProjectionType": "KEYS_ONLY" },
            }],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" },
        });
        engine.call("CreateTable", table).await.unwrap();
        engine
    }

    async fn filtered() -> Engine {
        let engine = with_table().await;
        let filter = StreamFilter { written_with: &["mark"], removed_with: "rev" };
        engine.filter_stream("table", filter).await.unwrap();
        engine
    }

    fn put(key: &str, more: &Value) -> Value {
        let mut item = json!({ "PK": { "S": "a" }, "SK": { "S": key } });
        item.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        json!({ "PutRequest": { "Item": item } })
    }

    fn batch(writes: &[Value]) -> Value {
        json!({ "RequestItems": { "table": writes } })
    }

    fn is_imported(engine: &Engine, batch: &Value) -> bool {
        let process = engine.in_process();
        super::import(&process.database, &process.filters, batch.to_string().as_bytes()).is_some()
    }

    #[tokio::test]
    async fn what_is_imported_is_there_as_if_it_was_put() {
        let engine = filtered().await;
        let local = |value: &str| json!({ "local": { "S": value } });
        for (writes, in_index) in [
            (vec![put("1", &local("x")), put("2", &local("x")), put("3", &json!({ "rev": { "N": "1" } }))], 2),
            // These puts replace items. Their values of the index key are different or missing, so
            // the entries for the old value have to be gone.
            (vec![put("1", &local("y")), put("2", &json!({}))], 0),
        ] {
            assert!(is_imported(&engine, &batch(&writes)));
            let query = json!({
                "TableName": "table", "IndexName": "local", "KeyConditionExpression": "PK = :pk AND #local = :value",
                "ExpressionAttributeNames": { "#local": "local" },
                "ExpressionAttributeValues": { ":pk": { "S": "a" }, ":value": { "S": "x" } },
            });
            assert_eq!(engine.call("Query", query).await.unwrap()["Count"], in_index);
        }
        assert_eq!(engine.items("table").await.unwrap().len(), 3);
        assert!(engine.stream("table").await.unwrap().unwrap().oldest(10).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_is_wanted_of_a_batch_is_recorded() {
        let engine = filtered().await;
        let mark = |value: &str| put("2", &json!({ "mark": { "S": value } }));
        assert!(is_imported(&engine, &batch(&[put("1", &json!({})), mark("x")])));
        assert!(is_imported(&engine, &batch(&[mark("y"), put("3", &json!({}))])));
        engine.call("PutItem", json!({ "TableName": "table", "Item": mark("z")["PutRequest"]["Item"] })).await.unwrap();
        let records = engine.stream("table").await.unwrap().unwrap().oldest(10).await.unwrap();
        let seen: Vec<_> = records
            .iter()
            .map(|record| {
                let image = |name: &str| record["dynamodb"][name]["mark"]["S"].clone();
                (record["eventName"].clone(), image("OldImage"), image("NewImage"))
            })
            .collect();
        let seen_as = |name: &str, old: Value, new: &str| (json!(name), old, json!(new));
        let wanted = [
            seen_as("INSERT", Value::Null, "x"),
            seen_as("MODIFY", json!("x"), "y"),
            seen_as("MODIFY", json!("y"), "z"),
        ];
        assert_eq!(seen, wanted);
        let number = |record: &Value| record["dynamodb"]["SequenceNumber"].as_str().unwrap().parse::<u128>().unwrap();
        assert!(records.is_sorted_by(|one, next| number(one) < number(next)));
    }

    #[tokio::test]
    async fn what_is_refused_is_not_imported() {
        let engine = filtered().await;
        let plain = || put("1", &json!({}));
        let delete = json!({ "DeleteRequest": { "Key": { "PK": { "S": "a" }, "SK": { "S": "1" } } } });
        let many: Vec<_> = (0..26).map(|number| put(&number.to_string(), &json!({}))).collect();
        let big = put("2", &json!({ "text": { "S": "x".repeat(410_000) } }));
        for writes in [
            vec![plain(), delete],
            vec![plain(), plain()],
            vec![plain(), big],
            vec![plain(), put("2", &json!({ "": { "S": "x" } }))],
            vec![plain(), put("2", &json!({ "local": { "N": "1" } }))],
            vec![plain(), json!({ "PutRequest": { "Item": { "PK": { "S": "a" } } } })],
            vec![],
            many,
        ] {
            assert!(!is_imported(&engine, &batch(&writes)), "{writes:?}");
        }
        let mut asks = batch(&[plain()]);
        asks["ReturnConsumedCapacity"] = json!("INDEXES");
        assert!(!is_imported(&engine, &asks));
        assert_eq!(engine.items("table").await.unwrap(), Vec::<Value>::new());
    }

    #[tokio::test]
    async fn an_import_consumes_what_the_engine_says_of_the_same_batch() {
        // Batches of a table without a stream filter are not imported.
        let (fast, own) = (filtered().await, with_table().await);
        let local = |value: &str, size: usize| json!({ "local": { "S": value }, "global": { "S": "g" }, "text": { "S": "x".repeat(size) } });
        let long = "l".repeat(1_020);
        for writes in [
            vec![put("1", &json!({}))],
            vec![put("2", &local("x", 3_000)), put("3", &local(&long, 0)), put("4", &json!({ "mark": { "S": "m" } }))],
        ] {
            let mut batch = batch(&writes);
            batch["ReturnConsumedCapacity"] = json!("TOTAL");
            assert!(!is_imported(&own, &batch));
            let process = fast.in_process();
            let answer = super::import(&process.database, &process.filters, batch.to_string().as_bytes()).unwrap();
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer, own.call("BatchWriteItem", batch).await.unwrap());
        }
    }
}
