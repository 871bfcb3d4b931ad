//! The key attributes of a table and its indexes.

use std::collections::BTreeMap;

use serde_json::Value;

/// The keys of a table and its indexes.
#[derive(Debug, Default)]
pub(super) struct TableKeys {
    pub(super) keys: KeyAttributes,
    pub(super) local: BTreeMap<String, LocalIndex>,
    pub(super) global: BTreeMap<String, KeyAttributes>,
}

/// A local index.
#[derive(Debug, Default)]
pub(super) struct LocalIndex {
    pub(super) keys: KeyAttributes,
    /// Projected attributes in addition to the keys. `None` if all are projected.
    others: Option<Vec<String>>,
}

impl LocalIndex {
    fn read(description: &Value) -> Self {
        let projection = &description["Projection"];
        let others = projection["NonKeyAttributes"].as_array().into_iter().flatten();
        let others = others.filter_map(Value::as_str).map(str::to_owned).collect();
        let is_of_all = projection["ProjectionType"] == "ALL";
        Self { keys: KeyAttributes::read(description), others: (!is_of_all).then_some(others) }
    }

    /// Checks whether the index projects an attribute.
    pub(super) fn holds(&self, attribute: &str, table: &KeyAttributes) -> bool {
        let Some(others) = &self.others else { return true };
        let keys = [&self.keys.partition, &table.partition].into_iter().chain(&self.keys.sort).chain(&table.sort);
        keys.chain(others).any(|held| held == attribute)
    }
}

/// The attributes of a key.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyAttributes {
    pub(super) partition: String,
    pub(super) sort: Option<String>,
}

impl KeyAttributes {
    fn read(description: &Value) -> Self {
        let of = |kind: &str| {
            let mut elements = description["KeySchema"].as_array().into_iter().flatten();
            let element = elements.find(|element| element["KeyType"] == kind)?;
            element["AttributeName"].as_str().map(str::to_owned)
        };
        Self { partition: of("HASH").unwrap_or_default(), sort: of("RANGE") }
    }
}

impl TableKeys {
    /// Reads the schema from the description of a table.
    pub(super) fn read(description: &Value) -> Self {
        Self {
            keys: KeyAttributes::read(description),
            local: indexes(&description["LocalSecondaryIndexes"], LocalIndex::read),
            global: indexes(&description["GlobalSecondaryIndexes"], KeyAttributes::read),
        }
    }
}

fn indexes<T>(descriptions: &Value, read: impl Fn(&Value) -> T) -> BTreeMap<String, T> {
    let descriptions = descriptions.as_array().into_iter().flatten();
    descriptions.filter_map(|index| Some((index["IndexName"].as_str()?.to_owned(), read(index)))).collect()
}
