//! The items that refer to objects of the archive.

use std::collections::BTreeSet;

use entities::object_of_segments;
use key_schema::rows;
use mlflow_api::{ArchiveObject, Error, Result};
use table::Item;
use trace_blocks::{Block, objects};

/// Returns the objects of the archive that an item refers to. Every kind of item that can be a
/// referrer has a case here.
///
/// # Errors
/// Returns an internal error for an item that cannot be read, or that cannot be a referrer. Its objects
/// must be kept.
pub(super) fn referenced_objects(item: &Item) -> Result<BTreeSet<ArchiveObject>> {
    let key = item.key().ok_or_else(|| Error::internal("an item has no key"))?;
    if rows::TraceBlock::parse(&key).is_some() {
        return Block::of(item.clone()).map(|block| objects(block.archived()));
    }
    if let Some((_, object)) = object_of_segments(item) {
        return Ok(BTreeSet::from([object]));
    }
    Err(Error::internal(format!("{} cannot refer to the archive", key.text())))
}
