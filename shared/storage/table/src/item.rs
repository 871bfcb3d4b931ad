//! Items and their attributes.

use std::collections::HashMap;
use std::fmt;

use aws_sdk_dynamodb::primitives::Blob;
pub use aws_sdk_dynamodb::types::AttributeValue as Value;
use key_schema::attributes::{Attribute, Bytes, Mapping, Scalar, Set};
use key_schema::definition::{Index, PK, SK};
use key_schema::{IndexEntry, IndexKey, Key, KeyRange};

/// A map of attributes: the attributes of an item, or a nested map.
pub type Map = HashMap<String, Value>;

/// An item of the table. Its `Debug` output has only the key and the size, because the content
/// belongs to clients and must not be logged.
#[derive(Clone, Default, PartialEq)]
pub struct Item(pub Map);

impl fmt::Debug for Item {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Item").field("key", &self.key()).field("bytes", &self.size()).finish()
    }
}

impl Item {
    /// Returns an item that has only this key.
    #[must_use]
    pub fn new(key: Key) -> Self {
        Self(Map::from([(PK.to_owned(), Value::S(key.pk)), (SK.to_owned(), Value::S(key.sk))]))
    }

    /// Adds an attribute, and returns the item.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: Value) -> Self {
        self.0.insert(name.into(), value);
        self
    }

    /// Adds the attributes that put the item into an index, and returns the item.
    #[must_use]
    pub fn indexed(mut self, key: IndexKey) -> Self {
        self.0.extend(key.0.into_iter().map(|(attribute, place)| (attribute.to_owned(), Value::S(place))));
        self
    }

    /// Returns the item's key in an index. `None` if the item has no key in the index, or one of
    /// another type.
    #[must_use]
    pub fn entry<T: IndexEntry>(&self) -> Option<T> {
        self.key_text(T::INDEX.sort).and_then(T::parse)
    }

    /// Returns whether the item is in an index.
    #[must_use]
    pub fn is_in(&self, index: &Index) -> bool {
        self.0.contains_key(index.sort)
    }

    /// Returns the item's sort key in the table or the index that the range belongs to.
    #[must_use]
    pub fn sort_key(&self, range: &KeyRange) -> Option<&str> {
        self.key_text(range.sort_attribute())
    }

    /// Returns the item's key.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        Some(Key { pk: self.key_text(PK)?.to_owned(), sk: self.key_text(SK)?.to_owned() })
    }

    /// Returns the value of an attribute that is stored as a string or a number. `None` if it is
    /// missing or has another type. For items that the table returned, `None` always means missing,
    /// because their types were checked when they were read.
    #[must_use]
    pub fn get<T: Scalar + ?Sized>(&self, attribute: Attribute<T>) -> Option<T::Value<'_>> {
        match self.value(attribute)? {
            Value::S(text) if T::KIND.code == "S" => T::parsed(text),
            Value::N(digits) if T::KIND.code == "N" => T::parsed(digits),
            _ => None,
        }
    }

    /// Returns the value of a binary attribute.
    #[must_use]
    pub fn bytes(&self, attribute: Attribute<Bytes>) -> Option<&[u8]> {
        self.value(attribute)?.as_b().ok().map(Blob::as_ref)
    }

    /// Returns the elements of a set attribute. Empty if the attribute is missing.
    #[must_use]
    pub fn elements<T: Set>(&self, attribute: Attribute<T>) -> &[Blob] {
        self.value(attribute).and_then(|set| set.as_bs().ok()).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the value of a map attribute.
    #[must_use]
    pub fn map<T: Mapping>(&self, attribute: Attribute<T>) -> Option<&Map> {
        self.value(attribute)?.as_m().ok()
    }

    /// Returns the stored value of an attribute.
    #[must_use]
    pub fn value<T: ?Sized>(&self, attribute: Attribute<T>) -> Option<&Value> {
        self.0.get(attribute.name())
    }

    /// Returns whether the item has the attribute.
    #[must_use]
    pub fn has<T: ?Sized>(&self, attribute: Attribute<T>) -> bool {
        self.value(attribute).is_some()
    }

    /// Removes an attribute from the item and returns its value.
    pub fn take<T: ?Sized>(&mut self, attribute: Attribute<T>) -> Option<Value> {
        self.0.remove(attribute.name())
    }

    /// Returns the string value of a key attribute.
    fn key_text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_s().ok().map(String::as_str)
    }

    /// Returns the approximate size of the item in bytes, as DynamoDB charges it: the names and
    /// values, three bytes for each map, and one byte for each entry of a map.
    #[must_use]
    pub fn size(&self) -> usize {
        map_size(&self.0)
    }
}

fn map_size(map: &Map) -> usize {
    map.iter().map(|(name, value)| name.len() + value_size(value)).sum()
}

fn value_size(value: &Value) -> usize {
    match value {
        Value::S(text) => text.len(),
        Value::N(digits) => digits.len() / 2 + 2,
        Value::B(bytes) => bytes.as_ref().len(),
        Value::Bs(set) => set.iter().map(|bytes| bytes.as_ref().len() + 1).sum(),
        Value::L(nested) => 3 + nested.iter().map(|value| 1 + value_size(value)).sum::<usize>(),
        Value::M(nested) => 3 + nested.len() + map_size(nested),
        _ => 1,
    }
}

/// Returns a string value.
#[must_use]
pub fn text(value: impl Into<String>) -> Value {
    Value::S(value.into())
}

/// Returns an integer value.
#[must_use]
pub fn number(value: impl Into<i64>) -> Value {
    Value::N(value.into().to_string())
}

/// Returns a map value.
#[must_use]
pub fn map(entries: Map) -> Value {
    Value::M(entries)
}

/// Returns a binary value.
#[must_use]
pub fn bytes(value: Vec<u8>) -> Value {
    Value::B(Blob::new(value))
}

/// Returns a set of binary values. DynamoDB does not support empty sets: leave the attribute out
/// instead.
#[must_use]
pub fn bytes_set(values: impl IntoIterator<Item = Vec<u8>>) -> Value {
    Value::Bs(values.into_iter().map(Blob::new).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Condition, Failure, QueryPage, Update, Write, WriteRefusal};

    #[test]
    fn nothing_prints_what_is_in_an_item() {
        let key = || Key { pk: "P".to_owned(), sk: "S".to_owned() };
        let item = || Item::new(key()).with("tags", map(Map::from([("name".to_owned(), text("secret"))])));
        let condition = || Condition::Equals("tag".into(), text("secret"));
        let update = Update::new(key()).set("tag", text("secret")).only_if(condition());
        let refused = Failure::Refused { item: Some(item()), after_lost_answer: false };
        let printed = [
            format!("{refused:?}"),
            format!("{:?}", Failure::Cancelled(vec![WriteRefusal::Refused(Some(item()))])),
            format!(
                "{:?}",
                [Write::Put(item(), condition()), Write::Update(update), Write::Delete(key(), condition())]
            ),
            format!("{:#?}", QueryPage { items: vec![item()], next: None }),
            model::Error::from(refused).to_string(),
        ];
        for text in printed {
            assert!(!text.contains("secret"), "{text}");
        }
        assert_eq!(format!("{:?}", item()), r#"Item { key: Some(Key { pk: "P", sk: "S" }), bytes: 24 }"#);
    }
}
