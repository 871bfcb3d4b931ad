//! Params and tags, as entries of a document's maps or as rows.

use std::collections::BTreeMap;

use crate::attributes::{PARAMS, ROW_KEY, ROW_VALUE, TAGS};
use key_schema::Key;
use mlflow_api::{Error, Result};
use table::{Condition, Failure, Item, Value, Write, text};

/// Size of a document's maps, in bytes, above which new keys get rows. The size is limited because
/// every change of a document is charged for the document's whole size.
pub const MAX_MAPS_BYTES: usize = 48 << 10;
/// Maximum number of rows in one transaction, in addition to the document.
const MAX_TRANSACTION_ROWS: usize = 99;
/// Maximum number of bytes of rows in one transaction, which may have 4 MB including the document.
const MAX_TRANSACTION_ROW_BYTES: usize = 3 << 20;

/// Maximum size of an entry, in bytes of key and value. A row has room for 400 KB, including its
/// key and attribute names.
const MAX_ENTRY_BYTES: usize = 380 << 10;

/// Rows of one transaction.
#[derive(Default)]
pub(crate) struct TransactionRows {
    pub(crate) items: Vec<Item>,
    bytes: usize,
}

impl TransactionRows {
    /// Checks whether there is room for one more row, and reserves it. The first row always fits:
    /// DynamoDB refuses rows that are too large for an item.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let has_room = self.items.is_empty()
            || (self.items.len() < MAX_TRANSACTION_ROWS && self.bytes + bytes <= MAX_TRANSACTION_ROW_BYTES);
        self.bytes += if has_room { bytes } else { 0 };
        has_room
    }
}

/// Adds as many rows as fit into one transaction to the writes that create their document, and
/// returns the remaining rows. The remaining rows must be written before the document: a row
/// without a document is never found, but a document without all its rows would be incomplete.
#[must_use]
pub fn take_rows(writes: &mut Vec<Write>, rows: Vec<Item>) -> Vec<Item> {
    take_rows_but(0, writes, rows)
}

/// Adds rows like [`take_rows`], and leaves room for `reserved` further writes.
fn take_rows_but(reserved: usize, writes: &mut Vec<Write>, rows: Vec<Item>) -> Vec<Item> {
    let mut taken = TransactionRows::default();
    let room = MAX_TRANSACTION_ROWS.saturating_sub(writes.len() + reserved);
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

/// Adds all rows to the writes that create their document. Used if rows must not be written before
/// the document, because another document with the same key might find them.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if the rows do not fit into one transaction.
pub fn take_all_rows(writes: &mut Vec<Write>, rows: Vec<Item>) -> Result<()> {
    take_all_rows_but(0, writes, rows)
}

/// Adds all rows like [`take_all_rows`], and leaves room for `reserved` further writes of up to
/// 200 KB together.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if the rows do not fit into one transaction.
pub fn take_all_rows_but(reserved: usize, writes: &mut Vec<Write>, rows: Vec<Item>) -> Result<()> {
    if take_rows_but(reserved, writes, rows).is_empty() {
        return Ok(());
    }
    Err(Error::invalid(
        "There are too many tags, or they are too large, for one request. Please set some of them in further requests.",
    ))
}

/// Builds the row of a param or tag that is too big for its document.
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

/// Checks that each of these entries fits into a row. Entries of runs and experiments always do,
/// because MLflow's own limits are lower.
pub fn check_sizes(entries: &[(String, String)]) -> Result<()> {
    let is_too_large = |(key, value): &(String, String)| key.len() + value.len() > MAX_ENTRY_BYTES;
    if entries.iter().any(is_too_large) { Err(Failure::TooLarge.into()) } else { Ok(()) }
}

/// Returns the first key that occurs twice.
#[must_use]
pub fn repeated_key(entries: &[(String, String)]) -> Option<&str> {
    let mut keys = std::collections::HashSet::new();
    entries.iter().map(|(key, _)| key.as_str()).find(|key| !keys.insert(*key))
}

/// Returns each key once, with its last value, sorted by key.
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
