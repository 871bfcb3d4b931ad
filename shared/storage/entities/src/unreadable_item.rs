//! Data in the table that cannot be read.
//!
//! Unreadable data is never left out of a response. Clients would take an incomplete response for a
//! complete one, and base further actions on it.

use mlflow_api::{Error, Result};
use table::{Failure, Item};

/// Returns the internal error for an item that this server cannot have written, at least not
/// completely. The log contains the item's key, but nothing of its content.
#[must_use]
pub fn unreadable(item: &Item, what: &str) -> Error {
    let key = item.key().map_or_else(|| "an item without a key".to_owned(), |key| format!("{} {}", key.pk, key.sk));
    Error::internal(format!("{what} cannot be read: {key}"))
}

/// Returns the result of `read` for each item.
///
/// # Errors
/// Returns an internal error for the first item for which `read` returns `None`.
pub fn read_all<'a, T>(
    items: impl IntoIterator<Item = &'a Item>,
    what: &str,
    read: impl Fn(&'a Item) -> Option<T>,
) -> Result<Vec<T>> {
    items.into_iter().map(|item| read(item).ok_or_else(|| unreadable(item, what))).collect()
}

/// Converts the error for an unreadable item into a failure of the table.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
pub fn failed(error: Error) -> Failure {
    Failure::Unexpected(error.to_string())
}
