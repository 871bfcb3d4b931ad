//! All items of a table.

use std::collections::BTreeMap;

use key_schema::Key;
use key_schema::attributes::{EDITS, NONCE, REVISION};
use key_schema::definition::{PK, SK};
use key_schema::rows::RowDescription;
use serde_json::Value;

/// All items by their keys, as DynamoDB's JSON.
pub type TableDump = BTreeMap<String, Value>;

/// Returns the key of an item in DynamoDB's JSON.
pub fn key_of(item: &Value) -> Key {
    let part = |name: &str| item[name]["S"].as_str().unwrap().to_owned();
    Key { pk: part(PK), sk: part(SK) }
}

/// Panics if an item has an attribute that its row does not declare.
pub(crate) fn check_declared(items: &[Value]) {
    let undeclared: Vec<_> = items.iter().flat_map(undeclared).collect();
    assert_eq!(undeclared, Vec::<String>::new());
}

fn undeclared(item: &Value) -> Vec<String> {
    let code = |value: &'_ Value| value.as_object().unwrap().keys().next().unwrap().clone();
    let attributes: Vec<_> =
        item.as_object().unwrap().iter().map(|(name, value)| (name.clone(), code(value))).collect();
    RowDescription::undeclared(&key_of(item), attributes.iter().map(|(name, code)| (name.as_str(), code.as_str())))
}

/// Returns the items by key, without differences that have no meaning. Sets are sorted, because
/// they have no order. Counters of writes are left out, because they also count repeated writes,
/// and nonces are left out, because they are random.
pub(crate) fn dump(items: Vec<Value>) -> TableDump {
    let items = items.into_iter().map(|mut item| {
        let Key { pk, sk } = key_of(&item);
        let attributes = item.as_object_mut().unwrap();
        for drawn in [REVISION.name(), EDITS.name(), NONCE.name()] {
            attributes.remove(drawn);
        }
        for value in attributes.values_mut() {
            if let Some(set) = value.get_mut("BS").and_then(Value::as_array_mut) {
                set.sort_by_key(ToString::to_string);
            }
        }
        (format!("{pk} {sk}"), item)
    });
    items.collect()
}

/// Changed items in their new state, by key. `None` if the item was deleted. An item only has
/// attributes that its row type declares.
pub type TableChanges = BTreeMap<String, Option<Value>>;

/// Returns the changes between a previous dump of a table and its current items.
pub(crate) fn changes(items: Vec<Value>, before: &TableDump) -> TableChanges {
    let now = dump(items);
    let mut all: TableChanges =
        before.keys().filter(|key| !now.contains_key(*key)).map(|key| (key.clone(), None)).collect();
    let others: Vec<_> = now.into_iter().filter(|(key, item)| before.get(key) != Some(item)).collect();
    check_declared(&others.iter().map(|(_, item)| item.clone()).collect::<Vec<_>>());
    all.extend(others.into_iter().map(|(key, item)| (key, Some(item))));
    all
}
