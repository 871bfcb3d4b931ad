//! The spans of one trace, read from the items of its exports and from the block that covers its
//! place.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::pin::pin;
use std::time::Duration;

use artifact_store::Archive;
use entities::attributes::{ADDS_ONLY, ARRIVED, CONTENT, PARTS};
use entities::{StoredTrace, TraceItem, TraceRow, now_ms, read_trace_rows, unreadable};
use futures::future::{Either, select, try_join};
use key_schema::{Segment, rows};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, TraceId};
use spans::Span;
use table::{Failure, Item, Query, Table};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use crate::block::failed;
use crate::block_reader::read_packed_spans;
use crate::marked_spans::{in_mark_key, spans_of_mark};
use crate::protocol_times::{MAX_RELIABLE_MARK_AGE, QUIET_MARK_AGE};
use crate::span_items::{BLOCK_ARRIVAL, StoredSpans, may_belong_to};
use crate::trace_key::{TraceKey, TracePartition};
use crate::trace_reader::{MAX_ATTEMPTS, ReadTrace, read_trace_item};

/// The spans of one trace.
#[derive(Debug, Default)]
pub struct TraceSpans {
    spans: Vec<Span>,
    /// Permit to hold a large trace in memory. No other large trace is read until the permit is
    /// dropped.
    _alone: Option<SemaphorePermit<'static>>,
}

impl TraceSpans {
    /// Returns the spans of a trace, with a permit if the trace is large.
    pub(crate) fn held(spans: Vec<Span>, alone: Option<SemaphorePermit<'static>>) -> Self {
        Self { spans, _alone: alone }
    }
}

impl From<Vec<Span>> for TraceSpans {
    fn from(spans: Vec<Span>) -> Self {
        Self { spans, _alone: None }
    }
}

impl Deref for TraceSpans {
    type Target = Vec<Span>;

    fn deref(&self) -> &Vec<Span> {
        &self.spans
    }
}

/// Serializes the large traces of one request, so that only one of them at a time competes with
/// other requests for memory. Otherwise the request could time out waiting for its own traces.
#[derive(Debug, Default)]
pub struct LargeTraceTurn(Mutex<()>);

impl LargeTraceTurn {
    /// Waits until no large trace is in this process's memory.
    pub(crate) async fn alone(&self) -> Result<SemaphorePermit<'static>> {
        let _turn = self.0.lock().await;
        match select(pin!(LARGE_TRACE_PERMIT.acquire()), pin!(runtime::clock::sleep(LARGE_TRACE_TIMEOUT))).await {
            Either::Left((alone, _)) => alone.map_err(Error::internal),
            Either::Right(_) => {
                let message = "There are too many requests for large traces at this time. Try again later.";
                Err(Error::new(ErrorCode::ResourceExhausted, message))
            }
        }
    }
}

/// Reads all spans of a trace that have arrived so far, sorted by start time after the roots: those
/// that are stored with the trace, and those in the block that covers its place.
///
/// A trace is large if its spans have more than 1 MB, or 2 MB unpacked. Reading a large trace waits
/// until the process has no other large trace in memory, so a caller that holds a large trace must
/// not read another one. Sends one request, and one more per MB. Sends two more if the trace has
/// spans in a block, one if its mark has spans, and one if the trace may have been packed since it was
/// read. Costs one read unit per 4 KB.
///
/// # Errors
/// Returns `BAD_REQUEST` if the spans are too large for any response, and `RESOURCE_EXHAUSTED` if
/// reading them would wait for too long.
pub async fn read_trace_spans(
    table: &Table,
    archive: &Archive,
    trace: &StoredTrace,
    turn: &LargeTraceTurn,
) -> Result<TraceSpans> {
    let mut trace = trace.clone();
    for _ in 0..MAX_ATTEMPTS {
        if let Some(spans) = read_version(table, archive, &trace, turn).await? {
            return Ok(spans);
        }
        // The trace was packed or changed since it was read. A trace that was deleted has no spans.
        let now = read_trace_item(table, trace.id()).await?.and_then(TraceItem::trace);
        let Some(now) = now.filter(|now| now.experiment() == trace.experiment()) else {
            return Ok(TraceSpans::default());
        };
        trace = now;
    }
    Err(Error::internal(format!("the spans of trace {} are not where its document says", trace.id())))
}

/// Reads the spans of a trace for which [`read_block_spans`](crate::read_block_spans) has returned none,
/// because the trace is not packed, its spans are too large for a block, or they were moved after the
/// block was read. Takes as many requests as [`read_trace_spans`], or one, and one more per MB, if
/// they are too large for a block.
///
/// # Errors
/// Returns the errors of [`read_trace_spans`].
pub async fn read_remaining_spans(
    table: &Table,
    archive: &Archive,
    trace: &ReadTrace,
    turn: &LargeTraceTurn,
) -> Result<TraceSpans> {
    let ReadTrace { document, block } = trace;
    if let Some(block) = block
        && block.has_spans_of(&TraceKey::of(document))? == Some(false)
    {
        let items = SpanItems::under_key_of(document);
        let spans = read_own_spans(table, document, items, Vec::new(), turn).await?;
        if !spans.is_empty() {
            return Ok(spans);
        }
    }
    read_trace_spans(table, archive, document, turn).await
}

/// Reads the spans of a trace in this version. Returns `None` if the version is not current any
/// more, and some of its spans may have been moved.
async fn read_version(
    table: &Table,
    archive: &Archive,
    trace: &StoredTrace,
    turn: &LargeTraceTurn,
) -> Result<Option<TraceSpans>> {
    // These items are read before the block, because the packer moves their spans into the block. If the
    // block were read first, spans that are moved between the two reads would be missed.
    let Some(mut items) = Box::pin(SpanItems::with_mark(table, trace, LARGE_PACKED_BYTES)).await? else {
        return Ok(None);
    };
    let Some(packed) = read_spans_in_block(table, archive, trace).await? else { return Ok(None) };
    if trace.has_packed_spans() && packed.is_empty() {
        // The spans have become too large for the block, and may have been moved out of it between the
        // two reads.
        items = SpanItems::under_key_of(trace);
    }
    let spans = read_own_spans(table, trace, items, packed, turn).await?;
    if may_be_packed(trace) {
        let row = read_trace_rows(table, &[trace.id()]).await?.remove(trace.id());
        let is_unpacked = match row {
            Some(TraceRow::Document(now)) => !now.has_packed_spans(),
            Some(TraceRow::Pointer(_)) => false,
            Some(TraceRow::Stub(_)) | None => true,
        };
        if !is_unpacked {
            return Ok(None);
        }
    }
    Ok(Some(spans))
}

/// Reads the spans of a trace that are in a block, if there are some. Returns `None` if the block
/// was rewritten since the trace was read.
async fn read_spans_in_block(
    table: &Table,
    archive: &Archive,
    trace: &StoredTrace,
) -> table::Result<Option<Vec<Span>>> {
    if !trace.has_packed_spans() {
        return Ok(Some(Vec::new()));
    }
    read_packed_spans(table, archive, &TracePartition::of(trace), &TraceKey::of(trace)).await
}

/// Checks whether the trace, which was not packed when it was read, may have been packed since then.
fn may_be_packed(trace: &StoredTrace) -> bool {
    !trace.has_packed_spans() && trace.marked_at() <= now_ms().saturating_sub(QUIET_MARK_AGE - MAX_RELIABLE_MARK_AGE)
}

/// Reads the spans that are stored with a trace, and joins them with those from its block. `items` are
/// those that were read up to the size of a large trace.
async fn read_own_spans(
    table: &Table,
    trace: &StoredTrace,
    items: SpanItems,
    packed: Vec<Span>,
    turn: &LargeTraceTurn,
) -> Result<TraceSpans> {
    let (mut items, mut packed) = (items, packed);
    if items.read_on(table, LARGE_PACKED_BYTES).await? {
        let (spans, read) = unpacked(items, packed, LARGE_UNPACKED_BYTES).await?;
        match spans {
            Ok(spans) => return Ok(spans.into()),
            Err(kept) => packed = kept,
        }
        items = read;
    }
    let alone = turn.alone().await?;
    if !items.read_on(table, MAX_PACKED_BYTES).await? {
        return Err(too_many(trace.id()));
    }
    let (spans, _) = unpacked(items, packed, MAX_UNPACKED_BYTES).await?;
    Ok(TraceSpans { spans: spans.map_err(|_| too_many(trace.id()))?, _alone: Some(alone) })
}

/// Checks whether spans are stored with a trace itself. Sends one request of one read unit.
///
/// # Errors
/// Returns failures of the table.
pub async fn has_own_spans(table: &Table, experiment: ExperimentId, trace: &TraceId) -> table::Result<bool> {
    let query = Query::of(rows::TraceSpans::all(&experiment, trace)).for_removal().limit(1);
    Ok(!table.query_page(&query).await?.items.is_empty())
}

/// Reads the spans of a trace if those that are stored with the trace have at most `most` bytes
/// packed, and at most one and a half times as many unpacked. Otherwise returns `None`. Also returns
/// the items that are stored with the trace. `mark` is the mark with spans that the
/// document refers to, if it refers to one.
///
/// # Errors
/// Returns failures of the table, and an internal error if the spans cannot be read.
pub async fn read_few_spans(
    table: &Table,
    archive: &Archive,
    trace: &StoredTrace,
    mark: Option<&Item>,
    most: usize,
) -> table::Result<Option<(Vec<Span>, Vec<StoredSpans>)>> {
    let mut items = SpanItems::under_key_of(trace);
    items.add_mark(mark)?;
    if !items.read_on(table, most).await? {
        return Ok(None);
    }
    let stored = items.complete().filter_map(StoredSpans::of).collect();
    let packed = read_spans_in_block(table, archive, trace).await?;
    let packed = packed.ok_or_else(|| Failure::Unavailable("a packed trace is not in its block".to_owned()))?;
    // If spans were sent several times, each copy counts towards the size.
    let (spans, _) = unpacked(items, packed, most.saturating_add(most / 2)).await?;
    Ok(spans.ok().map(|spans| (spans, stored)))
}

/// The items with a trace's spans that have been read so far.
struct SpanItems {
    read: Vec<Item>,
    /// The spans of the trace's mark, as an item under the trace's key.
    of_mark: Option<Item>,
    size: usize,
    /// The next query, if there are more items.
    next: Option<Query>,
    /// `EDITS` of the trace's document.
    edits: i64,
}

impl SpanItems {
    /// Returns the items under the trace's key, of which none has been read.
    fn under_key_of(trace: &StoredTrace) -> Self {
        let query = Query::of(rows::TraceSpans::all(&trace.experiment(), trace.id()));
        Self { read: Vec::new(), of_mark: None, size: 0, next: Some(query), edits: trace.edits() }
    }

    /// Reads items up to about `most` bytes, and the mark with spans that the document refers to.
    /// Returns `None` if that mark does not exist any more, because the trace was packed or changed
    /// since it was read.
    async fn with_mark(table: &Table, trace: &StoredTrace, most: usize) -> table::Result<Option<Self>> {
        let mut items = Self::under_key_of(trace);
        let Some(key) = in_mark_key(trace) else {
            items.read_on(table, most).await?;
            return Ok(Some(items));
        };
        let (mark, _) = try_join(table.get(&key), items.read_on(table, most)).await?;
        items.add_mark(mark.as_ref())?;
        Ok(mark.is_some().then_some(items))
    }

    /// Adds the spans of a mark. Fails if it has none.
    fn add_mark(&mut self, mark: Option<&Item>) -> table::Result<()> {
        let Some(mark) = mark else { return Ok(()) };
        let spans = spans_of_mark(mark).ok_or_else(|| failed(unreadable(mark, "spans")))?;
        self.size += spans.size();
        self.of_mark = Some(spans);
        Ok(())
    }

    /// Adds the spans of the mark to the items that were read. If the export was repeated, one of these
    /// items has the same spans, and the later of the two is kept.
    fn join_mark(&mut self) {
        let Some(of_mark) = self.of_mark.take() else { return };
        match self.read.iter_mut().find(|item| item.key() == of_mark.key()) {
            Some(repeated) if repeated.get(ARRIVED) < of_mark.get(ARRIVED) => *repeated = of_mark,
            Some(_) => {}
            None => self.read.push(of_mark),
        }
    }

    /// Returns the items that were read, without exports of which parts are missing.
    fn complete(&self) -> impl Iterator<Item = &Item> {
        let export = |item: &Item| Some(rows::TraceSpans::parse(&item.key()?)?.export.text());
        let mut parts: HashMap<_, usize> = HashMap::new();
        for item in &self.read {
            *parts.entry(export(item)).or_default() += 1;
        }
        self.read.iter().filter(move |item| {
            let count = item.get(PARTS).and_then(|count| usize::try_from(count).ok());
            count.is_some() && count == parts.get(&export(item)).copied()
        })
    }

    /// Reads items until none are left or they exceed `most` bytes in total. Returns whether all
    /// were read within the limit.
    async fn read_on(&mut self, table: &Table, most: usize) -> table::Result<bool> {
        while self.size <= most
            && let Some(query) = self.next.take()
        {
            let page = table.query_page(&query).await?;
            self.size += page.items.iter().map(Item::size).sum::<usize>();
            self.read.extend(page.items);
            self.next = page.next.map(|next| query.starting_at(next));
        }
        Ok(self.size <= most)
    }
}

/// Unpacks the spans in these items, joins them with the spans from a block, and returns them with
/// the items. Returns the spans from the block in place of all spans if the items have more than
/// `most` bytes unpacked.
async fn unpacked(
    mut items: SpanItems,
    packed: Vec<Span>,
    most: usize,
) -> table::Result<(std::result::Result<Vec<Span>, Vec<Span>>, SpanItems)> {
    items.join_mark();
    let read =
        runtime::clock::aside_from(items.size, move || (read(&items.read, items.edits, packed, most), items)).await;
    let (spans, items) = read.map_err(|error| Failure::Unexpected(error.to_string()))?;
    Ok((spans.map_err(failed)?, items))
}

/// Unpacks the spans in the items of a trace, and joins them with those from a block. Returns the
/// spans from the block if the items have more than `most` bytes. Ignores an export with missing
/// parts, because it is still being written, and copies of spans of an earlier trace with the same id.
/// `edits` is that of the document.
fn read(
    items: &[Item],
    edits: i64,
    packed: Vec<Span>,
    most: usize,
) -> Result<std::result::Result<Vec<Span>, Vec<Span>>> {
    let mut left = most;
    let mut exports: BTreeMap<String, Vec<&Item>> = BTreeMap::new();
    for item in items {
        let row = item.key().as_ref().and_then(rows::TraceSpans::parse);
        let row = row.ok_or_else(|| unreadable(item, "spans"))?;
        exports.entry(row.export.text()).or_default().push(item);
    }
    let mut whole = Vec::new();
    for (digest, parts) in exports {
        let first = parts.first().map(|part| (part.get(ARRIVED), part.get(PARTS)));
        let (Some(arrived), Some(count)) = first.unwrap_or_default() else { continue };
        if usize::try_from(count).ok() != Some(parts.len()) || !may_belong_to(arrived, edits) {
            continue;
        }
        let content = |part: &&Item| part.bytes(CONTENT).map(<[u8]>::to_vec);
        let joined: Vec<u8> = parts.iter().filter_map(content).flatten().collect();
        let unpacked = spans::unpack_within(&joined, &mut left);
        let of_item = |part: &&Item| unreadable(part, "spans");
        let unpacked = unpacked.map_err(|_| parts.first().map_or_else(|| Error::internal("no parts"), of_item))?;
        let Some(unpacked) = unpacked else { return Ok(Err(packed)) };
        // If a span occurs in several exports, the last one read is kept. Exports that only add
        // spans are read first, in reverse order, so that they never replace a span.
        let adds_only = parts.first().is_some_and(|part| part.has(ADDS_ONLY));
        let place = if adds_only { (false, arrived.saturating_neg()) } else { (true, arrived) };
        whole.push((place, digest, unpacked));
    }
    whole.push(((true, BLOCK_ARRIVAL), String::new(), packed));
    whole.sort_by(|(one, a, _), (other, b, _)| (one, a).cmp(&(other, b)));
    Ok(Ok(spans::join(whole.into_iter().map(|(_, _, spans)| spans))))
}

fn too_many(trace: &TraceId) -> Error {
    let message = format!(
        "The spans of trace {trace} take more than {MAX_UNPACKED_BYTES} bytes, or {MAX_PACKED_BYTES} compressed."
    );
    Error::new(ErrorCode::BadRequest, message)
}

/// Sizes, packed and unpacked, up to which a process may have the spans of several traces in
/// memory. A Lambda function has 512 MB, and reads 16 traces at a time.
const LARGE_PACKED_BYTES: usize = 1 << 20;
const LARGE_UNPACKED_BYTES: usize = 2 << 20;
static LARGE_TRACE_PERMIT: Semaphore = Semaphore::const_new(1);
/// How long a large trace waits for large traces of other requests. The limit is short because a
/// waiting export keeps memory for its body reserved.
const LARGE_TRACE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a trace's packed spans that are read. This is more than any response
/// can contain.
const MAX_PACKED_BYTES: usize = 48 << 20;
/// Maximum size, in bytes, of a trace's unpacked spans. The packed size is not sufficient as a
/// limit, because repeated text compresses to almost nothing.
const MAX_UNPACKED_BYTES: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use runtime::clock::{SimulatedClock, sleep};

    use super::*;
    use crate::span_items::{CopySource, copy_items, packed_parts, span_items};

    #[test]
    fn copies_of_later_documents_take_precedence() {
        let document = |edits: i64| {
            let item = Item::new(rows::Trace::key(&TraceId::new(1)))
                .with("experiment", table::text(ExperimentId::DEFAULT.to_string()))
                .with("start_time", table::number(5))
                .with("edits", table::number(edits));
            StoredTrace::of(item).unwrap()
        };
        for number in 0..20 {
            let version = |name: &str| {
                let (trace_id, span_id) = (vec![1; 16], vec![2; 8]);
                vec![Span { name: format!("{name} {number}"), trace_id, span_id, ..Span::default() }]
            };
            let copy =
                |source, edits, name| copy_items(&document(edits), source, packed_parts(&version(name))).unwrap();
            let export = span_items(ExperimentId::DEFAULT, &TraceId::new(1), &version("export"), false, 1).unwrap();
            let all = [
                copy(CopySource::Mark, 9, "mark"),
                copy(CopySource::Block, 1, "old copy"),
                copy(CopySource::Block, 2, "copy"),
                export,
            ]
            .concat();
            let read = |items: &[Item], packed: Vec<Span>| {
                let spans = read(items, 5, packed, MAX_UNPACKED_BYTES).unwrap().unwrap();
                assert_eq!(spans.len(), 1);
                spans[0].name.clone()
            };
            for (items, expected) in [(4, "export"), (3, "copy"), (2, "old copy"), (1, "mark")] {
                assert_eq!(read(&all[..items], Vec::new()), format!("{expected} {number}"));
                let expected = if items == 4 { "export" } else { "block" };
                assert_eq!(read(&all[..items], version("block")), format!("{expected} {number}"));
            }
            // The trace was deleted and created again.
            let earlier = copy(CopySource::Block, 7 << 24, "earlier trace");
            assert_eq!(read(&[earlier, all[..1].to_vec()].concat(), Vec::new()), format!("mark {number}"));
        }
    }

    /// Waits until it may read a large trace, and then holds the trace in memory for `seconds`.
    async fn hold(turn: &LargeTraceTurn, seconds: u64) -> Result<()> {
        let _alone = turn.alone().await?;
        sleep(Duration::from_secs(seconds)).await;
        Ok(())
    }

    #[test]
    fn who_waits_too_long_for_large_traces_of_others_is_refused() {
        let simulation = SimulatedClock::begin();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (one, other) = (LargeTraceTurn::default(), LargeTraceTurn::default());
        let all = async {
            // Reads that share a turn wait for each other without a time limit, so they succeed,
            // although the last one waits longer than another request may wait.
            let own = futures::join!(hold(&one, 8), hold(&one, 8), hold(&one, 8));
            assert!(own.0.and(own.1).and(own.2).is_ok());
            let (long, refused) = futures::join!(hold(&one, 11), hold(&other, 0));
            assert_eq!(refused.unwrap_err().code, ErrorCode::ResourceExhausted);
            assert!(long.and(hold(&other, 0).await).is_ok());
        };
        // Advances the clock step by step. `SimulatedClock::drive` would wake waiting tasks at the
        // same time as the tasks that they wait for.
        let clock = async {
            while simulation.advance() {
                tokio::task::yield_now().await;
            }
        };
        assert!(matches!(runtime.block_on(select(pin!(all), pin!(clock))), Either::Left(_)));
        assert_eq!(simulation.elapsed(), Duration::from_secs(24 + 11));
    }
}
