//! The items of a table, and their sizes as DynamoDB bills them.

use std::collections::BTreeMap;

use key_schema::Key;
use key_schema::definition::{Index, PK, SK};
use table::Item;
use test_site::{TABLE, TestEnvironment, key_of};

/// Bytes that DynamoDB bills for each item, and for each entry of an index, in addition to its
/// content.
const OVERHEAD: usize = 100;

/// Bytes and number of items of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ItemTotal {
    pub(super) items: usize,
    pub(super) bytes: usize,
}

/// Totals by kind of item.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TotalsByKind(pub(super) BTreeMap<&'static str, ItemTotal>);

impl TotalsByKind {
    /// Adds an item, or an entry of an index, whose content has a size.
    pub(super) fn add(&mut self, kind: &'static str, size: usize) {
        let total = self.0.entry(kind).or_default();
        total.items += 1;
        total.bytes += size + OVERHEAD;
    }
}

/// Returns the size of an item's entry in an index, without the overhead. Returns `None` if the item
/// is not in the index. All indexes project only keys.
pub(super) fn entry_size(item: &Item, index: &Index) -> Option<usize> {
    let size = |name: &str| Some(name.len() + item.0.get(name)?.as_s().ok()?.len());
    let partition = if index.is_global() { size(index.partition)? } else { 0 };
    Some(size(PK)? + size(SK)? + partition + size(index.sort)?)
}

/// Calls a function for each item of the table.
pub(super) async fn for_each_item(site: &TestEnvironment, mut visit: impl FnMut(&Key, &Item)) {
    let keys: Vec<_> = site.engine.items(TABLE).await.unwrap().iter().map(key_of).collect();
    for keys in keys.chunks(100) {
        for (key, item) in &site.table.get_many(keys).await.unwrap() {
            visit(key, item);
        }
    }
}

/// Returns a number of items or bytes per entity.
pub(super) fn mean(total: usize, entities: u32) -> f64 {
    f64::from(u32::try_from(total).unwrap()) / f64::from(entities)
}
