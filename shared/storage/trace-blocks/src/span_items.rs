//! The items that contain the spans of a trace before it is packed. Each export of a trace's spans
//! is one item, or several parts, and is never rewritten. The items are in a partition of the
//! experiment to which the spans were sent, so an export that names a trace of another experiment
//! cannot affect that trace's spans.

use entities::attributes::{ADDS_ONLY, ARRIVED, CONTENT, PARTS};
use key_schema::{Ordinal, WideDigest, rows};
use mlflow_api::{Error, ExperimentId, Result, TraceId};
use spans::Span;
use table::{Condition, Failure, Item, Table, bytes, number};

/// Maximum size in bytes of one part. An item may have 400 KB, including its key and names.
const MAX_PART_BYTES: usize = 380 << 10;

/// Arrival time of spans that are copied from a mark to an item under their trace's key. Such a copy may be
/// written late, when a block contains a later version of a span. Therefore it arrived before all other
/// spans.
pub(crate) const OF_MARK: i64 = -1;
/// Arrival time of spans that are copied from a block to an item under their trace's key. If the copy is
/// written late, the block may contain a later version of a span.
pub(crate) const OF_BLOCK: i64 = 0;
/// Arrival time of the spans in a block.
pub(crate) const IN_BLOCK: i64 = 1;

/// Stores copies of spans under their trace's key. If an item exists, because the same spans were
/// exported again, it stays, because it may have arrived later. Takes one request per item.
///
/// # Errors
/// Returns failures of the table.
pub(crate) async fn store_copies(table: &Table, items: Vec<Item>) -> table::Result<()> {
    for item in items {
        match table.put(item, &Condition::item_missing()).await {
            Ok(()) | Err(Failure::Refused { .. }) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// Returns the items of one export of a trace's spans that arrived at a time in ms. If `adds_only`
/// is set, because the sender may only add to traces, spans of other exports take precedence over
/// the spans with equal IDs in this export.
///
/// # Errors
/// Returns an internal error if the export has more parts than can be counted.
pub fn span_items(
    experiment: ExperimentId,
    trace: &TraceId,
    spans: &[Span],
    adds_only: bool,
    arrived: i64,
) -> Result<Vec<Item>> {
    let packed = spans::pack(spans, MAX_PART_BYTES);
    // The digest covers the packed bytes. If another version packs the spans differently, the
    // result is therefore a separate export. The prefix ensures that the keys of exports that only
    // add never collide with those of other exports.
    let prefix: &[u8] = if adds_only { b"adds only" } else { b"" };
    let digest = WideDigest::of_bytes(&[prefix, &packed.parts.concat()].concat());
    let parts = u32::try_from(packed.parts.len()).map_err(Error::internal)?;
    let item = |(part, content): (u32, Vec<u8>)| {
        let item = Item::new(rows::TraceSpans::key(&experiment, trace, &digest, &Ordinal(part)))
            .with(ARRIVED, number(arrived))
            .with(PARTS, number(parts))
            .with(CONTENT, bytes(content));
        if adds_only { item.with(ADDS_ONLY, number(1)) } else { item }
    };
    Ok((0..).zip(packed.parts).map(item).collect())
}
