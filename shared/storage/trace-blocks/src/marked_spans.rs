//! Marks with spans. The mark that an export writes for a new trace also has the trace's spans, which
//! costs less than a separate item. The attribute `in_mark` of the trace's document refers to this
//! mark (`docs/adr/0093-spans-in-marks.md`).

use entities::attributes::{ARRIVED, CONTENT, MARKED_AT, PARTS};
use entities::{StoredTrace, failed};
use key_schema::definition::{PK, SK};
use key_schema::{Key, Ordinal, WideDigest, rows};
use table::{Condition, Failure, Item, Result, Table, bytes, number};

use crate::protocol_times::QUIET_MARK_AGE;
use crate::span_items::{CopySource, copy_items};
use crate::trace_key::{TraceKey, TracePartition};

/// Returns the digest of the export whose spans an item has, and the item of a mark with these spans.
/// `None` if the item has only a part of the export, or only adds to a trace.
#[must_use]
pub fn mark_with_spans(
    mark: Item,
    partition: &TracePartition,
    place: &TraceKey,
    spans: &Item,
) -> Option<(WideDigest, Item)> {
    let row = rows::TraceSpans::parse(&spans.key()?)?;
    let (arrived, content) = (spans.get(ARRIVED)?, spans.bytes(CONTENT)?);
    let mut item = Item::new(partition.mark_with_spans_key(place, &row.export));
    item.0.extend(mark.0.into_iter().filter(|(name, _)| name != PK && name != SK));
    Some((row.export, item.with(ARRIVED, number(arrived)).with(CONTENT, bytes(content.to_vec()))))
}

/// Returns the key of the mark with spans that a document refers to, if it refers to one.
#[must_use]
pub fn in_mark_key(trace: &StoredTrace) -> Option<Key> {
    let export = trace.in_mark()?;
    Some(TracePartition::of(trace).mark_with_spans_key(&TraceKey::of(trace), &export))
}

/// Returns the item that stores the spans of a mark under their trace's key. `None` if the mark has no
/// spans.
#[must_use]
pub fn spans_of_mark(mark: &Item) -> Option<Item> {
    let row = rows::TraceMarkWithSpans::parse(&mark.key()?)?;
    let (arrived, content) = (mark.get(ARRIVED)?, mark.bytes(CONTENT)?);
    let item = Item::new(rows::TraceSpans::key(&row.experiment, &row.trace, &row.export, &Ordinal(0)))
        .with(ARRIVED, number(arrived))
        .with(PARTS, number(1))
        .with(CONTENT, bytes(content.to_vec()));
    Some(item)
}

/// Copies the spans of a mark to an item under the key of a trace, given its document. Takes one request.
///
/// # Errors
/// Returns failures of the table.
pub async fn copy_spans_of_mark(table: &Table, document: &StoredTrace, mark: &Item) -> Result<()> {
    let Some(content) = mark.bytes(CONTENT) else { return Ok(()) };
    let items = copy_items(document, CopySource::Mark, vec![content.to_vec()]).map_err(failed)?;
    table.write_many(items, &[]).await
}

/// Copies the spans in a trace's mark to an item under the trace's key. Call this before the trace's
/// start time changes, because the new document cannot refer to a mark at the old time. Takes two
/// requests.
///
/// # Errors
/// Returns failures of the table.
pub async fn restore_marked_spans(table: &Table, trace: &StoredTrace) -> Result<()> {
    let Some(key) = in_mark_key(trace) else { return Ok(()) };
    match table.get(&key).await? {
        Some(mark) => copy_spans_of_mark(table, trace, &mark).await,
        // The trace was packed or deleted since it was read, so the write of its document will fail.
        None => Ok(()),
    }
}

/// Deletes the mark with spans that a trace's document referred to. Call this after deleting the
/// document, or replacing it by one without the reference. Another mark, without spans, must exist for the
/// trace.
/// A mark that is not quiet is left to the packer, because an export may be about to create the trace
/// again and rely on the mark. `now` is the current time in ms. Takes one request, or none if the
/// document did not refer to a mark.
///
/// # Errors
/// Returns failures of the table.
pub async fn drop_marked_spans(table: &Table, document: &StoredTrace, now: i64) -> Result<()> {
    let Some(key) = in_mark_key(document) else { return Ok(()) };
    let is_quiet = Condition::Below(MARKED_AT.into(), number(now.saturating_sub(QUIET_MARK_AGE)));
    match table.delete(&key, &is_quiet).await {
        Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
        Err(failure) => Err(failure),
    }
}
