//! Helpers for the JSON of batches.

use serde_json::{Map, Value};

/// Returns the field of a batch's response that lists the unprocessed entries.
pub(crate) fn unprocessed(operation: &str) -> &'static str {
    if operation == "BatchGetItem" { "UnprocessedKeys" } else { "UnprocessedItems" }
}

/// Adds the unprocessed entries of a table to those in a response.
pub(crate) fn add(unprocessed: &mut Value, table: String, rest: Value) {
    if !unprocessed.is_object() {
        *unprocessed = Value::Object(Map::new());
    }
    let Some(tables) = unprocessed.as_object_mut() else { return };
    match tables.get_mut(&table) {
        // The engine also leaves entries unprocessed, because it ends a batch at 16 MB.
        Some(already) => {
            let mut rest = rest;
            if let (Some(already), Some(rest)) = (entries(already), entries(&mut rest)) {
                already.append(rest);
            }
        }
        None => {
            tables.insert(table, rest);
        }
    }
}

/// Returns a table's write requests, or its keys to get.
pub(crate) fn entries(request: &mut Value) -> Option<&mut Vec<Value>> {
    match request {
        Value::Array(requests) => Some(requests),
        Value::Object(gets) => gets.get_mut("Keys")?.as_array_mut(),
        _ => None,
    }
}
