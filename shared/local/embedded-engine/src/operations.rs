//! The engine's operations, by the names they have on the wire.

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::aws_json::EngineResponse;

/// Maximum length of a request in bytes, as in DynamoDB.
pub(crate) const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;

/// The response to a batch of writes that were all processed.
pub(crate) const ALL_PROCESSED_RESPONSE: &str = r#"{"UnprocessedItems":{}}"#;

/// Returns the response to a request that exceeds the maximum length.
pub(crate) fn too_long() -> EngineResponse {
    let body = r#"{"__type":"RequestEntityTooLarge","message":"HTTP content length exceeded 16777216 bytes."}"#;
    EngineResponse { status: 413, body: body.to_owned() }
}

/// Checks whether an operation may change data or settings.
pub(crate) fn writes(operation: &str) -> bool {
    let reads = ["GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems", "GetShardIterator", "GetRecords"];
    !reads.contains(&operation) && !operation.starts_with("Describe") && !operation.starts_with("List")
}

/// Checks whether an operation changes the set of tables and indexes, or their settings.
pub(crate) fn changes_tables(operation: &str) -> bool {
    ["CreateTable", "UpdateTable", "DeleteTable", "UpdateTimeToLive"].contains(&operation)
}

/// Returns the table that an operation deletes, which the request names or gives as an ARN.
pub(crate) fn deleted_table(operation: &str, body: &[u8]) -> Option<String> {
    if operation != "DeleteTable" {
        return None;
    }
    let request: Value = serde_json::from_slice(body).ok()?;
    let named = request["TableName"].as_str()?;
    Some(named.rsplit_once('/').map_or(named, |(_, name)| name).to_owned())
}

/// Runs one operation. Blocks, because the engine has a single lock.
pub(crate) fn run(database: &Database, operation: &str, body: &[u8]) -> EngineResponse {
    if body.len() > MAX_REQUEST_BYTES {
        return too_long();
    }
    match dispatch(database, operation, body) {
        Some(Ok(body)) => EngineResponse::ok(body),
        Some(Err(error)) => EngineResponse { status: error.status_code(), body: error.to_json() },
        None => EngineResponse {
            status: 400,
            body: r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#.to_owned(),
        },
    }
}

/// Runs one operation on a database on disk. A batch of writes becomes one commit. The engine
/// itself would commit each write separately, so that 25 writes would take 100 ms if each commit
/// waited for the disk. DynamoDB may execute a batch in any order and in part, so executing it
/// atomically is allowed too. Only the reported capacity would differ, so a batch that requests the
/// consumed capacity is passed to the engine unchanged.
pub(crate) fn run_on_disk(database: &Database, operation: &str, body: &[u8]) -> EngineResponse {
    let as_one = (operation == "BatchWriteItem").then(|| as_transaction(body)).flatten();
    if let Some(Ok(_)) = as_one.and_then(|body| dispatch(database, "TransactWriteItems", &body)) {
        return EngineResponse::ok(ALL_PROCESSED_RESPONSE.to_owned());
    }
    // All other operations are passed to the engine unchanged.
    run(database, operation, body)
}

/// Converts a batch of writes to a transaction. Returns `None` for batches that cannot be
/// converted.
fn as_transaction(body: &[u8]) -> Option<Vec<u8>> {
    let batch: Value = serde_json::from_slice(body).ok()?;
    if ["ReturnConsumedCapacity", "ReturnItemCollectionMetrics"].iter().any(|wanted| !batch[*wanted].is_null()) {
        return None;
    }
    let mut items = Vec::new();
    for (table, writes) in batch["RequestItems"].as_object()? {
        for write in writes.as_array()? {
            let (item, key) = (&write["PutRequest"]["Item"], &write["DeleteRequest"]["Key"]);
            items.push(match (item.is_object(), key.is_object()) {
                (true, false) => json!({ "Put": { "TableName": table, "Item": item } }),
                (false, true) => json!({ "Delete": { "TableName": table, "Key": key } }),
                _ => return None,
            });
        }
    }
    serde_json::to_vec(&json!({ "TransactItems": items })).ok()
}

/// Calls the method of an operation. dynoxide has the same list, but does not export it.
fn dispatch(database: &Database, operation: &str, body: &[u8]) -> Option<Result<String, DynoxideError>> {
    let answer = match operation {
        "GetItem" => answer(body, |request| database.get_item(request)),
        "PutItem" => answer(body, |request| database.put_item(request)),
        "UpdateItem" => answer(body, |request| database.update_item(request)),
        "DeleteItem" => answer(body, |request| database.delete_item(request)),
        "Query" => answer(body, |request| database.query(request)),
        "Scan" => answer(body, |request| database.scan(request)),
        "BatchGetItem" => answer(body, |request| database.batch_get_item(request)),
        "BatchWriteItem" => answer(body, |request| database.batch_write_item(request)),
        "TransactGetItems" => answer(body, |request| database.transact_get_items(request)),
        "TransactWriteItems" => answer(body, |request| database.transact_write_items(request)),

        "CreateTable" => answer(body, |request| database.create_table(request)),
        "DescribeTable" => answer(body, |request| database.describe_table(request)),
        "UpdateTable" => answer(body, |request| database.update_table(request)),
        "DeleteTable" => answer(body, |request| database.delete_table(request)),
        "ListTables" => answer(body, |request| database.list_tables(request)),
        "UpdateTimeToLive" => answer(body, |request| database.update_time_to_live(request)),
        "DescribeTimeToLive" => answer(body, |request| database.describe_time_to_live(request)),
        "TagResource" => answer(body, |request| database.tag_resource(request)),
        "UntagResource" => answer(body, |request| database.untag_resource(request)),
        "ListTagsOfResource" => answer(body, |request| database.list_tags_of_resource(request)),

        "ListStreams" => answer(body, |request| database.list_streams(request)),
        "DescribeStream" => answer(body, |request| database.describe_stream(request)),
        "GetShardIterator" => answer(body, |request| database.get_shard_iterator(request)),
        "GetRecords" => answer(body, |request| database.get_records(request)),
        _ => return None,
    };
    Some(answer)
}

fn answer<Q, A>(body: &[u8], call: impl FnOnce(Q) -> Result<A, DynoxideError>) -> Result<String, DynoxideError>
where
    Q: DeserializeOwned,
    A: Serialize,
{
    let request = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let answer = call(request)?;
    serde_json::to_string(&answer).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// Converts a parse error to DynamoDB's error. The engine's request types mark invalid values with
/// a prefix of the message. Other errors are malformed JSON, which the SDK does not send.
fn unreadable(error: &serde_json::Error) -> DynoxideError {
    let message = error.to_string();
    let position = message.rfind(" at line ").unwrap_or(message.len());
    for marker in ["VALIDATION_REQUEST:", "VALIDATION_AS_READ:", "VALIDATION:"] {
        if let Some(found) = message[..position].strip_prefix(marker) {
            return DynoxideError::ValidationException(found.to_owned());
        }
    }
    let message = message[..position].trim_start_matches("SERIALIZATION_AS_READ:").trim_start_matches("SERIALIZATION:");
    if message.contains("missing field") || message.contains("Supplied AttributeValue") {
        DynoxideError::ValidationException(message.to_owned())
    } else {
        DynoxideError::SerializationException(message.to_owned())
    }
}
