//! Creation of documents.

use crate::attributes::{Attribute, FULL, PARAM_ROWS, PARAMS, TAG_ROWS, TAGS, Texts};
use crate::entry_name;
use key_schema::{Key, Name};
use table::{Item, Map, map, number, text};

use crate::documents::document::{Document, MAX_INLINE_VALUE_BYTES};
use crate::documents::entries::{MAX_MAPS_BYTES, last_of_each, row};

/// Builds a new document: its item with tags and flags, and rows for the tags that do not fit.
#[must_use]
pub fn new_document(item: Item, tags: &[(String, String)], row_key: impl Fn(&Name) -> Key) -> (Item, Vec<Item>) {
    new_document_with(MAX_INLINE_VALUE_BYTES, item, tags, row_key)
}

/// Builds a new document whose limit for inline values ([`Document::inline_value`]) is not the
/// default.
#[must_use]
pub fn new_document_with(
    inline_value: usize,
    item: Item,
    tags: &[(String, String)],
    row_key: impl Fn(&Name) -> Key,
) -> (Item, Vec<Item>) {
    let mut room = MAX_MAPS_BYTES;
    let mut rows = Vec::new();
    (begin(inline_value, item, (TAGS, TAG_ROWS.name()), tags, row_key, &mut room, &mut rows), rows)
}

/// Builds a new document with params and tags.
#[must_use]
pub fn new_document_with_params(
    item: Item,
    params: &[(String, String)],
    tags: &[(String, String)],
    document: &impl Document,
) -> (Item, Vec<Item>) {
    let mut room = MAX_MAPS_BYTES;
    let mut rows = Vec::new();
    let param_row = |param: &Name| document.param_row(param);
    let tag_row = |tag: &Name| document.tag_row(tag);
    let inline = document.inline_value();
    let item = begin(inline, item, (PARAMS, PARAM_ROWS.name()), params, param_row, &mut room, &mut rows);
    (begin(inline, item, (TAGS, TAG_ROWS.name()), tags, tag_row, &mut room, &mut rows), rows)
}

/// Adds one map to a new document, with as many entries as fit. If entries are left over, sets the
/// flag that the document has rows.
fn begin(
    inline_value: usize,
    item: Item,
    (attribute, flag): (Attribute<Texts>, &str),
    entries: &[(String, String)],
    row_key: impl Fn(&Name) -> Key,
    room: &mut usize,
    rows: &mut Vec<Item>,
) -> Item {
    let mut inline = Map::new();
    let mut item = item;
    for (key, value) in last_of_each(entries) {
        let bytes = key.len() + value.len();
        if value.len() <= inline_value && bytes <= *room {
            *room -= bytes;
            inline.insert(entry_name(key).into_owned(), text(value));
        } else {
            if value.len() <= MAX_INLINE_VALUE_BYTES {
                item = item.with(FULL, number(1));
            }
            rows.push(row(row_key(&Name::from(key)), key, value));
            item = item.with(flag, number(1));
        }
    }
    item.with(attribute, map(inline))
}
