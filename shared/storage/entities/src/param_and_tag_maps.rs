//! Params and tags: maps in a document, and rows for entries that are too big for it.

use std::borrow::Cow;

use key_schema::attributes::{Attribute, Texts};
use mlflow_api::Result;
use table::{Item, Map};

use crate::attributes::{ROW_KEY, ROW_VALUE};
use crate::unreadable_item::unreadable;

/// Returns the entries of a document's map and of its rows, sorted by key. An entry in the document
/// takes precedence over a row.
///
/// # Errors
/// Returns an internal error if an entry cannot be read.
pub fn entries(item: &Item, attribute: Attribute<Texts>, rows: &[Item]) -> Result<Vec<(String, String)>> {
    let empty = Map::new();
    let held = match item.value(attribute) {
        None => &empty,
        Some(_) => item.map(attribute).ok_or_else(|| unreadable(item, attribute.name()))?,
    };
    let mut all = Vec::with_capacity(held.len() + rows.len());
    for (name, value) in held {
        let value = value.as_s().map_err(|_| unreadable(item, attribute.name()))?;
        all.push((entry_key(name).to_owned(), value.clone()));
    }
    for row in rows {
        let (Some(key), Some(value)) = (row.get(ROW_KEY), row.get(ROW_VALUE)) else {
            return Err(unreadable(row, attribute.name()));
        };
        if !held.contains_key(entry_name(key).as_ref()) {
            all.push((key.to_owned(), value.to_owned()));
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// Returns the name of a key's entry in a map. It differs from the key only if the key is empty:
/// MLflow accepts an empty key when a run is created, but DynamoDB has no empty names.
#[must_use]
pub fn entry_name(key: &str) -> Cow<'_, str> {
    if key.is_empty() || key.starts_with('\0') { Cow::Owned(format!("\0{key}")) } else { Cow::Borrowed(key) }
}

/// Returns the key of the entry with this name in a map.
#[must_use]
pub fn entry_key(name: &str) -> &str {
    name.strip_prefix('\0').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use key_schema::Key;
    use table::{map, text};

    use super::*;
    use crate::attributes::TAGS;

    #[test]
    fn an_entry_in_the_document_hides_its_row() {
        let key = Key { pk: "P".to_owned(), sk: "S".to_owned() };
        let inline = Map::from([("a".to_owned(), text("new"))]);
        let item = Item::new(key.clone()).with(TAGS, map(inline));
        let row =
            |name: &str, value: &str| Item::new(key.clone()).with(ROW_KEY, text(name)).with(ROW_VALUE, text(value));
        let expected = [("a", "new"), ("b", "row")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(entries(&item, TAGS, &[row("a", "old"), row("b", "row")]).unwrap(), expected);
        let strange = Item::new(key.clone()).with(ROW_KEY, text("c"));
        assert!(entries(&item, TAGS, &[strange]).is_err());
        assert!(entries(&Item::new(key.clone()).with(TAGS, text("x")), TAGS, &[]).is_err());
        assert!(entries(&item.with(TAGS, map(Map::from([("a".to_owned(), table::number(1))]))), TAGS, &[]).is_err());
    }
}
