//! Packing moves points that calls have added to a run's journal into its metrics documents, and
//! from there into segments.
//!
//! Packing may be interrupted at any point and repeated, and no reader misses a point
//! (`entities/src/run_metrics.rs`). The order of the writes ensures this. Segments are written
//! first, then chart rows, then the documents, with the first document last. After that, the packed
//! points are deleted from the tails of the journal, and the calls that are stored in separate
//! items are deleted. The points in the run's own document are deleted together with the mark.

use std::collections::{BTreeMap, HashSet};

use entities::attributes::{CALLS, CHARTED, PACKED, WIDE};
use entities::journal::{Series, is_call};
use entities::{
    MIN_SEGMENT_POINTS, MetricsStorage, RunItems, RunLocation, RunMetrics, SegmentEncoding, charted, failed, latest,
    metric_attribute, metric_of, pack_set, packed, place_of_metrics, read_journal_and_documents, waiting as points_in,
    with_charted,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Bucket, Key, rows};
use mlflow_api::Result;
use table::{Condition, Failure, Item, Table, Update, Value, number};

use crate::chart_rows::ChartRowCreation;
use crate::journal_batch::portion;
use crate::sealing::PackedMetric;

/// Maximum number of metrics in the first document. A run with more metrics is called wide. The
/// additional metrics are in 16 further documents, selected by a hash of the metric's name.
pub(crate) const MAX_DOCUMENT_KEYS: usize = 128;
/// Size of a document, in bytes, above which all its metrics are sealed into segments. Only the
/// latest point of each metric then stays in the document.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 200 << 10;
/// Number of concurrent requests.
const CONCURRENCY: usize = 16;
/// Maximum number of attempts to remove packed calls from a tail that is still being added to.
const MAX_ATTEMPTS: usize = 5;

/// The result of one packing pass over a run.
#[derive(Debug, Default)]
pub struct PackingResult {
    /// Number of times that the run has been packed, including this pass.
    pub times: i64,
    /// Points in the run's document that are now stored elsewhere.
    pub from_document: Series,
    /// Whether points are left in the journal for the next pass.
    pub leaves_some: bool,
}

/// The writes of one packing pass.
struct PackingPlan<'a> {
    segments: Vec<Item>,
    /// The first metrics document is the last element.
    documents: Vec<MetricsDocument<'a>>,
    is_wide: bool,
    packed: PackingResult,
}

/// A metrics document that may have to be written.
struct MetricsDocument<'a> {
    key: Key,
    /// The item that the document replaces.
    known: Option<&'a Item>,
    metrics: BTreeMap<String, PackedMetric>,
}

/// Checks whether there is something to pack: a journal, or a metric with enough points in the
/// run's own document for a segment.
pub fn is_due(items: &RunItems) -> Result<bool> {
    if !items.metrics.tails.is_empty() {
        return Ok(true);
    }
    let metrics = items.run.0.keys().filter_map(|name| metric_of(name));
    for metric in metrics {
        if points_in(&items.run, metric)?.len() >= MIN_SEGMENT_POINTS {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Packs a run, or the portion of its journal that one pass packs (`journal_batch.rs`). `now` is in
/// ms. `encoding` is that of new segments.
///
/// Sends one request per 25 segments, one per document, and one per tail or per 25 large calls.
/// Each write costs one write unit per KB. Reading the documents of a run without a journal takes
/// one more request. The requests for chart rows are additional (`chart_rows.rs`).
///
/// # Errors
/// Returns failures of the table, and [`Failure::Unexpected`] if another pass is packing the run
/// too. The run then has to be read again.
pub async fn pack(
    table: &Table,
    at: &RunLocation,
    items: &RunItems,
    now: i64,
    encoding: SegmentEncoding,
) -> table::Result<PackingResult> {
    let read;
    let metrics = if place_of_metrics(&items.run) == MetricsStorage::Journal {
        &items.metrics
    } else {
        // If an earlier pass was interrupted, there may be documents that the run's own document
        // does not mention yet.
        read = read_journal_and_documents(table, at).await?;
        &read
    };
    let some = portion(metrics).map_err(failed)?;
    let leaves_some = some.is_some();
    let metrics = some.as_ref().unwrap_or(metrics);
    let mut packing = plan(at, &items.run, metrics, encoding).map_err(failed)?;
    packing.packed.leaves_some = leaves_some;
    table.write_many(packing.segments, &[]).await?;
    let charting = ChartRowCreation { table, at, now, leaves_some };
    let charts = packing.documents.iter_mut().flat_map(|document| {
        let times = document.known.map_or(0, packed);
        document.metrics.iter_mut().map(move |(name, metric)| charting.chart(name, metric, times))
    });
    stream::iter(charts.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    for document in packing.documents {
        let (known, is_first) = (document.known, document.key == at.metrics_key());
        let item = document.item(packing.packed.times);
        let item = if is_first && packing.is_wide { item.with(WIDE, number(1)) } else { item };
        // The first document is written even if its metrics are unchanged, because it records how
        // often the run was packed.
        if is_first || known.is_none_or(|known| metrics_of(known) != metrics_of(&item)) {
            put(table, item, &is_as_read(known)).await?;
        }
    }
    let tails = metrics.tails.iter().filter_map(|tail| Some((tail.key()?, tail)));
    let (calls, tails): (Vec<_>, Vec<_>) = tails.partition(|(key, _)| is_call(key));
    // Calls that are stored in separate items never change after they were written, so these items
    // are deleted unconditionally.
    let calls: Vec<_> = calls.into_iter().map(|(key, _)| key).collect();
    table.write_many(Vec::new(), &calls).await?;
    let tails = tails.into_iter().map(|(key, tail)| forget(table, key, tail));
    stream::iter(tails.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    Ok(packing.packed)
}

async fn put(table: &Table, document: Item, condition: &Condition) -> table::Result<()> {
    match table.put(document.clone(), condition).await {
        // The response to an earlier attempt was lost, but the attempt has written this document.
        Err(Failure::Refused { item: Some(found), .. }) if found == document => Ok(()),
        Err(Failure::Refused { .. }) => Err(Failure::Unexpected("another pass is packing the run".to_owned())),
        outcome => outcome,
    }
}

/// Removes the packed calls from a tail of the journal. Deletes the tail if it has no other calls,
/// and keeps it if calls have been added in the meantime.
///
/// A call that stays in the tail is packed again. This does not duplicate points in the history,
/// but in charts, the segments that the call refers to are counted twice.
async fn forget(table: &Table, key: Key, tail: &Item) -> table::Result<()> {
    let calls_of = |tail: &Item| tail.value(CALLS).and_then(|calls| calls.as_bs().ok()).cloned().unwrap_or_default();
    let packed: HashSet<_> = calls_of(tail).into_iter().collect();
    let mut found = tail.clone();
    for _ in 0..MAX_ATTEMPTS {
        let Some(calls) = found.value(CALLS).cloned() else { break };
        let (gone, further): (Vec<_>, Vec<_>) = calls_of(&found).into_iter().partition(|call| packed.contains(call));
        if gone.is_empty() {
            break;
        }
        let is_as_found = Condition::Equals(CALLS.into(), calls);
        let outcome = if further.is_empty() {
            table.delete(&key, &is_as_found).await
        } else {
            table.apply(&Update::new(key.clone()).delete(CALLS, Value::Bs(gone)).only_if(is_as_found)).await
        };
        match outcome {
            Err(Failure::Refused { item: Some(item), .. }) => found = item,
            Ok(()) | Err(Failure::Refused { item: None, .. }) => break,
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

fn plan<'a>(
    at: &RunLocation,
    run: &Item,
    metrics: &'a RunMetrics,
    encoding: SegmentEncoding,
) -> Result<PackingPlan<'a>> {
    let known: BTreeMap<Key, &Item> =
        metrics.documents.iter().filter_map(|document| Some((document.key()?, document))).collect();
    let first_key = at.metrics_key();
    let first = known.get(&first_key).copied();
    let mut room = MAX_DOCUMENT_KEYS.saturating_sub(first.map_or(0, metric_count));
    let mut known_charted = BTreeMap::new();
    for document in &metrics.documents {
        known_charted.extend(charted(document)?);
    }
    let mut segments = Vec::new();
    let mut documents = BTreeMap::from([(first_key.clone(), BTreeMap::new())]);
    let mut waiting = metrics.all_waiting(run)?;
    for metric in metrics.journal.sealed.keys() {
        waiting.entry(metric.clone()).or_default();
    }
    for (name, points) in waiting {
        let attribute = metric_attribute(&name);
        let bucket = rows::RunMetricsBucket::key(&at.run, &Bucket::of(&name));
        // A metric never moves from one document to another. A reader that reads the documents one
        // after another could otherwise miss the metric.
        let is_in_bucket = || known.get(&bucket).is_some_and(|document| document.0.contains_key(&attribute));
        let is_in_first = first.is_some_and(|first| first.0.contains_key(&attribute)) || (room > 0 && !is_in_bucket());
        if is_in_first && !first.is_some_and(|first| first.0.contains_key(&attribute)) {
            room -= 1;
        }
        let key = if is_in_first { first_key.clone() } else { bucket };
        let in_document = known.get(&key).map(|document| points_in(document, &name)).transpose()?.unwrap_or_default();
        let mut metric =
            PackedMetric::new(points, &in_document, known_charted.get(name.as_str()).copied().unwrap_or_default());
        if metric.points.len() >= MIN_SEGMENT_POINTS {
            metric.seal(at, &name, encoding, &mut segments);
        }
        metric.announce(
            metrics.journal.segments.get(&name).into_iter().flatten(),
            metrics.journal.sealed.get(&name).into_iter().flatten(),
        );
        documents.entry(key).or_default().insert(name, metric);
    }
    let is_wide = documents.keys().chain(known.keys()).any(|key| *key != first_key);
    let documents = documents.into_iter().map(|(key, metrics)| {
        let mut document = MetricsDocument { known: known.get(&key).copied(), key, metrics };
        if document.item(0).size() > MAX_DOCUMENT_BYTES {
            for (name, metric) in document.metrics.iter_mut().filter(|(_, metric)| metric.points.len() > 1) {
                metric.seal(at, name, encoding, &mut segments);
            }
        }
        document
    });
    let mut documents: Vec<_> = documents.collect();
    documents.sort_by_key(|document| document.key == first_key);
    let mut from_document = Series::new();
    for metric in latest(run) {
        let (metric, _) = metric?;
        from_document.insert(metric.to_owned(), points_in(run, metric)?);
    }
    let packed = PackingResult { times: metrics.packed() + 1, from_document, leaves_some: false };
    Ok(PackingPlan { segments, documents, is_wide, packed })
}

impl MetricsDocument<'_> {
    /// Returns the item to write after points have been packed `times` times.
    fn item(&self, times: i64) -> Item {
        let item = Item::new(self.key.clone()).with(PACKED, number(times));
        let sets = self.metrics.iter();
        let item = sets.fold(item, |item, (name, metric)| item.with(metric_attribute(name), pack_set(&metric.points)));
        with_charted(item, self.metrics.iter().map(|(name, metric)| (name, metric.charted)))
    }
}

fn is_as_read(known: Option<&Item>) -> Condition {
    known.map_or_else(Condition::item_missing, |known| Condition::Equals(PACKED.into(), number(packed(known))))
}

fn metric_count(document: &Item) -> usize {
    document.0.keys().filter(|name| metric_of(name).is_some()).count()
}

fn metrics_of(document: &Item) -> BTreeMap<&String, &table::Value> {
    document.0.iter().filter(|(name, _)| metric_of(name).is_some() || name.as_str() == CHARTED.name()).collect()
}
