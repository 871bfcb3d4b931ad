//! Reads blocks.

use artifact_store::Archive;
use std::collections::{BTreeSet, HashMap};

use entities::attributes::CONTENT;
use entities::{now_ms, unreadable};
use key_schema::{Key, WideDigest};
use mlflow_api::TraceId;
use spans::Span;
use table::{Failure, Query, Result, Table};

use crate::archived_spans::{ArchivedGroups, GroupError, read_archived};
use crate::block::{Block, failed};
use crate::block_packing::{MAX_TRACES, SpansToPack};
use crate::compression::decompress;
use crate::groups::of_traces;
use crate::trace_key::{TraceKey, TracePartition};
use crate::trace_reader::covering_block;

/// Maximum number of blocks that are read in one request. A block has about 30 KB, and a response
/// of DynamoDB at most 1 MB.
const BATCH_SIZE: usize = 40;
/// Period in ms after a block was split in two, during which a page may contain the older half
/// without the newer one. It is much longer than reading a page takes, to allow for clock skew. If
/// the newer half is still missing afterwards, it was deleted.
const SPLIT_GRACE_MS: i64 = 600_000;

/// Reads, in key order, the blocks whose ranges extend past `behind`, and returns whether there are
/// more. If `behind` is `None`, reading starts with the first block. Reading stops once the blocks
/// have `most_traces` traces. The first block may also have traces before `behind`. Sends one
/// request per 40 blocks, and costs one read unit per 4 KB.
///
/// # Errors
/// Returns failures of the table, and an internal error if a block cannot be read.
pub async fn read_blocks(
    table: &Table,
    partition: &TracePartition,
    behind: Option<&TraceKey>,
    most_traces: usize,
) -> Result<(Vec<Block>, bool)> {
    let read = || read_once(table, partition, behind, most_traces);
    let (blocks, more) = read().await?;
    // A page is not a snapshot. If a block was split during the read, the page may contain only the
    // older half.
    let since = now_ms().saturating_sub(SPLIT_GRACE_MS);
    let is_half = |(before, block): (Option<&TraceKey>, &Block)| {
        block.behind(since).is_some_and(|end| before.is_none_or(|before| *before < end))
    };
    let ends = std::iter::once(behind).chain(blocks.iter().map(|block| Some(block.end())));
    if ends.zip(&blocks).any(is_half) { read().await } else { Ok((blocks, more)) }
}

async fn read_once(
    table: &Table,
    partition: &TracePartition,
    behind: Option<&TraceKey>,
    most_traces: usize,
) -> Result<(Vec<Block>, bool)> {
    let range = match behind {
        // A block that ends exactly at `behind` does not extend past it, so it is skipped.
        Some(place) => partition.blocks().after(&place.text()),
        None => partition.blocks(),
    };
    let mut query = Query::of(range);
    let (mut blocks, mut traces) = (Vec::new(), 0);
    loop {
        // Reads at least two blocks, because the first one may have traces before `behind`, and
        // blocks of large traces have few traces.
        let missing = most_traces.saturating_sub(traces).div_ceil(MAX_TRACES) + usize::from(blocks.is_empty());
        let page = table.query_page(&query.limit(missing.clamp(2, BATCH_SIZE))).await?;
        for item in page.items {
            let block = Block::of(item).map_err(failed)?;
            traces += block.count();
            blocks.push(block);
        }
        match page.next {
            Some(next) if traces < most_traces => query = Query::of(partition.blocks()).starting_at(next),
            next => return Ok((blocks, next.is_some())),
        }
    }
}

/// Reads the spans of traces from these blocks, if the blocks contain them. Other spans are stored
/// with their traces, and are read by [`read_trace_spans`](crate::read_trace_spans). Sends one
/// request per hundred items of spans, or per 16 MB, and costs half a read unit per 4 KB. If spans are
/// archived, sends about one request to the archive per block.
///
/// # Errors
/// Returns failures of the table, an internal error if a block or its spans cannot be read, and
/// [`Failure::Lost`] if archived spans are missing.
pub async fn read_block_spans(
    table: &Table,
    archive: &Archive,
    wanted: &[(&Block, &TraceId)],
) -> Result<HashMap<TraceId, Vec<Span>>> {
    read_groups(table, archive, wanted, false, |_, _, spans| spans).await
}

/// Reads the spans of a packed trace from the block that covers its place. Returns `None` if the
/// block does not contain the trace, or was rewritten since it was read. The spans are empty if the
/// block does not contain the trace's spans, because they are too large. Takes two requests, and
/// costs one read unit per 4 KB of the block and of an item with its spans.
///
/// # Errors
/// Returns failures of the table, and an internal error if the block or its spans cannot be read.
pub(crate) async fn read_packed_spans(
    table: &Table,
    archive: &Archive,
    partition: &TracePartition,
    place: &TraceKey,
) -> Result<Option<Vec<Span>>> {
    let block = covering_block(table, partition, place).await.map_err(failed)?;
    let Some(block) = block else { return Ok(None) };
    match block.has_spans_of(place).map_err(failed)? {
        None => return Ok(None),
        Some(false) => return Ok(Some(Vec::new())),
        Some(true) => {}
    }
    let mut found = read_groups(table, archive, &[(&block, &place.trace)], true, |_, _, spans| spans).await?;
    Ok(found.remove(&place.trace))
}

/// Reads the spans of traces in these blocks in order to pack them again. To save memory, the spans
/// of only one trace are unpacked at a time.
///
/// # Errors
/// Returns failures of the table, and an internal error if a block or its spans cannot be read.
pub async fn read_spans_to_pack(
    table: &Table,
    archive: &Archive,
    wanted: &[(&Block, &TraceId)],
) -> Result<HashMap<TraceId, SpansToPack>> {
    let make = |trace: &TraceId, message: &[u8], _| SpansToPack::of_message(trace, message);
    read_groups(table, archive, wanted, true, make).await
}

async fn read_groups<T>(
    table: &Table,
    archive: &Archive,
    wanted: &[(&Block, &TraceId)],
    is_consistent: bool,
    make: impl Fn(&TraceId, &[u8], Vec<Span>) -> T,
) -> Result<HashMap<TraceId, T>> {
    let mut of_blocks: HashMap<Key, (&Block, BTreeSet<&TraceId>)> = HashMap::new();
    for (block, trace) in wanted {
        of_blocks.entry(block.key()).or_insert_with(|| (block, BTreeSet::new())).1.insert(trace);
    }
    // For the key of each item with spans, and for each archived group, the wanted traces that it
    // contains.
    let mut of_items: HashMap<Key, BTreeSet<TraceId>> = HashMap::new();
    let mut of_archived: HashMap<WideDigest, BTreeSet<TraceId>> = HashMap::new();
    let mut archived = ArchivedGroups::new();
    for (block, traces) in of_blocks.into_values() {
        let core = block.core().map_err(failed)?;
        let mut rest = core.as_slice();
        for group in block.groups() {
            let (here, others) = rest.split_at_checked(group.traces).unwrap_or((rest, &[]));
            rest = others;
            let Some(digest) = group.digest else { continue };
            let here = here.iter().map(|trace| &trace.place.trace).filter(|trace| traces.contains(trace));
            let here: Vec<_> = here.cloned().collect();
            if here.is_empty() {
                continue;
            }
            if let Some(range) = group.archived {
                archived.insert(digest, range);
                of_archived.entry(digest).or_default().extend(here);
            } else {
                of_items.entry(block.partition().spans_key(&digest)).or_default().extend(here);
            }
        }
    }
    // The items never change, because the key contains the hash of the content. An eventually
    // consistent read may miss an item that was written recently.
    let keys: Vec<_> = of_items.keys().cloned().collect();
    let items = if is_consistent { table.get_many(&keys).await? } else { table.get_many_eventually(&keys).await? };
    let mut found = HashMap::new();
    for (key, item) in &items {
        let Some(traces) = of_items.get(key) else { continue };
        let read = || {
            let content = decompress(item.bytes(CONTENT)?)?;
            of_traces(&content, |trace| traces.contains(trace), &make)
        };
        found.extend(read().ok_or_else(|| failed(unreadable(item, "the spans of a block")))?);
    }
    for (digest, content) in read_archived(archive, &archived).await {
        let Some(traces) = of_archived.get(&digest) else { continue };
        let lost = |cause: String| lost_spans(traces, &cause);
        let (_, content) = content.map_err(|error| match error {
            GroupError::Lost(cause) => lost(cause),
            GroupError::Failed(failure) => failure,
        })?;
        let read = of_traces(&content, |trace| traces.contains(trace), &make);
        found.extend(read.ok_or_else(|| lost("an archived group of spans is malformed".to_owned()))?);
    }
    Ok(found)
}

/// Logs why archived spans of traces cannot be read, and returns the failure for clients.
fn lost_spans(traces: &BTreeSet<TraceId>, cause: &str) -> Failure {
    let trace = traces.first().map(TraceId::as_str).unwrap_or_default();
    tracing::error!(cause, trace, "archived spans are lost");
    Failure::Lost(format!(
        "The spans of trace {trace} cannot be read, because an object of the archive is missing or damaged."
    ))
}
