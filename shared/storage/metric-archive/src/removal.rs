//! Removes expired segments from the archive.

use entities::archived_objects::drop_later;
use entities::attributes::NEWEST;
use entities::{RunLocation, object_of_segments};
use key_schema::rows;
use mlflow_api::Result;
use table::{Item, Query, Table};

use crate::is_over;

/// Returns the items with archived segments of a run whose points are all older than `before`, in
/// ms. Returns none if the run has been resumed, or has points waiting to be packed.
///
/// Takes one request for a run without archived segments. Otherwise takes one per MB of items, and
/// one more.
///
/// # Errors
/// Returns failures of the table.
pub async fn expired_segments(table: &Table, at: &RunLocation, before: i64) -> Result<Vec<Item>> {
    let mut items = table.query(Query::of(rows::ArchivedSegments::all(&at.run).range())).await?;
    items.retain(|item| item.get(NEWEST).is_some_and(|newest| newest < before));
    if items.is_empty() {
        return Ok(items);
    }
    // The run is read after the items, so that a run that has been resumed keeps its history.
    let run = table.get(&at.key()).await?;
    Ok(if run.is_some_and(|run| is_over(&run, before)) { items } else { Vec::new() })
}

/// Deletes items with archived segments, and schedules the deletion of their objects. May be
/// interrupted at any point and repeated. Takes two requests per item, of one write unit per KB of
/// the item and one for its object.
///
/// # Errors
/// Returns failures of the table.
pub async fn remove_segments(table: &Table, items: &[Item]) -> Result<()> {
    for item in items {
        let Some((key, object)) = object_of_segments(item) else { continue };
        drop_later(table, [object], &key).await?;
        table.write_many(Vec::new(), &[key]).await?;
    }
    Ok(())
}
