//! The spans of one trace, from the items of its exports.

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
    /// While these are in memory, no other large ones are.
    _alone: Option<SemaphorePermit<'static>>,
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

/// The turn of one request: of its large traces one at a time waits for those of other requests, and not for those that it reads itself.
#[derive(Debug, Default)]
pub struct Turn(Mutex<()>);

impl Turn {
    /// Waits until the process has no spans of a large trace in memory.
    async fn alone(&self) -> Result<SemaphorePermit<'static>> {
        let _turn = self.0.lock().await;
        match select(pin!(ALONE.acquire()), pin!(clock::sleep(PATIENCE))).await {
            Either::Left((alone, _)) => alone.map_err(Error::internal),
            Either::Right(_) => {
                let message = "There are too many requests for large traces at this time. Try again later.";
                Err(Error::new(ErrorCode::ResourceExhausted, message))
            }
        }
    }
}

/// All spans of a trace of this experiment that have come, roots first, then by their start. Large
/// traces have more than a MB, or 2 MB unpacked. They wait until the process has no other large
/// trace in memory; a reader that holds one must not wait for another. One request, one more per
/// MB; a read unit per 4 KB.
///
/// # Errors
/// `BAD_REQUEST`, where they are too many for any answer; `RESOURCE_EXHAUSTED`, where they would
/// wait for too long.
pub async fn read_trace_spans(
    table: &Table,
    experiment: ExperimentId,
    trace: &TraceId,
    turn: &Turn,
) -> Result<TraceSpans> {
    let mut items = Items::of(experiment, trace);
    if items.read_on(table, LARGE).await? {
        let (spans, read) = unpacked(items, LARGE_UNPACKED).await?;
        if let Some(spans) = spans {
            return Ok(spans.into());
        }
        items = read;
    }
    let alone = turn.alone().await?;
    if !items.read_on(table, LARGEST).await? {
        return Err(too_many(trace));
    }
    let (spans, _) = unpacked(items, UNPACKED).await?;
    Ok(TraceSpans { spans: spans.ok_or_else(|| too_many(trace))?, _alone: Some(alone) })
}

/// The same where they take no more than so many bytes packed, and half as many again unpacked; else nothing.
///
/// # Errors
/// Those of the table, and an internal one where they cannot be read.
pub async fn read_few_spans(
    table: &Table,
    experiment: ExperimentId,
    trace: &TraceId,
    most: usize,
) -> table::Result<Option<Vec<Span>>> {
    let mut items = Items::of(experiment, trace);
    if !items.read_on(table, most).await? {
        return Ok(None);
    }
    // Spans that are sent several times count several times here.
    Ok(unpacked(items, most.saturating_add(most / 2)).await?.0)
}

/// The items of a trace's spans, as far as they were read.
struct Items {
    read: Vec<Item>,
    size: usize,
    /// The next query, if there are more.
    next: Option<Query>,
}

impl Items {
    fn of(experiment: ExperimentId, trace: &TraceId) -> Self {
        let query = Query::of(rows::TraceSpans::all(&experiment, trace));
        Self { read: Vec::new(), size: 0, next: Some(query) }
    }

    /// Reads until all are there, or they take more bytes than that; whether all are there, and take no more.
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

/// The spans in these items, where they take no more bytes than that; and the items.
async fn unpacked(items: Items, most: usize) -> table::Result<(Option<Vec<Span>>, Items)> {
    let read = clock::aside_from(items.size, move || (read(&items.read, most), items)).await;
    let (spans, items) = read.map_err(|error| Failure::Unexpected(error.to_string()))?;
    Ok((spans.map_err(failed)?, items))
}

/// The spans in the items of a trace; `None` where they take more than `most` bytes. An export does
/// not count while parts of it are missing, because it is still being written.
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
        // The last one counts. Exports that only add come before all others, the earliest last.
        let adds_only = parts.first().is_some_and(|part| part.has(ADDS_ONLY));
        let place = if adds_only { (false, arrived.saturating_neg()) } else { (true, arrived) };
        whole.push((place, digest, unpacked));
    }
    whole.sort_by(|(one, a, _), (other, b, _)| (one, a).cmp(&(other, b)));
    Ok(Some(spans::join(whole.into_iter().map(|(_, _, spans)| spans))))
}

fn too_many(trace: &TraceId) -> Error {
    let message = format!("The spans of trace {trace} take more than {UNPACKED} bytes, or {LARGEST} compressed.");
    Error::new(ErrorCode::BadRequest, message)
}

/// Packed and unpacked bytes of the spans of one trace. A process may have several traces of that
/// size in memory. Lambdas have 512 MB, and read 16 at a time.
const LARGE: usize = 1 << 20;
const LARGE_UNPACKED: usize = 2 << 20;
static ALONE: Semaphore = Semaphore::const_new(1);
/// How long a large trace waits for those of other requests: an export that does has room for its body all the time.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of packed spans of one trace that are read: more than any answer can be made of.
const LARGEST: usize = 48 << 20;
/// The limit of these spans unpacked: repeated text packs to nearly nothing.
const UNPACKED: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use clock::{Simulation, sleep};

    use super::*;

    /// Has a large trace in memory for so many seconds, once it is its turn.
    async fn hold(turn: &Turn, seconds: u64) -> Result<()> {
        let _alone = turn.alone().await?;
        sleep(Duration::from_secs(seconds)).await;
        Ok(())
    }

    #[test]
    fn who_waits_too_long_for_large_traces_of_others_is_refused() {
        let simulation = Simulation::begin();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (one, other) = (Turn::default(), Turn::default());
        let all = async {
            // Of one request, though the last waits for longer than one from outside would.
            let own = futures::join!(hold(&one, 8), hold(&one, 8), hold(&one, 8));
            assert!(own.0.and(own.1).and(own.2).is_ok());
            let (long, refused) = futures::join!(hold(&one, 11), hold(&other, 0));
            assert_eq!(refused.unwrap_err().code, ErrorCode::ResourceExhausted);
            assert!(long.and(hold(&other, 0).await).is_ok());
        };
        // Step by step: `drive` would wake those who wait and those whom they wait for at once.
        let clock = async {
            while simulation.advance() {
                tokio::task::yield_now().await;
            }
        };
        assert!(matches!(runtime.block_on(select(pin!(all), pin!(clock))), Either::Left(_)));
        assert_eq!(simulation.elapsed(), Duration::from_secs(24 + 11));
    }
}
