//! Packs traces into a block.

use entities::attributes::{ARCHIVED_SPANS, BLOCK_SPANS, CONTENT, CORE, COUNT, EDITS, HEADS, NEWEST, WRITTEN};
use entities::{StoredTrace, unreadable};
use key_schema::index::TraceBlocks;
use key_schema::{Descending, WideDigest};
use mlflow_api::{Error, Result, TraceId};
use spans::Span;
use table::{Condition, Item, Update, bytes, number};

use crate::archived_spans::{self, ArchivedGroups};
use crate::block::Block;
use crate::columns::{self, TraceColumns};
use crate::compression::compress;
use crate::document_encoding;
use crate::groups::{self, SpanGroup};
use crate::trace_key::{TraceKey, TracePartition};

/// Maximum number of traces in a block.
pub const MAX_TRACES: usize = 128;
/// Maximum number of bytes in a block before compression. Even if they compress poorly, they fit
/// into an item of 400 KB.
pub const MAX_BLOCK_BYTES: usize = 350 << 10;
/// Maximum number of uncompressed bytes that one trace takes in a block. A full block therefore has
/// at least 21 traces.
pub const MAX_TRACE_BYTES: usize = 16 << 10;

/// A trace to be packed.
#[derive(Clone, Debug)]
pub struct TraceToPack {
    /// The trace.
    pub trace: StoredTrace,
    /// The trace's spans.
    pub spans: SpansToPack,
}

/// The spans of a trace to be packed.
#[derive(Clone, Debug)]
pub enum SpansToPack {
    /// Spans that have been read and are packed now.
    Read(PackedSpans),
    /// Spans in an existing group that is kept unchanged. The group may also have the spans of
    /// neighboring traces.
    In(WideDigest),
    /// Spans that are only stored with the trace itself.
    Elsewhere,
}

/// Spans of one trace, encoded as in a group. They take a fraction of the memory of decoded spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedSpans(pub(crate) Vec<u8>);

impl SpansToPack {
    /// Encodes all spans of a trace.
    #[must_use]
    pub fn of(trace: &TraceId, spans: &[Span]) -> Self {
        Self::of_message(trace, &spans::message(spans))
    }

    pub(crate) fn of_message(trace: &TraceId, message: &[u8]) -> Self {
        let packed = groups::packed(trace, message);
        if packed.len() <= MAX_BLOCK_BYTES { Self::Read(PackedSpans(packed)) } else { Self::Elsewhere }
    }
}

/// The items of a block.
#[derive(Clone, Debug)]
pub struct BlockItems {
    /// The block's item.
    pub block: Item,
    /// Items with the block's spans, except for the groups that are kept from earlier blocks. They
    /// must be written before the block.
    pub spans: Vec<Item>,
}

/// Returns the number of uncompressed bytes that a trace takes in a block. The sum over all traces
/// of a block is limited to [`MAX_BLOCK_BYTES`].
///
/// # Errors
/// Returns an internal error if the trace's document cannot be read.
pub fn room(trace: &StoredTrace) -> Result<usize> {
    let core = core_of(trace)?;
    let mut written = columns::write(&[core]);
    document_encoding::put(&mut written, trace).ok_or_else(|| unreadable(trace.item(), "a trace"))?;
    Ok(written.len())
}

fn core_of(trace: &StoredTrace) -> Result<TraceColumns> {
    TraceColumns::of(trace).ok_or_else(|| unreadable(trace.item(), "a trace"))
}

/// Packs traces into a block whose range ends at `end`. `edits` identifies this version of the
/// block, and `written` is the current time in ms. A block can have at most [`MAX_TRACES`] traces
/// and [`MAX_BLOCK_BYTES`] bytes.
///
/// # Errors
/// Returns an internal error if there are no traces, or one of them cannot be read or must not be
/// in this block.
pub fn pack(
    partition: &TracePartition,
    end: &TraceKey,
    traces: Vec<TraceToPack>,
    edits: i64,
    written: i64,
) -> Result<BlockItems> {
    let mut traces: Vec<_> = traces.into_iter().map(|trace| (TraceKey::of(&trace.trace), trace)).collect();
    traces.sort_by(|(one, _), (other, _)| one.cmp(other));
    let is_one_of_it = |(place, trace): &(TraceKey, TraceToPack)| partition.holds(&trace.trace, place) && place <= end;
    let is_sound = traces.iter().all(is_one_of_it) && traces.is_sorted_by(|(one, _), (other, _)| one < other);
    let Some((newest, _)) = traces.first().filter(|_| is_sound && traces.len() <= MAX_TRACES) else {
        return Err(Error::internal("traces that do not form a block cannot be packed"));
    };
    let newest = newest.time;
    let core = traces.iter().map(|(_, trace)| core_of(&trace.trace)).collect::<Result<Vec<_>>>()?;
    let mut heads = Vec::new();
    for (_, TraceToPack { trace, .. }) in &traces {
        document_encoding::put(&mut heads, trace).ok_or_else(|| unreadable(trace.item(), "a trace"))?;
    }
    let count = u32::try_from(traces.len()).map_err(Error::internal)?;
    let (groups, spans) = in_groups(partition, traces.into_iter().map(|(_, trace)| trace).rev())?;
    let packed = |content: &[u8]| compress(content).map(bytes).map_err(Error::internal);
    let block = Item::new(partition.block_key(end))
        .with(NEWEST, number(newest))
        .with(COUNT, number(count))
        .with(EDITS, number(edits))
        .with(WRITTEN, number(written))
        .with(CORE, packed(&columns::write(&core))?)
        .with(HEADS, packed(&heads)?)
        .with(BLOCK_SPANS, bytes(groups::write(&groups)))
        .indexed(TraceBlocks::key(&Descending(end.time), &end.trace));
    Ok(BlockItems { block, spans })
}

/// Adds the archived groups that a new version of a block keeps from earlier versions to the block's
/// item. `written` are the items with spans that are written with the block. Their groups are not
/// archived any more.
///
/// # Errors
/// Returns an internal error if the block cannot be read.
pub fn keep_archived(block: Item, written: &[Item], archived: &ArchivedGroups) -> Result<Item> {
    if archived.is_empty() {
        return Ok(block);
    }
    let partition = block.key().as_ref().and_then(TracePartition::of_key);
    let groups = block.bytes(BLOCK_SPANS).and_then(|groups| groups::read(groups, archived));
    let (Some(partition), Some(groups)) = (partition, groups) else { return Err(unreadable(&block, "a block")) };
    let is_written = |digest: &WideDigest| {
        let key = partition.spans_key(digest);
        written.iter().any(|item| item.key().as_ref() == Some(&key))
    };
    let kept = groups.iter().filter_map(|group| group.digest.zip(group.archived));
    let kept: ArchivedGroups = kept.filter(|(digest, _)| !is_written(digest)).collect();
    Ok(if kept.is_empty() { block } else { block.with(ARCHIVED_SPANS, bytes(archived_spans::write(&kept))) })
}

/// Returns the update of a block that sets its archived groups, on condition that the block has not
/// changed since it was read. `edits` identifies the new version of the block.
#[must_use]
pub fn with_archived(block: &Block, archived: &ArchivedGroups, edits: i64) -> Update {
    let is_as_read = Condition::Equals(EDITS.into(), number(block.edits()));
    Update::new(block.key())
        .set(ARCHIVED_SPANS, bytes(archived_spans::write(archived)))
        .set(EDITS, number(edits))
        .only_if(is_as_read)
}

/// Groups spans, and returns the groups newest first. Groups are formed beginning with the oldest
/// trace. New traces are added at the newer end, and therefore leave older groups unchanged.
fn in_groups(
    partition: &TracePartition,
    oldest_first: impl Iterator<Item = TraceToPack>,
) -> Result<(Vec<SpanGroup>, Vec<Item>)> {
    let (mut groups, mut items): (Vec<SpanGroup>, Vec<Item>) = (Vec::new(), Vec::new());
    let (mut open, mut size) = (Vec::new(), 0);
    let mut close = |open: &mut Vec<Vec<u8>>, groups: &mut Vec<SpanGroup>| -> Result<()> {
        if !open.is_empty() {
            let (digest, content) = groups::content(open);
            let content = compress(&content).map_err(Error::internal)?;
            items.push(Item::new(partition.spans_key(&digest)).with(CONTENT, bytes(content)));
            groups.push(SpanGroup { digest: Some(digest), traces: open.len(), archived: None });
            open.clear();
        }
        Ok(())
    };
    for to_pack in oldest_first {
        let known = match to_pack.spans {
            SpansToPack::Read(PackedSpans(packed)) => {
                if size + packed.len() > MAX_BLOCK_BYTES {
                    close(&mut open, &mut groups)?;
                    size = 0;
                }
                size += packed.len();
                open.push(packed);
                continue;
            }
            SpansToPack::In(digest) => Some(digest),
            SpansToPack::Elsewhere => None,
        };
        close(&mut open, &mut groups)?;
        size = 0;
        match groups.last_mut().filter(|last| last.digest == known) {
            Some(last) => last.traces += 1,
            None => groups.push(SpanGroup { digest: known, traces: 1, archived: None }),
        }
    }
    close(&mut open, &mut groups)?;
    groups.reverse();
    Ok((groups, items))
}
