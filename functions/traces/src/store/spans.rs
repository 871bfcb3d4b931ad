//! Spans in the table: an item, or several parts, for each export, which nothing rewrites.

use std::collections::BTreeMap;

use entities::attributes::{ARRIVED, CONTENT, PARTS};
use entities::{now_ms, unreadable};
use key_schema::{Ordinal, Segment, WideDigest, fnv1a_128, rows};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, TraceId};
use spans::Span;
use table::{Item, Query, bytes, number};

use super::store::Store;

/// Bytes in one part: an item has room for 400 KB, its key and names included.
const PART: usize = 380 << 10;

/// The items of one export of a trace's spans.
pub(super) fn items(experiment: ExperimentId, trace: &TraceId, spans: &[Span]) -> Result<Vec<Item>> {
    let packed = spans::pack(spans, PART);
    // Of the bytes: parts that another version has packed otherwise are those of another export.
    let digest = WideDigest(fnv1a_128(&packed.parts.concat()));
    let parts = u32::try_from(packed.parts.len()).map_err(Error::internal)?;
    let arrived = number(now_ms());
    let item = |(part, content): (u32, Vec<u8>)| {
        Item::new(rows::TraceSpans::key(trace, &experiment, &digest, &Ordinal(part)))
            .with(ARRIVED, arrived.clone())
            .with(PARTS, number(parts))
            .with(CONTENT, bytes(content))
    };
    Ok((0..).zip(packed.parts).map(item).collect())
}

/// The spans in the items of a trace. An export of which a part is missing, because it is still being written, counts for nothing.
fn read(trace: &TraceId, items: Vec<Item>) -> Result<Vec<Span>> {
    let mut left = UNPACKED;
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
        whole.push((arrived, digest, unpacked.ok_or_else(|| too_many(trace))?));
    }
    whole.sort_by(|(one, a, _), (other, b, _)| (one, a).cmp(&(other, b)));
    Ok(spans::join(whole.into_iter().map(|(_, _, spans)| spans)))
}

impl Store {
    /// All spans of a trace of this experiment that have come, roots first, then by their start. One request, one more per MB; a read unit
    /// per 4 KB.
    ///
    /// # Errors
    /// `BAD_REQUEST`, where they are too many for any answer.
    pub async fn trace_spans_in(&self, experiment: ExperimentId, trace: &TraceId) -> Result<Vec<Span>> {
        let mut query = Query::of(rows::TraceSpans::all(trace).experiment(&experiment));
        let (mut items, mut size) = (Vec::new(), 0);
        loop {
            let page = self.table.query_page(&query).await?;
            size += page.items.iter().map(Item::size).sum::<usize>();
            items.extend(page.items);
            if size > LARGEST {
                return Err(too_many(trace));
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => break,
            }
        }
        if size < ASIDE {
            return read(trace, items);
        }
        let trace = trace.clone();
        tokio::task::spawn_blocking(move || read(&trace, items)).await.map_err(Error::internal)?
    }
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
