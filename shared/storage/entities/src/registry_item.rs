//! Attributes that the items of MCP servers, of skills, and of their versions have in common.

use std::collections::BTreeMap;

use key_schema::Key;
use key_schema::attributes::{Attribute, CREATED, EDITS, ID, IMPORTED, Mapping, NONCE, Text, UPDATED};
use table::{Condition, Item, map, number, text};

use crate::param_and_tag_maps::{entry_key, entry_name};

/// Returns an item with the times of an entity, in ms, and the attributes that a change of the item
/// `before` increments or keeps. For a new entity, `before` is `None`.
#[must_use]
pub fn registry_item(key: Key, created: i64, updated: i64, before: Option<&Item>) -> Item {
    let edits = before.and_then(|before| before.get(EDITS)).unwrap_or_default();
    let mut item = Item::new(key).with(CREATED, number(created)).with(EDITS, number(edits + 1));
    if updated != created {
        item = item.with(UPDATED, number(updated));
    }
    // The nonce identifies the request that created the item. It is kept by changes, so that the
    // creating request recognizes its item even if another request has changed it already.
    for name in [NONCE.name(), IMPORTED.name()] {
        if let Some(value) = before.and_then(|before| before.0.get(name)) {
            item = item.with(name, value.clone());
        }
    }
    item
}

/// Adds the texts that have a value to an item.
#[must_use]
pub fn with_texts<'a>(item: Item, values: impl IntoIterator<Item = (Attribute<Text>, Option<&'a str>)>) -> Item {
    let present = values.into_iter().filter_map(|(attribute, value)| Some((attribute, value?)));
    present.fold(item, |item, (attribute, value)| item.with(attribute, text(value)))
}

/// Adds a map of values to an item, unless the map is empty.
#[must_use]
pub fn with_entries<T: Mapping, V>(
    item: Item,
    attribute: Attribute<T>,
    entries: &BTreeMap<String, V>,
    value: impl Fn(&V) -> table::Value,
) -> Item {
    if entries.is_empty() {
        return item;
    }
    let entries = entries.iter().map(|(key, entry)| (entry_name(key).into_owned(), value(entry)));
    item.with(attribute, map(entries.collect()))
}

/// Reads a map of values from an item. Returns `None` if `value` returns `None` for one of them. A
/// missing map is empty.
#[must_use]
pub fn read_entries<T: Mapping, V>(
    item: &Item,
    attribute: Attribute<T>,
    value: impl Fn(&table::Value) -> Option<V>,
) -> Option<BTreeMap<String, V>> {
    let entries = item.map(attribute).into_iter().flatten();
    entries.map(|(name, entry)| Some((entry_key(name).to_owned(), value(entry)?))).collect()
}

/// Reads a map of texts from an item. Returns `None` if a value is not a text.
#[must_use]
pub fn read_texts<T: Mapping>(item: &Item, attribute: Attribute<T>) -> Option<BTreeMap<String, String>> {
    read_entries(item, attribute, |value| value.as_s().ok().cloned())
}

/// Returns the condition that a document has not changed since `before` was read. For a new
/// document, it is the condition that there is none.
#[must_use]
pub fn unchanged_document(before: Option<&Item>) -> Condition {
    match before {
        None => Condition::item_missing(),
        // The id is compared, too, because a later entity with this name may have the same number
        // of edits.
        Some(item) => Condition::unchanged(item, ID).and(Condition::unchanged(item, EDITS)),
    }
}

#[cfg(test)]
mod tests {
    use key_schema::attributes::{DESCRIPTION, TAGS};

    use super::*;

    #[test]
    fn a_change_keeps_the_origin_and_counts() {
        let key = Key { pk: "P".to_owned(), sk: "S".to_owned() };
        let new = registry_item(key.clone(), 5, 5, None);
        assert_eq!((new.get(EDITS), new.has(UPDATED)), (Some(1), false));
        let changed = registry_item(key, 5, 7, Some(&new.with(IMPORTED, text("hash")).with(DESCRIPTION, text("d"))));
        assert_eq!((changed.get(EDITS), changed.get(UPDATED)), (Some(2), Some(7)));
        assert_eq!((changed.get(IMPORTED), changed.has(DESCRIPTION)), (Some("hash"), false));
    }

    #[test]
    fn what_is_missing_is_not_stored() {
        let item = with_texts(Item::default(), [(DESCRIPTION, None)]);
        let tags = BTreeMap::from([(String::new(), "v".to_owned())]);
        assert_eq!(with_entries(item.clone(), TAGS, &BTreeMap::new(), |value: &String| text(value)), Item::default());
        let tagged = with_entries(item, TAGS, &tags, |value| text(value));
        assert_eq!(read_texts(&tagged, TAGS), Some(tags));
        assert_eq!(read_texts(&Item::default(), TAGS), Some(BTreeMap::new()));
    }
}
