//! Data in the table that cannot be read.
//!
//! It is never left out of an answer: a client would take a shorter answer for the whole one, and
//! go on from it.

use mlflow_api::{Error, Result};
use table::{Failure, Item};

/// The internal error about an item that is, in part or as a whole, not what this server writes.
/// The log gets the item's key, and nothing of its content.
#[must_use]
pub fn unreadable(item: &Item, what: &str) -> Error {
    let key = item.key().map_or_else(|| "an item without a key".to_owned(), |key| format!("{} {}", key.pk, key.sk));
    Error::internal(format!("{what} cannot be read: {key}"))
}

/// The result of `read` for each item.
///
/// # Errors
/// The error about the first item that `read` returns `None` for.
pub fn read_all<'a, T>(
    items: impl IntoIterator<Item = &'a Item>,
    what: &str,
    read: impl Fn(&'a Item) -> Option<T>,
) -> Result<Vec<T>> {
    items.into_iter().map(|item| read(item).ok_or_else(|| unreadable(item, what))).collect()
}

/// The error about an unreadable item, as a failure of the table.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
pub fn failed(error: Error) -> Failure {
    Failure::Unexpected(error.to_string())
}
