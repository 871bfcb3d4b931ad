//! Plans a change from the document as it was last read.

use crate::attributes::{FULL, PARAM_ROWS, PARAMS, ROW_VALUE, TAG_ROWS, TAGS};
use crate::entry_name;
use key_schema::Name;
use mlflow_api::Result;
use table::{Condition, Item, Map, Table, Update, number, text};

use crate::documents::document::{Document, DocumentChange, MAX_INLINE_VALUE_BYTES, conflict};
use crate::documents::entries::{MAX_MAPS_BYTES, TransactionRows, last_of_each, maps_size, row};

/// Maximum number of params, and of tags, in one update: an expression may have at most 4 KB.
/// Further entries go into the next update.
pub(crate) const MAX_UPDATE_ENTRIES: usize = 100;

/// The update of a document, the writes of rows that belong to the same transaction, and the
/// changes that remain to be done afterwards.
pub(crate) struct DocumentPlan {
    pub(crate) update: Update,
    pub(crate) rows: Vec<Item>,
    /// The part of the change that does not fit into this transaction.
    pub(crate) rest: Option<DocumentChange>,
}

/// Plans a change from the document as it was last read.
pub(crate) async fn plan_change(
    table: &Table,
    document: &impl Document,
    change: &DocumentChange,
    item: &Item,
) -> Result<DocumentPlan> {
    let new_params = new_params(table, document, change, item).await?;
    let is_full = item.has(FULL);
    let mut room = if is_full { 0 } else { MAX_MAPS_BYTES.saturating_sub(maps_size(item)) };
    let mut update = Update::new(document.key()).only_if(document.writable());
    for (attribute, value) in &change.set {
        update = update.set(*attribute, value.clone());
    }
    for attribute in &change.remove {
        update = update.remove(*attribute);
    }
    for (attribute, value) in &change.add {
        update = update.add(attribute.as_str(), value.clone());
    }
    let mut rows = TransactionRows::default();
    let mut rest = DocumentChange::default();
    let (mut param_rows, mut tag_rows, mut inline_keys, mut overflow) = (false, false, false, false);

    for (position, (key, value)) in new_params.iter().enumerate() {
        let bytes = key.len() + value.len();
        if position >= MAX_UPDATE_ENTRIES {
            rest.params.push((key.clone(), value.clone()));
            continue;
        }
        update = update.only_if(Condition::Missing((PARAMS, entry_name(key).as_ref()).into()));
        if value.len() <= MAX_INLINE_VALUE_BYTES && bytes <= room {
            room -= bytes;
            inline_keys = true;
            update = update.set((PARAMS, entry_name(key).as_ref()), text(value));
        } else if rows.take(bytes) {
            overflow |= value.len() <= MAX_INLINE_VALUE_BYTES;
            param_rows = true;
            rows.items.push(row(document.param_row(&Name::from(key.as_str())), key, value));
        } else {
            rest.params.push((key.clone(), value.clone()));
        }
    }
    for (position, (key, value)) in last_of_each(&change.tags).into_iter().enumerate() {
        if position >= MAX_UPDATE_ENTRIES {
            rest.tags.push((key.to_owned(), value.to_owned()));
            continue;
        }
        let name = entry_name(key);
        let held = item.map(TAGS).and_then(|tags| tags.get(name.as_ref()));
        let path = || (TAGS, name.as_ref());
        let bytes = key.len() + value.len();
        if held.is_some_and(|held| held.as_s().is_ok_and(|held| held == value)) {
            continue;
        }
        let replaces = held.is_some() && value.len() <= MAX_INLINE_VALUE_BYTES;
        if value.len() <= document.inline_value() && (replaces || bytes <= room) {
            room = if replaces { room } else { room - bytes };
            inline_keys |= held.is_none();
            update = update.set(path(), text(value));
        } else if rows.take(bytes) {
            overflow |= value.len() <= MAX_INLINE_VALUE_BYTES;
            tag_rows = true;
            update = if held.is_some() { update.remove(path()) } else { update };
            rows.items.push(row(document.tag_row(&Name::from(key)), key, value));
        } else {
            rest.tags.push((key.to_owned(), value.to_owned()));
        }
    }

    if inline_keys {
        update = update.only_if(Condition::Missing(FULL.into()));
    }
    if !new_params.is_empty() {
        update = update.only_if(Condition::unchanged(item, PARAM_ROWS));
    }
    if param_rows {
        update = update.add(PARAM_ROWS, number(1));
    }
    if tag_rows {
        update = update.set(TAG_ROWS, number(1));
    }
    if overflow && !is_full {
        update = update.set(FULL, number(1));
    }
    let rest = (!rest.params.is_empty() || !rest.tags.is_empty()).then_some(rest);
    Ok(DocumentPlan { update, rows: rows.items, rest })
}

/// Returns the params of a change that the document does not have yet. Fails if it has one with
/// another value.
async fn new_params(
    table: &Table,
    document: &impl Document,
    change: &DocumentChange,
    item: &Item,
) -> Result<Vec<(String, String)>> {
    let empty = Map::new();
    let held = item.map(PARAMS).unwrap_or(&empty);
    let mut conflicts = Vec::new();
    let mut new = Vec::new();
    for (key, value) in &change.params {
        match held.get(entry_name(key).as_ref()).and_then(|held| held.as_s().ok()) {
            None => new.push((key.clone(), value.clone())),
            Some(old) if old != value => conflicts.push(conflict(key, old, value)),
            Some(_) => {}
        }
    }
    if item.has(PARAM_ROWS) && !new.is_empty() {
        let keys: Vec<_> = new.iter().map(|(key, _)| document.param_row(&Name::from(key.as_str()))).collect();
        let rows = table.get_many(&keys).await?;
        let mut missing = Vec::new();
        for ((key, value), row_key) in new.into_iter().zip(keys) {
            match rows.get(&row_key).and_then(|row| row.get(ROW_VALUE)) {
                None => missing.push((key, value)),
                Some(old) if old != value => conflicts.push(conflict(&key, old, &value)),
                Some(_) => {}
            }
        }
        new = missing;
    }
    if conflicts.is_empty() { Ok(new) } else { Err(document.params_differ(&conflicts)) }
}
