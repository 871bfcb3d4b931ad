//! Params and tags: maps in a document, and rows for what is too big for it.

use std::borrow::Cow;

use table::{Item, Map};

use crate::attributes::{ROW_KEY, ROW_VALUE};

/// The entries of a map of a document and of its rows, by key. An entry in the document counts for more than a row.
#[must_use]
pub fn entries(item: &Item, attribute: &str, rows: &[Item]) -> Vec<(String, String)> {
    let empty = Map::new();
    let held = item.map(attribute).unwrap_or(&empty);
    let inline = held.iter().filter_map(|(name, value)| Some((entry_key(name).to_owned(), value.as_s().ok()?.clone())));
    let rows = rows.iter().filter_map(|row| Some((row.text(ROW_KEY)?.to_owned(), row.text(ROW_VALUE)?.to_owned())));
    let mut all: Vec<_> = rows.filter(|(key, _)| !held.contains_key(entry_name(key).as_ref())).chain(inline).collect();
    all.sort_unstable();
    all
}

/// The name of a key's entry in a map. DynamoDB knows no empty name, and MLflow takes an empty key when a run is created.
#[must_use]
pub fn entry_name(key: &str) -> Cow<'_, str> {
    if key.is_empty() || key.starts_with('\0') { Cow::Owned(format!("\0{key}")) } else { Cow::Borrowed(key) }
}

/// The key of an entry of a map.
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
        assert_eq!(entries(&item, TAGS, &[row("a", "old"), row("b", "row")]), expected);
    }
}
