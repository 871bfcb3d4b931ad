//! Packing: what calls have added to a run's journal goes into its metrics documents, and what has come together there into segments.
//!
//! In this order, so that it may end anywhere and be done again, and so that nobody who reads misses a point
//! (`entities/src/run_metrics.rs`): segments are put, then the documents, the first of them last, then the tails are deleted that are as
//! they were read. The points in the run's own document go with the mark.

use std::collections::BTreeMap;

use entities::attributes::{CALLS, PACKED, WIDE};
use entities::journal::Series;
use entities::points::{self, Point};
use entities::{
    MetricsPlace, RunItems, RunLocation, RunMetrics, SEAL_AT, latest, metric_attribute, metric_of, pack_set, packed,
    place_of_metrics, read_journal_and_documents, segments, waiting as points_in,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Bucket, Key, rows};
use mlflow_api::Result;
use table::{Condition, Failure, Item, Table, number};

use crate::entries::failed;

/// Metrics in the first document. A run with more is wide: further ones are in 16 more documents, by their hash.
const DOCUMENT_KEYS: usize = 128;
/// Bytes of a document from which on all its metrics get segments, so that it holds their latest points only.
const DOCUMENT_BYTES: usize = 200 << 10;
/// Requests under way at a time.
const AT_ONCE: usize = 16;

/// What was packed of a run.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// How often that was done now.
    pub(crate) times: i64,
    /// The points in its document that are elsewhere now.
    pub(crate) from_document: Series,
}

/// What is to be written.
struct Packing {
    segments: Vec<Item>,
    /// Documents and what they replace, the first document last.
    documents: Vec<(Item, Condition)>,
    packed: Packed,
}

/// Whether there is something to pack: a journal, or a metric in the document with enough points for a segment.
pub(crate) fn is_due(items: &RunItems) -> Result<bool> {
    if !items.metrics.tails.is_empty() {
        return Ok(true);
    }
    let metrics = items.run.0.keys().filter_map(|name| metric_of(name));
    for metric in metrics {
        if points_in(&items.run, metric)?.len() >= SEAL_AT {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Packs a run. A request per 25 segments, one for each document and for each tail: a write unit per KB of them; one more to read the
/// documents of a run without a journal.
///
/// # Errors
/// Those of the table; [`Failure::Unexpected`] where somebody else packs the run as well: it is to be read anew.
pub(crate) async fn pack(table: &Table, at: &RunLocation, items: &RunItems) -> table::Result<Packed> {
    let read;
    let metrics = if place_of_metrics(&items.run) == MetricsPlace::Journal {
        &items.metrics
    } else {
        // There may be documents of which the run's own says nothing: somebody has packed it, and got no further.
        read = read_journal_and_documents(table, at).await?;
        &read
    };
    let packing = plan(at, &items.run, metrics).map_err(failed)?;
    table.write_many(packing.segments, &[]).await?;
    for (document, condition) in packing.documents {
        put(table, document, &condition).await?;
    }
    let deletions = metrics.tails.iter().filter_map(|tail| Some(delete(table, tail.key()?, tail)));
    stream::iter(deletions.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    Ok(packing.packed)
}

async fn put(table: &Table, document: Item, condition: &Condition) -> table::Result<()> {
    match table.put(document.clone(), condition).await {
        // The answer to an attempt was lost.
        Err(Failure::Refused { item: Some(found), .. }) if found == document => Ok(()),
        Err(Failure::Refused { .. }) => Err(Failure::Unexpected("somebody else packs the run".to_owned())),
        outcome => outcome,
    }
}

/// Deletes a tail, unless it has got further calls.
async fn delete(table: &Table, key: Key, tail: &Item) -> table::Result<()> {
    let is_as_read =
        tail.0.get(CALLS).map_or(Condition::Always, |calls| Condition::Equals(CALLS.into(), calls.clone()));
    match table.delete(&key, &is_as_read).await {
        Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
        Err(failure) => Err(failure),
    }
}

fn plan(at: &RunLocation, run: &Item, metrics: &RunMetrics) -> Result<Packing> {
    let known: BTreeMap<Key, &Item> =
        metrics.documents.iter().filter_map(|document| Some((document.key()?, document))).collect();
    let first_key = at.metrics_key();
    let first = known.get(&first_key).copied();
    let times = metrics.packed() + 1;
    let mut room = DOCUMENT_KEYS.saturating_sub(first.map_or(0, metric_count));
    let mut sealed = Vec::new();
    let mut documents: BTreeMap<Key, BTreeMap<String, Vec<Point>>> = BTreeMap::new();
    let mut waiting = metrics.all_waiting(run)?;
    for metric in metrics.journal.sealed.keys() {
        waiting.entry(metric.clone()).or_default();
    }
    for (metric, mut points) in waiting {
        points::sort_by_time(&mut points);
        if points.len() >= SEAL_AT {
            seal(at, &metric, &mut points, &mut sealed);
        }
        let in_segments = metrics.journal.sealed.get(&metric).into_iter().flatten();
        if let Some(newest) = in_segments.copied().max_by(Point::by_step)
            && points.iter().all(|point| point.by_step(&newest).is_lt())
        {
            points.push(newest);
        }
        let attribute = metric_attribute(&metric);
        let bucket = rows::RunMetricsBucket::key(&at.run, &Bucket::of(&metric));
        // A metric stays where it is: who reads one document after the other would miss one that moves.
        let is_in_bucket = || known.get(&bucket).is_some_and(|document| document.has(&attribute));
        let is_in_first = first.is_some_and(|first| first.has(&attribute)) || (room > 0 && !is_in_bucket());
        if is_in_first && !first.is_some_and(|first| first.has(&attribute)) {
            room -= 1;
        }
        let key = if is_in_first { first_key.clone() } else { bucket };
        documents.entry(key).or_default().insert(metric, points);
    }
    let is_wide = documents.keys().chain(known.keys()).any(|key| *key != first_key);
    // It says how often the run was packed, also if nothing else of it changes.
    let mut of_first = documents.remove(&first_key).unwrap_or_default();
    let mut written = Vec::new();
    for (key, mut metrics) in documents {
        let document = document(at, &key, &mut metrics, times, &mut sealed);
        let known = known.get(&key).copied();
        if known.is_none_or(|known| metrics_of(known) != metrics_of(&document)) {
            written.push((document, is_as_read(known)));
        }
    }
    let document = document(at, &first_key, &mut of_first, times, &mut sealed);
    written.push((if is_wide { document.with(WIDE, number(1)) } else { document }, is_as_read(first)));
    let mut from_document = Series::new();
    for metric in latest(run) {
        let (metric, _) = metric?;
        from_document.insert(metric.to_owned(), points_in(run, metric)?);
    }
    Ok(Packing { segments: sealed, documents: written, packed: Packed { times, from_document } })
}

/// Writes segments of all points of a metric, and leaves the latest.
fn seal(at: &RunLocation, metric: &str, points: &mut Vec<Point>, sealed: &mut Vec<Item>) {
    sealed.extend(segments(at, metric, points));
    let newest = points.iter().copied().max_by(Point::by_step);
    points.retain(|point| Some(*point) == newest);
}

fn document(
    at: &RunLocation,
    key: &Key,
    metrics: &mut BTreeMap<String, Vec<Point>>,
    times: i64,
    sealed: &mut Vec<Item>,
) -> Item {
    let of = |metrics: &BTreeMap<String, Vec<Point>>| {
        let item = Item::new(key.clone()).with(PACKED, number(times));
        metrics.iter().fold(item, |item, (metric, points)| item.with(metric_attribute(metric), pack_set(points)))
    };
    let item = of(metrics);
    if item.size() <= DOCUMENT_BYTES {
        return item;
    }
    for (metric, points) in metrics.iter_mut().filter(|(_, points)| points.len() > 1) {
        seal(at, metric, points, sealed);
    }
    of(metrics)
}

fn is_as_read(known: Option<&Item>) -> Condition {
    known.map_or_else(Condition::item_missing, |known| Condition::Equals(PACKED.into(), number(packed(known))))
}

fn metric_count(document: &Item) -> usize {
    document.0.keys().filter(|name| metric_of(name).is_some()).count()
}

fn metrics_of(document: &Item) -> BTreeMap<&String, &table::Value> {
    document.0.iter().filter(|(name, _)| metric_of(name).is_some()).collect()
}
