//! Releases the table's own copies of packed traces: replaces their documents by pointers, and
//! deletes the spans that are stored with them, because a block contains both.
//!
//! The block is written first. A pointer replaces a document only if the document is still the one
//! in the block, and the spans are deleted only if a pointer has replaced the document. The mark of
//! the trace is deleted last.

use std::collections::{HashMap, HashSet};

use artifact_store::Archive;
use entities::attributes::{EDITS, RELEASED};
use entities::{StoredTrace, TracePointer, TraceRow};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::{Error, Result, TraceId};
use table::{Condition, Failure, Query, Table, Update, number};

use crate::block::Block;
use crate::block_reader::read_packed_spans;
use crate::span_items::{CopySource, StoredSpans, copy_items, packed_parts};
use crate::trace_key::{TraceKey, TracePartition};
use crate::trace_reader::MAX_ATTEMPTS;

/// Number of pointers that are written concurrently.
const CONCURRENCY: usize = 16;

/// A trace that a block contains.
#[derive(Clone, Debug)]
pub struct PackedTrace {
    /// The document in the block.
    pub document: StoredTrace,
    /// The items with spans that are stored with the trace and that the block contains.
    pub spans: Vec<StoredSpans>,
}

/// Replaces the documents of traces by pointers, and deletes the spans that are stored with them.
/// Traces that have changed since they were packed are left as they are. The caller holds the lock
/// of the partition. Returns the traces that were released. Takes one request per trace, and one per
/// item of spans. Costs one write unit per KB of each document and of each item of spans.
///
/// # Errors
/// Returns failures of the table. The call can then be repeated.
pub async fn release_traces(table: &Table, traces: Vec<PackedTrace>) -> table::Result<HashSet<TraceId>> {
    let pointers = traces.into_iter().map(|PackedTrace { document, spans }| async move {
        let is_released = put_pointer(table, &document).await?;
        Ok::<_, Failure>(is_released.then(|| (document.id().clone(), spans)))
    });
    let released: Vec<_> =
        stream::iter(pointers.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect().await?;
    let (released, spans): (HashSet<TraceId>, Vec<Vec<StoredSpans>>) = released.into_iter().flatten().unzip();
    let deletions = spans.into_iter().map(|spans| delete_in_order(table, spans));
    stream::iter(deletions.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    Ok(released)
}

/// Deletes items with spans of one trace, those with the lowest precedence first. If the deletion is
/// interrupted, the items that are left do not replace later versions of spans in the block.
async fn delete_in_order(table: &Table, mut spans: Vec<StoredSpans>) -> table::Result<()> {
    spans.sort_by(StoredSpans::by_precedence);
    for item in spans {
        item.delete(table).await?;
    }
    Ok(())
}

/// Replaces a document by a pointer, unless it has changed. Returns whether the table contains the
/// pointer.
async fn put_pointer(table: &Table, document: &StoredTrace) -> table::Result<bool> {
    let pointer = TracePointer::item(document);
    let edits = pointer.get(EDITS);
    let is_same = Condition::Equals(EDITS.into(), number(document.edits()));
    match table.put(pointer, &is_same).await {
        Ok(()) => Ok(true),
        // An earlier attempt, whose response was lost or after which the pass was interrupted, has
        // written the pointer.
        Err(Failure::Refused { item: Some(item), .. }) => {
            let is_pointer = matches!(TraceRow::of(item.clone()), Ok(TraceRow::Pointer(_)));
            Ok(is_pointer && item.get(EDITS) == edits)
        }
        Err(Failure::Refused { .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Releases the table's own copies of the traces of a block that was packed in an earlier layout, except
/// for traces with a mark. Does nothing if they are released already. The caller holds the lock of
/// the partition. Takes one request for the keys of the spans of each trace whose spans are in the
/// block, one for marks, as many as [`release_traces`], and one to record that the block is
/// released.
///
/// # Errors
/// Returns failures of the table, and an internal error if the block cannot be read. The call can then
/// be repeated.
pub async fn release_block(table: &Table, block: &Block) -> Result<()> {
    if block.is_released() {
        return Ok(());
    }
    let core = block.core()?;
    let mut places = core.iter();
    // Spans that are not in the block stay with their traces.
    let groups = block.groups().iter().flat_map(|group| std::iter::repeat_n(group.digest.is_some(), group.traces));
    let has_spans: HashMap<&TraceId, bool> =
        groups.zip(&mut places).map(|(has_spans, trace)| (&trace.place.trace, has_spans)).collect();
    let reads = block.traces()?.into_iter().map(|document| async {
        let is_here = has_spans.get(document.id()).copied().unwrap_or_default();
        let spans = if is_here { stored_spans(table, &document).await? } else { Vec::new() };
        Ok::<_, Failure>(PackedTrace { document, spans })
    });
    let mut traces: Vec<_> =
        stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect().await?;
    // Writers put a mark before they add spans, and only the holder of the lock deletes marks. If a
    // trace has no mark now, the spans that were read before are in the block. Otherwise the packer
    // releases the trace when it packs the changes.
    let marked = marks_within(table, block).await?;
    traces.retain(|trace| !marked.contains(&TraceKey::of(&trace.document)));
    release_traces(table, traces).await?;
    let is_same = Condition::Equals(EDITS.into(), number(block.edits()));
    match table.apply(&Update::new(block.key()).set(RELEASED, number(1)).only_if(is_same)).await {
        Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}

/// Returns the places of a block's traces that have marks.
async fn marks_within(table: &Table, block: &Block) -> Result<HashSet<TraceKey>> {
    let newest = block.core()?.first().map(|trace| trace.place.text());
    let range = block.partition().marks_until(block.end());
    let range = newest.into_iter().fold(range, |range, newest| range.starting(&newest));
    let marks = table.query(Query::of(range)).await?;
    Ok(marks.iter().filter_map(|mark| TraceKey::of_key(&mark.key()?)).collect())
}

async fn stored_spans(table: &Table, trace: &StoredTrace) -> table::Result<Vec<StoredSpans>> {
    let spans = rows::TraceSpans::all(&trace.experiment(), trace.id());
    Ok(table.query(Query::of(spans).for_removal()).await?.iter().filter_map(StoredSpans::of).collect())
}

/// Copies the spans that a block contains to items under the trace's key, before the trace leaves the
/// block's range because its start time changes. Takes three requests.
///
/// # Errors
/// Returns failures of the table, and an internal error if the spans cannot be read.
pub async fn restore_spans(table: &Table, archive: &Archive, trace: &StoredTrace) -> Result<()> {
    for _ in 0..MAX_ATTEMPTS {
        let (partition, place) = (TracePartition::of(trace), TraceKey::of(trace));
        let Some(spans) = read_packed_spans(table, archive, &partition, &place).await? else { continue };
        if spans.is_empty() {
            return Ok(());
        }
        let items = copy_items(trace, CopySource::Block, packed_parts(&spans))?;
        return Ok(table.write_many(items, &[]).await?);
    }
    // The trace was changed or deleted in the meantime, so the write of its document will fail.
    Err(Error::unavailable("the trace is being packed"))
}
