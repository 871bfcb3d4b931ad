//! Params and tags as entries of a document's maps, or as rows.

use std::collections::BTreeMap;

use entities::attributes::{PARAMS, ROW_KEY, ROW_VALUE, TAGS};
use key_schema::Key;
use mlflow_api::{Error, Result};
use table::{Condition, Failure, Item, Value, Write, text};

/// Size of a document's maps, in bytes, from which on new keys get rows: each change of a document costs its whole size.
pub const FULL_AT: usize = 48 << 10;
/// Rows in one transaction, in addition to the document.
const ROWS: usize = 99;
/// Bytes of rows in one transaction, which takes 4 MB with the document.
const ROW_BYTES: usize = 3 << 20;

/// Largest entry, in bytes of key and value: a row has room for 400 KB, its key and names included.
const ENTRY: usize = 380 << 10;

/// Rows of one transaction.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) items: Vec<Item>,
    bytes: usize,
}

impl Rows {
    /// Whether there is room for one more row. There always is for the first: DynamoDB refuses a
    /// row that is too large for an item.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let has_room = self.items.is_empty() || (self.items.len() < ROWS && self.bytes + bytes <= ROW_BYTES);
        self.bytes += if has_room { bytes } else { 0 };
        has_room
    }
}

/// Adds rows to the writes that make their document, as many as one transaction takes with it; returns the others. Those have to be
/// written before: nobody finds a row without its document, but a document without its rows is half of one.
#[must_use]
pub fn take_rows(writes: &mut Vec<Write>, rows: Vec<Item>) -> Vec<Item> {
    let mut taken = Rows::default();
    let room = ROWS.saturating_sub(writes.len());
    let mut rest = Vec::new();
    for row in rows {
        if rest.is_empty() && taken.items.len() < room && taken.take(row.size()) {
            taken.items.push(row);
        } else {
            rest.push(row);
        }
    }
    writes.extend(taken.items.into_iter().map(|row| Write::Put(row, Condition::Always)));
    rest
}

/// The same where the rows must not be written before, as another document of the same key may find them.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE` if they are more than a transaction takes.
pub fn take_all_rows(writes: &mut Vec<Write>, rows: Vec<Item>) -> Result<()> {
    if take_rows(writes, rows).is_empty() {
        return Ok(());
    }
    Err(Error::invalid(
        "The tags are too many or too large for one request. Please set some of them in further requests.",
    ))
}

/// The row of a param or tag that is too big for its document.
#[must_use]
pub fn row(key: Key, name: &str, value: &str) -> Item {
    Item::new(key).with(ROW_KEY, text(name)).with(ROW_VALUE, text(value))
}

pub(crate) fn maps_size(item: &Item) -> usize {
    [PARAMS, TAGS]
        .into_iter()
        .filter_map(|attribute| item.map(attribute))
        .flatten()
        .map(|(key, value)| key.len() + value_len(value))
        .sum()
}

fn value_len(value: &Value) -> usize {
    value.as_s().map_or(0, String::len)
}

/// Checks that rows can hold entries of this size: none of a run's or an experiment's is too large, as MLflow limits them.
pub fn check_sizes(entries: &[(String, String)]) -> Result<()> {
    let is_too_large = |(key, value): &(String, String)| key.len() + value.len() > ENTRY;
    if entries.iter().any(is_too_large) { Err(Failure::TooLarge.into()) } else { Ok(()) }
}

/// The first key that comes twice.
#[must_use]
pub fn repeated_key(entries: &[(String, String)]) -> Option<&str> {
    let mut keys = std::collections::HashSet::new();
    entries.iter().map(|(key, _)| key.as_str()).find(|key| !keys.insert(*key))
}

/// Each key once, with its last value, in the order of keys.
pub(crate) fn last_of_each(entries: &[(String, String)]) -> BTreeMap<&str, &str> {
    entries.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_key_counts() {
        let entries = [("a", "1"), ("b", "2"), ("a", "3")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(last_of_each(&entries).into_iter().collect::<Vec<_>>(), [("a", "3"), ("b", "2")]);
    }
}
