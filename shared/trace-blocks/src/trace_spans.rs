//! The spans of one trace, from the items of its exports.

use std::collections::BTreeMap;

use entities::attributes::{ARRIVED, CONTENT, PARTS};
use entities::unreadable;
use key_schema::{Segment, rows};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, TraceId};
use spans::Span;
use table::{Failure, Item, Query, Table};

use crate::block::failed;

/// All spans of a trace of this experiment that have come, roots first, then by their start. One request, one more per MB; a read unit
/// per 4 KB.
///
/// # Errors
/// `BAD_REQUEST`, where they are too many for any answer.
pub async fn read_trace_spans(table: &Table, experiment: ExperimentId, trace: &TraceId) -> Result<Vec<Span>> {
    read_within(table, experiment, trace, LARGEST, UNPACKED).await?.ok_or_else(|| too_many(trace))
}

/// The same where they take no more than some MB before they are packed, and so many bytes then; else nothing.
///
/// # Errors
/// Those of the table, and an internal one where they cannot be read.
pub async fn read_few_spans(
    table: &Table,
    experiment: ExperimentId,
    trace: &TraceId,
    most: usize,
) -> table::Result<Option<Vec<Span>>> {
    // What is sent several times counts several times here.
    read_within(table, experiment, trace, most, most.saturating_add(most / 2)).await
}

async fn read_within(
    table: &Table,
    experiment: ExperimentId,
    trace: &TraceId,
    most: usize,
    unpacked: usize,
) -> table::Result<Option<Vec<Span>>> {
    let mut query = Query::of(rows::TraceSpans::all(trace).experiment(&experiment));
    let (mut items, mut size) = (Vec::new(), 0);
    loop {
        let page = table.query_page(&query).await?;
        size += page.items.iter().map(Item::size).sum::<usize>();
        items.extend(page.items);
        if size > most {
            return Ok(None);
        }
        match page.next {
            Some(next) => query = query.starting_at(next),
            None => break,
        }
    }
    if size < ASIDE {
        return read(items, unpacked).map_err(failed);
    }
    let read = tokio::task::spawn_blocking(move || read(items, unpacked)).await;
    read.map_err(|error| Failure::Unexpected(error.to_string()))?.map_err(failed)
}

/// The spans in the items of a trace. An export of which a part is missing, because it is still being written, counts for nothing.
/// Nothing where they take more bytes than that.
fn read(items: Vec<Item>, most: usize) -> Result<Option<Vec<Span>>> {
    let mut left = most;
    let mut exports: BTreeMap<String, Vec<Item>> = BTreeMap::new();
    for item in items {
        let row = item.key().as_ref().and_then(rows::TraceSpans::parse);
        let row = row.ok_or_else(|| unreadable(&item, "spans"))?;
        exports.entry(row.export.text()).or_default().push(item);
    }
    let mut whole = Vec::new();
    for (digest, parts) in exports {
        let first = parts.first().map(|part| (part.number(ARRIVED), part.number(PARTS)));
        let (Some(arrived), Some(count)) = first.unwrap_or_default() else { continue };
        if usize::try_from(count).ok() != Some(parts.len()) {
            continue;
        }
        let content = |part: &Item| part.0.get(CONTENT)?.as_b().ok().map(|bytes| bytes.as_ref().to_vec());
        let joined: Vec<u8> = parts.iter().filter_map(content).flatten().collect();
        let unpacked = spans::unpack_within(&joined, &mut left);
        let of_item = |part: &Item| unreadable(part, "spans");
        let unpacked = unpacked.map_err(|_| parts.first().map_or_else(|| Error::internal("no parts"), of_item))?;
        let Some(unpacked) = unpacked else { return Ok(None) };
        whole.push((arrived, digest, unpacked));
    }
    whole.sort_by(|(one, a, _), (other, b, _)| (one, a).cmp(&(other, b)));
    Ok(Some(spans::join(whole.into_iter().map(|(_, _, spans)| spans))))
}

fn too_many(trace: &TraceId) -> Error {
    let message = format!("The spans of trace {trace} take more than {UNPACKED} bytes, or {LARGEST} compressed.");
    Error::new(ErrorCode::BadRequest, message)
}

/// Bytes of spans from which on they are read where that holds nobody up.
const ASIDE: usize = 64 << 10;
/// Bytes of packed spans of one trace that are read: more than any answer can be made of.
const LARGEST: usize = 48 << 20;
/// And of these spans unpacked: what repeats packs to nearly nothing.
const UNPACKED: usize = 64 << 20;
