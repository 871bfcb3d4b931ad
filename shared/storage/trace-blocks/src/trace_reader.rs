//! Reads traces by their IDs, wherever their documents are: under the traces' own keys, or in
//! blocks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use entities::{LocatedTrace, StoredTrace, TraceItem, TracePointer, TraceRow, locate_traces};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::{Error, Result, TraceId};
use table::{Item, Query, Table};

use crate::block::Block;
use crate::trace_key::{TraceKey, TracePartition};

/// Number of partitions whose blocks are read concurrently.
const CONCURRENCY: usize = 16;
/// Maximum number of times that a pointer is followed. A pointer that was read leads nowhere if the
/// trace was changed and its block was rewritten in the meantime. The pointer is then read again.
pub(crate) const MAX_ATTEMPTS: usize = 5;

/// A trace whose document was read, from the trace's own key or from a block.
#[derive(Clone, Debug)]
pub struct ReadTrace {
    /// The document.
    pub document: StoredTrace,
    /// The block that contained the document, which leads to the spans. `None` if the document was
    /// under the trace's own key.
    pub block: Option<Arc<Block>>,
}

/// Reads those of the given traces that exist. Stubs are skipped. Takes one request per hundred
/// traces, and one per block that contains some of the traces. Costs one read unit per 4 KB of each
/// document or pointer, and of each block.
///
/// # Errors
/// Returns failures of the table, and an internal error if a document or a block cannot be read.
pub async fn read_traces(table: &Table, ids: &[&TraceId]) -> Result<HashMap<TraceId, StoredTrace>> {
    read_documents(table, locate_traces(table, ids).await?.into_values().collect()).await
}

/// Reads the documents of traces that have been located. Traces that were deleted in the meantime are
/// left out. A trace that was replaced in the meantime may be in another experiment. Takes one request
/// per block that contains some of the traces, and costs one read unit per 4 KB.
///
/// # Errors
/// Returns failures of the table, and an internal error if a document or a block cannot be read.
pub async fn read_documents(table: &Table, traces: Vec<LocatedTrace>) -> Result<HashMap<TraceId, StoredTrace>> {
    follow_all(table, traces, &|document, _| document).await
}

/// Reads the documents of traces like [`read_documents`], and returns the blocks as well, so that the
/// spans can be read without reading the blocks again. All blocks are in memory at the same time.
///
/// # Errors
/// Returns the errors of [`read_documents`].
pub async fn read_with_blocks(table: &Table, traces: Vec<LocatedTrace>) -> Result<HashMap<TraceId, ReadTrace>> {
    follow_all(table, traces, &|document, block| ReadTrace { document, block: block.cloned() }).await
}

/// Reads the documents of traces. `keep` converts a document, and the block that contained it, to the
/// value that is returned for the trace.
async fn follow_all<T>(
    table: &Table,
    traces: Vec<LocatedTrace>,
    keep: &impl Fn(StoredTrace, Option<&Arc<Block>>) -> T,
) -> Result<HashMap<TraceId, T>> {
    let (mut found, mut traces) = (HashMap::new(), traces);
    for _ in 0..MAX_ATTEMPTS {
        let mut pointers = Vec::new();
        for trace in traces {
            match trace {
                LocatedTrace::Document(trace) => drop(found.insert(trace.id().clone(), keep(trace, None))),
                LocatedTrace::Pointer(pointer) => pointers.push(pointer),
            }
        }
        let missed = follow(table, pointers, keep, &mut found).await?;
        if missed.is_empty() {
            return Ok(found);
        }
        traces = locate_traces(table, &missed.iter().collect::<Vec<_>>()).await?.into_values().collect();
    }
    Err(lost(traces.first().map(LocatedTrace::id)))
}

/// Reads the item under a trace's key, if there is one, with the document in place of a pointer.
/// Takes one request, and one more if the trace is packed. Costs one read unit per 4 KB of the item
/// and of the block.
///
/// # Errors
/// Returns failures of the table, and an internal error if the item or the block cannot be read.
pub async fn read_trace_item(table: &Table, id: &TraceId) -> Result<Option<TraceItem>> {
    let item = table.get(&rows::Trace::key(id)).await?;
    resolve_item(table, item).await
}

/// Returns the trace or the stub that an item under a trace's key stands for, such as the item that
/// a refused write returns. Takes no request if the item is not a pointer, and one otherwise.
///
/// # Errors
/// Returns failures of the table, and an internal error if the item or the block cannot be read.
pub async fn resolve_item(table: &Table, item: Option<Item>) -> Result<Option<TraceItem>> {
    let mut item = item;
    for _ in 0..MAX_ATTEMPTS {
        let Some(stored) = item else { return Ok(None) };
        let pointer = match TraceRow::of(stored)? {
            TraceRow::Document(trace) => return Ok(Some(TraceItem::Trace(trace))),
            TraceRow::Stub(stub) => return Ok(Some(TraceItem::Stub(stub))),
            TraceRow::Pointer(pointer) => pointer,
        };
        let id = pointer.id().clone();
        let mut found = HashMap::new();
        follow(table, vec![pointer], &|trace, _| trace, &mut found).await?;
        if let Some(trace) = found.remove(&id) {
            return Ok(Some(TraceItem::Trace(trace)));
        }
        item = table.get(&rows::Trace::key(&id)).await?;
    }
    Err(lost(item.as_ref().and_then(Item::key).as_ref().and_then(rows::Trace::parse).map(|row| row.trace).as_ref()))
}

fn lost(trace: Option<&TraceId>) -> Error {
    let trace = trace.map_or("a trace", TraceId::as_str);
    Error::internal(format!("the block that a pointer to {trace} leads to does not contain the trace"))
}

/// Reads the traces that pointers stand for, and returns the IDs of those that were not found.
async fn follow<T>(
    table: &Table,
    pointers: Vec<TracePointer>,
    keep: &impl Fn(StoredTrace, Option<&Arc<Block>>) -> T,
    found: &mut HashMap<TraceId, T>,
) -> Result<Vec<TraceId>> {
    let mut partitions: BTreeMap<TracePartition, BTreeMap<TraceKey, TracePointer>> = BTreeMap::new();
    for pointer in pointers {
        let place = TraceKey { time: pointer.request_time(), trace: pointer.id().clone() };
        partitions.entry(TracePartition::of_pointer(&pointer)).or_default().insert(place, pointer);
    }
    let reads = partitions.into_iter().map(|(partition, pointers)| follow_in(table, partition, pointers, keep));
    let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY);
    let mut missed = Vec::new();
    while let Some((traces, not_found)) = reads.try_next().await? {
        found.extend(traces);
        missed.extend(not_found);
    }
    Ok(missed)
}

/// Reads the traces of pointers in one partition. Takes one request per block that contains some of
/// them.
async fn follow_in<T>(
    table: &Table,
    partition: TracePartition,
    pointers: BTreeMap<TraceKey, TracePointer>,
    keep: &impl Fn(StoredTrace, Option<&Arc<Block>>) -> T,
) -> Result<(Vec<(TraceId, T)>, Vec<TraceId>)> {
    let (mut found, mut missed) = (Vec::new(), Vec::new());
    let mut pointers = pointers.into_iter().peekable();
    while let Some((place, _)) = pointers.peek() {
        let Some(block) = covering_block(table, &partition, place).await? else {
            missed.extend(pointers.next().map(|(_, pointer)| pointer.id().clone()));
            continue;
        };
        let block = Arc::new(block);
        let traces: HashMap<_, _> = block.traces()?.into_iter().map(|trace| (trace.id().clone(), trace)).collect();
        while let Some((_, pointer)) = pointers.next_if(|(place, _)| place <= block.end()) {
            match traces.get(pointer.id()).and_then(|trace| pointer.resolve(trace)) {
                Some(trace) => found.push((trace.id().clone(), keep(trace, Some(&block)))),
                None => missed.push(pointer.id().clone()),
            }
        }
    }
    Ok((found, missed))
}

/// Reads the block whose range contains a place. Takes one request, and costs one read unit per 4
/// KB.
///
/// # Errors
/// Returns failures of the table, and an internal error if the block cannot be read.
pub(crate) async fn covering_block(
    table: &Table,
    partition: &TracePartition,
    place: &TraceKey,
) -> Result<Option<Block>> {
    let query = Query::of(partition.blocks().starting(&place.text())).limit(1);
    let page = table.query_page(&query).await?;
    page.items.into_iter().next().map(Block::of).transpose()
}
