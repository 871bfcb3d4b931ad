//! The spans of one trace, read from the items of its exports.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::pin::pin;
use std::time::Duration;

use entities::attributes::{ADDS_ONLY, ARRIVED, CONTENT, PARTS};
use entities::unreadable;
use futures::future::{Either, select};
use key_schema::{Segment, rows};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, TraceId};
use spans::Span;
use table::{Failure, Item, Query, Table};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use crate::block::failed;

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

/// Reads all spans of a trace in this experiment that have arrived so far, sorted by start time
/// after the roots.
///
/// A trace is large if its spans have more than 1 MB, or 2 MB unpacked. Reading a large trace waits
/// until the process has no other large trace in memory, so a caller that holds a large trace must
/// not read another one. Sends one request, and one more per MB. Costs one read unit per 4 KB.
///
/// # Errors
/// Returns `BAD_REQUEST` if the spans are too large for any response, and `RESOURCE_EXHAUSTED` if
/// reading them would wait for too long.
pub async fn read_trace_spans(
    table: &Table,
    experiment: ExperimentId,
    trace: &TraceId,
    turn: &LargeTraceTurn,
) -> Result<TraceSpans> {
    let mut items = SpanItems::of(experiment, trace);
    if items.read_on(table, LARGE_PACKED_BYTES).await? {
        let (spans, read) = unpacked(items, LARGE_UNPACKED_BYTES).await?;
        if let Some(spans) = spans {
            return Ok(spans.into());
        }
        items = read;
    }
    let alone = turn.alone().await?;
    if !items.read_on(table, MAX_PACKED_BYTES).await? {
        return Err(too_many(trace));
    }
    let (spans, _) = unpacked(items, MAX_UNPACKED_BYTES).await?;
    Ok(TraceSpans { spans: spans.ok_or_else(|| too_many(trace))?, _alone: Some(alone) })
}

/// Reads the spans of a trace if they have at most `most` bytes packed, and at most one and a half
/// times as many unpacked. Otherwise returns `None`.
///
/// # Errors
/// Returns failures of the table, and an internal error if the spans cannot be read.
pub async fn read_few_spans(
    table: &Table,
    experiment: ExperimentId,
    trace: &TraceId,
    most: usize,
) -> table::Result<Option<Vec<Span>>> {
    let mut items = SpanItems::of(experiment, trace);
    if !items.read_on(table, most).await? {
        return Ok(None);
    }
    // If spans were sent several times, each copy counts towards the size.
    Ok(unpacked(items, most.saturating_add(most / 2)).await?.0)
}

/// The items with a trace's spans that have been read so far.
struct SpanItems {
    read: Vec<Item>,
    size: usize,
    /// The next query, if there are more items.
    next: Option<Query>,
}

impl SpanItems {
    fn of(experiment: ExperimentId, trace: &TraceId) -> Self {
        let query = Query::of(rows::TraceSpans::all(&experiment, trace));
        Self { read: Vec::new(), size: 0, next: Some(query) }
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

/// Unpacks the spans in these items, and returns them with the items. Returns `None` in place of
/// the spans if they have more than `most` bytes unpacked.
async fn unpacked(items: SpanItems, most: usize) -> table::Result<(Option<Vec<Span>>, SpanItems)> {
    let read = runtime::clock::aside_from(items.size, move || (read(&items.read, most), items)).await;
    let (spans, items) = read.map_err(|error| Failure::Unexpected(error.to_string()))?;
    Ok((spans.map_err(failed)?, items))
}

/// Unpacks the spans in the items of a trace. Returns `None` if they have more than `most` bytes.
/// Ignores an export with missing parts, because it is still being written.
fn read(items: &[Item], most: usize) -> Result<Option<Vec<Span>>> {
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
        if usize::try_from(count).ok() != Some(parts.len()) {
            continue;
        }
        let content = |part: &&Item| part.bytes(CONTENT).map(<[u8]>::to_vec);
        let joined: Vec<u8> = parts.iter().filter_map(content).flatten().collect();
        let unpacked = spans::unpack_within(&joined, &mut left);
        let of_item = |part: &&Item| unreadable(part, "spans");
        let unpacked = unpacked.map_err(|_| parts.first().map_or_else(|| Error::internal("no parts"), of_item))?;
        let Some(unpacked) = unpacked else { return Ok(None) };
        // If a span occurs in several exports, the last one read is kept. Exports that only add
        // spans are read first, in reverse order, so that they never replace a span.
        let adds_only = parts.first().is_some_and(|part| part.has(ADDS_ONLY));
        let place = if adds_only { (false, arrived.saturating_neg()) } else { (true, arrived) };
        whole.push((place, digest, unpacked));
    }
    whole.sort_by(|(one, a, _), (other, b, _)| (one, a).cmp(&(other, b)));
    Ok(Some(spans::join(whole.into_iter().map(|(_, _, spans)| spans))))
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
