//! The items, and thus the partitions, that a request names.

use serde_json::Value;

use super::schema::{KeyAttributes, TableKeys};

/// The identity of an item of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ItemKey {
    pub(super) table: String,
    pub(super) key: String,
}

/// An item that a request names.
#[derive(Clone, Debug)]
pub(super) struct RequestedItem {
    pub(super) table: String,
    pub(super) partition: String,
    /// The key, as DynamoDB's JSON.
    pub(super) key: Value,
}

impl RequestedItem {
    /// Returns the item of a table with these keys, given the item or its key.
    pub(super) fn of(table: &str, item: &Value, keys: &KeyAttributes) -> Self {
        let attributes = std::iter::once(&keys.partition).chain(&keys.sort);
        let key = attributes.map(|attribute| (attribute.clone(), item[attribute].clone())).collect();
        Self { table: table.to_owned(), partition: partition(item, keys), key }
    }

    pub(super) fn item_key(&self) -> ItemKey {
        ItemKey { table: self.table.clone(), key: self.key.to_string() }
    }
}

/// Returns the partition key of an item, given the item or its key.
pub(super) fn partition(item: &Value, keys: &KeyAttributes) -> String {
    printed(&item[&keys.partition])
}

/// Returns a key's value: strings as they are, other types as DynamoDB's JSON.
fn printed(value: &Value) -> String {
    value["S"].as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the table of a transaction's entry, and the item or key that it names.
pub(super) fn of_transaction(part: &Value) -> (&str, &Value) {
    for (kind, what) in
        [("Put", "Item"), ("Update", "Key"), ("Delete", "Key"), ("ConditionCheck", "Key"), ("Get", "Key")]
    {
        if let Some(part) = part.get(kind) {
            return (part["TableName"].as_str().unwrap_or_default(), &part[what]);
        }
    }
    ("", &Value::Null)
}

/// Returns the item or key that an entry of a batch names. The entry is a write request or a key to
/// get.
pub(super) fn of_batch(entry: &Value) -> &Value {
    match (entry.get("PutRequest"), entry.get("DeleteRequest")) {
        (Some(put), _) => &put["Item"],
        (_, Some(delete)) => &delete["Key"],
        _ => entry,
    }
}

/// Returns the item that a request for a single item names. `None` for a query.
pub(super) fn of_single(body: &Value) -> Option<&Value> {
    ["Key", "Item"].map(|name| &body[name]).into_iter().find(|item| item.is_object())
}

/// Returns the partition that a query reads. For a global index, it is prefixed with the index's
/// name.
pub(super) fn of_query(body: &Value, schema: &TableKeys) -> String {
    let global = body["IndexName"].as_str().and_then(|name| Some((name, schema.global.get(name)?)));
    match global {
        Some((name, keys)) => format!("{name} {}", printed(queried(body, &keys.partition))),
        None => printed(queried(body, &schema.keys.partition)),
    }
}

/// Returns the value of the partition key in a query's key condition.
fn queried<'a>(body: &'a Value, attribute: &str) -> &'a Value {
    let condition = body["KeyConditionExpression"].as_str().unwrap_or_default();
    let is_inner = |character: char| !character.is_whitespace() && !matches!(character, '(' | ')');
    let mut terms = condition.split(" AND ").filter_map(|term| term.split_once('='));
    let placeholder = terms.find_map(|(name, value)| {
        let trim = |text: &'a str| text.trim_matches(|character| !is_inner(character));
        let name = trim(name);
        let name = body["ExpressionAttributeNames"][name].as_str().unwrap_or(name);
        (name == attribute).then(|| trim(value))
    });
    placeholder.map_or(&Value::Null, |placeholder| &body["ExpressionAttributeValues"][placeholder])
}
