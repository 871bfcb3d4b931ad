//! The items of a table, and their sizes as DynamoDB bills them.

use std::collections::BTreeMap;

use key_schema::Key;
use table::Item;
use test_site::{TABLE, TestEnvironment, key_of};

/// Bytes that DynamoDB bills for each item in addition to its content.
const OVERHEAD: usize = 100;

/// Bytes by kind of item.
#[derive(Debug, Default)]
pub(super) struct TotalsByKind(pub(super) BTreeMap<&'static str, usize>);

impl TotalsByKind {
    /// Adds an item whose content has a size.
    pub(super) fn add(&mut self, kind: &'static str, size: usize) {
        *self.0.entry(kind).or_default() += size + OVERHEAD;
    }
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

/// Returns a number of bytes per entity.
pub(super) fn mean(total: usize, entities: u32) -> f64 {
    f64::from(u32::try_from(total).unwrap()) / f64::from(entities)
}
