//! The items that contain the spans of a trace before it is packed. Each export of a trace's spans
//! is one item, or several parts. An export that is repeated replaces its items. The items are in a partition of the
//! experiment to which the spans were sent, so an export that names a trace of another experiment
//! cannot affect that trace's spans.

use std::cmp::Ordering;

use entities::StoredTrace;
use entities::attributes::{ADDS_ONLY, ARRIVED, CONTENT, PARTS};
use key_schema::{Key, Ordinal, WideDigest, rows};
use mlflow_api::{Error, ExperimentId, Result, TraceId};
use spans::Span;
use table::{Condition, Failure, Item, Table, bytes, number};

/// Maximum size in bytes of one part. An item may have 400 KB, including its key and names.
const MAX_PART_BYTES: usize = 380 << 10;

/// An item with spans that is stored with a trace.
#[derive(Clone, Debug)]
pub struct StoredSpans {
    key: Key,
    /// The item's `ARRIVED`. If the same spans are exported again, the item gets another one.
    arrived: i64,
}

impl StoredSpans {
    pub(crate) fn of(item: &Item) -> Option<Self> {
        Some(Self { key: item.key()?, arrived: item.get(ARRIVED)? })
    }

    /// Compares the precedence of two items of one trace: the greater one replaces spans of the other.
    pub(crate) fn by_precedence(&self, other: &Self) -> Ordering {
        (self.arrived, &self.key.sk).cmp(&(other.arrived, &other.key.sk))
    }

    /// Deletes the item, unless it has been written again. The trace may have been deleted, and the same
    /// spans exported once more.
    pub(crate) async fn delete(&self, table: &Table) -> table::Result<()> {
        match table.delete(&self.key, &Condition::Equals(ARRIVED.into(), number(self.arrived))).await {
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

/// `ARRIVED` of the spans in a block. Copies sort before it, and exports after it.
pub(crate) const BLOCK_ARRIVAL: i64 = 0;

/// `ARRIVED` of copies from a mark, to which the document's `EDITS` are added. They are less than 2^57, so
/// the ranges do not overlap.
const MARK_COPY_ARRIVAL: i64 = i64::MIN / 2;
/// `ARRIVED` of copies from a block, to which the document's `EDITS` are added.
const BLOCK_COPY_ARRIVAL: i64 = i64::MIN / 4;
/// Difference of `EDITS` from which two versions of a document are not those of the same trace, because it
/// was deleted and created again. `EDITS` of a new document is a random multiple of this number.
const MAX_EDITS: u64 = 1 << 24;

/// Checks whether spans with this `ARRIVED` may belong to a trace with these `EDITS`. Copies of a deleted
/// trace do not belong to one that is created later with the same id.
pub(crate) fn may_belong_to(arrived: i64, edits: i64) -> bool {
    let copied = match arrived {
        BLOCK_COPY_ARRIVAL..-1 => arrived.saturating_sub(BLOCK_COPY_ARRIVAL),
        ..BLOCK_COPY_ARRIVAL => arrived.saturating_sub(MARK_COPY_ARRIVAL),
        _ => return true,
    };
    copied.abs_diff(edits) < MAX_EDITS
}

/// Where the spans were before they were copied to an item under their trace's key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CopySource {
    /// The mark with spans that the document refers to.
    Mark,
    /// The block that contains the trace.
    Block,
}

/// Returns the items with copies of spans, given the trace's document and the compressed spans.
///
/// A suspended request may write its copies late, after later versions of the spans were exported and
/// packed. Therefore copies never replace spans of a block or of an export, nor copies that were made from
/// a later version of the document. Their keys depend on this version, so that a packer that has read earlier
/// items does not delete them.
///
/// # Errors
/// Returns an internal error if there are more parts than can be counted.
pub(crate) fn copy_items(document: &StoredTrace, source: CopySource, parts: Vec<Vec<u8>>) -> Result<Vec<Item>> {
    let (name, first): (&[u8], _) = match source {
        CopySource::Mark => (b"copy of a mark", MARK_COPY_ARRIVAL),
        CopySource::Block => (b"copy of a block", BLOCK_COPY_ARRIVAL),
    };
    let digest = WideDigest::of_bytes(&[name, &document.edits().to_be_bytes(), &parts.concat()].concat());
    items_of(document.experiment(), document.id(), digest, first.saturating_add(document.edits()), parts)
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
    let parts = packed_parts(spans);
    // The digest covers the packed bytes. If another version packs the spans differently, the
    // result is therefore a separate export. The prefix ensures that the keys of exports that only
    // add never collide with those of other exports.
    let prefix: &[u8] = if adds_only { b"adds only" } else { b"" };
    let digest = WideDigest::of_bytes(&[prefix, &parts.concat()].concat());
    let items = items_of(experiment, trace, digest, arrived, parts)?.into_iter();
    Ok(items.map(|item| if adds_only { item.with(ADDS_ONLY, number(1)) } else { item }).collect())
}

fn items_of(
    experiment: ExperimentId,
    trace: &TraceId,
    digest: WideDigest,
    arrived: i64,
    parts: Vec<Vec<u8>>,
) -> Result<Vec<Item>> {
    let count = u32::try_from(parts.len()).map_err(Error::internal)?;
    let item = |(part, content): (u32, Vec<u8>)| {
        Item::new(rows::TraceSpans::key(&experiment, trace, &digest, &Ordinal(part)))
            .with(ARRIVED, number(arrived))
            .with(PARTS, number(count))
            .with(CONTENT, bytes(content))
    };
    Ok((0..).zip(parts).map(item).collect())
}

/// Returns the compressed spans of an export, in parts that fit into an item.
pub(crate) fn packed_parts(spans: &[Span]) -> Vec<Vec<u8>> {
    spans::pack(spans, MAX_PART_BYTES).parts
}
