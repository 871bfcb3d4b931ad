//! Packs the complete histories of a new run, for the importer. It has all points of a metric in
//! order, so they do not have to go through a journal.
//!
//! The result is what a pass over a journal with these points would leave: segments, chart rows,
//! and metrics documents with the latest points. Nothing is read. Only the latest rows of each
//! level are held in memory.

use std::collections::{BTreeMap, HashMap};

use entities::attributes::{PACKED, WIDE};
use entities::chart::{ChartRow, MIN_ROW_SOURCE_POINTS, RowNumber};
use entities::points::{Point, sort_by_time};
use entities::{
    ChartProgress, MIN_SEGMENT_POINTS, RunLocation, SegmentEncoding, metric_attribute, pack_set, segments, with_charted,
};
use key_schema::{Bucket, Key, rows};
use table::{Item, number};

use crate::pack::{MAX_DOCUMENT_BYTES, MAX_DOCUMENT_KEYS};

/// Number of points that are collected before they become a segment.
const SEGMENT_POINTS: usize = 2_000;
/// The number of packings that the documents of an imported run record.
const PACKED_ONCE: i64 = 1;

/// A packer of the complete histories of one run.
#[derive(Debug)]
pub struct HistoryPacker<'a> {
    at: &'a RunLocation,
    encoding: SegmentEncoding,
    metrics: BTreeMap<String, MetricHistory>,
    /// Segments and chart rows that have not been taken yet.
    ready: Vec<Item>,
}

/// The history of a metric, as far as it has been added.
#[derive(Debug, Default)]
struct MetricHistory {
    /// Points that are in no segment yet, in history order.
    waiting: Vec<Point>,
    latest: Option<Point>,
    is_sealed: bool,
    charted: ChartProgress,
    /// Chart rows that have not been combined into a row of the next level yet.
    rows: HashMap<RowNumber, ChartRow>,
}

impl<'a> HistoryPacker<'a> {
    /// Creates a packer for a run that has no points yet. `encoding` is that of the segments.
    #[must_use]
    pub fn new(at: &'a RunLocation, encoding: SegmentEncoding) -> Self {
        Self { at, encoding, metrics: BTreeMap::new(), ready: Vec::new() }
    }

    /// Adds points of a metric. They must not precede points that were added before, in the order of
    /// MLflow's history: timestamp, step, value.
    pub fn add(&mut self, metric: &str, points: impl IntoIterator<Item = Point>) {
        let history = self.metrics.entry(metric.to_owned()).or_default();
        for point in points {
            history.waiting.push(point);
            if history.latest.is_none_or(|latest| point.by_step(&latest).is_gt()) {
                history.latest = Some(point);
            }
            if history.waiting.len() >= 2 * SEGMENT_POINTS {
                history.seal(self.at, metric, SEGMENT_POINTS, self.encoding, &mut self.ready);
            }
        }
    }

    /// Returns segments and chart rows that are complete, and forgets them. They have to be written
    /// before the documents.
    pub fn take_ready(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.ready)
    }

    /// Returns all points if they fit into the run's own document. `bytes` is the number of bytes
    /// that this document has for points and the names of their metrics. Returns `None` if they do
    /// not fit, or if a metric has enough points for a segment.
    #[must_use]
    pub fn inline(&self, bytes: usize) -> Option<Vec<(&str, &[Point])>> {
        let is_short = |history: &MetricHistory| !history.is_sealed && history.waiting.len() < MIN_SEGMENT_POINTS;
        let size = |(name, history): (&String, &MetricHistory)| {
            metric_attribute(name).len() + history.waiting.iter().map(|point| point.pack().len()).sum::<usize>()
        };
        let fits = self.metrics.values().all(is_short) && self.metrics.iter().map(size).sum::<usize>() <= bytes;
        fits.then(|| self.metrics.iter().map(|(name, history)| (name.as_str(), history.waiting.as_slice())).collect())
    }

    /// Returns the remaining segments and chart rows, and the metrics documents, with the first
    /// document last. They have to be written in this order.
    #[must_use]
    pub fn finish(mut self) -> (Vec<Item>, Vec<Item>) {
        for (name, history) in &mut self.metrics {
            if history.is_sealed || history.waiting.len() >= MIN_SEGMENT_POINTS {
                history.seal_all(self.at, name, self.encoding, &mut self.ready);
            }
        }
        let first_key = self.at.metrics_key();
        let mut documents: BTreeMap<Key, BTreeMap<String, MetricHistory>> =
            BTreeMap::from([(first_key.clone(), BTreeMap::new())]);
        for (position, (name, history)) in self.metrics.into_iter().enumerate() {
            let key = if position < MAX_DOCUMENT_KEYS {
                first_key.clone()
            } else {
                rows::RunMetricsBucket::key(&self.at.run, &Bucket::of(&name))
            };
            documents.entry(key).or_default().insert(name, history);
        }
        let is_wide = documents.len() > 1;
        let mut items = Vec::new();
        for (key, mut metrics) in documents {
            if document(key.clone(), &metrics).size() > MAX_DOCUMENT_BYTES {
                for (name, history) in metrics.iter_mut().filter(|(_, history)| history.waiting.len() > 1) {
                    history.seal_all(self.at, name, self.encoding, &mut self.ready);
                }
            }
            let item = document(key.clone(), &metrics);
            items.push(if is_wide && key == first_key { item.with(WIDE, number(1)) } else { item });
        }
        items.sort_by_key(|item| item.key() == Some(first_key.clone()));
        (self.ready, items)
    }
}

/// Returns a metrics document.
fn document(key: Key, metrics: &BTreeMap<String, MetricHistory>) -> Item {
    let item = Item::new(key).with(PACKED, number(PACKED_ONCE));
    let item = metrics
        .iter()
        .fold(item, |item, (name, history)| item.with(metric_attribute(name), pack_set(&history.in_document())));
    with_charted(item, metrics.iter().map(|(name, history)| (name, history.charted)))
}

impl MetricHistory {
    /// Returns the points that the metrics document contains: only the latest point if the metric
    /// has segments, and all points otherwise.
    fn in_document(&self) -> Vec<Point> {
        if self.is_sealed { self.latest.into_iter().collect() } else { self.waiting.clone() }
    }

    /// Turns all waiting points into segments, and the segments into chart rows if they have enough
    /// points.
    fn seal_all(&mut self, at: &RunLocation, metric: &str, encoding: SegmentEncoding, ready: &mut Vec<Item>) {
        self.seal(at, metric, usize::MAX, encoding, ready);
        self.charted.is_kept = true;
    }

    /// Turns the first `most` waiting points into segments.
    fn seal(&mut self, at: &RunLocation, metric: &str, most: usize, encoding: SegmentEncoding, ready: &mut Vec<Item>) {
        let rest = self.waiting.split_off(most.min(self.waiting.len()));
        let mut sealed = std::mem::replace(&mut self.waiting, rest);
        sort_by_time(&mut sealed);
        self.is_sealed = true;
        for (segment, item, points) in segments(at, metric, &sealed, encoding) {
            ready.push(item);
            self.charted.left += points.len() as u64;
            // Each segment that is long enough becomes a row of its own. The last segment of a
            // metric usually is not long enough, so charts read its points. If a timestamp and step
            // have more points than fit into a segment, charts show only the first segment of them.
            if points.len() < MIN_ROW_SOURCE_POINTS || self.charted.has_passed(segment.place) {
                continue;
            }
            let (sample, represented) = ChartRow::points_of(points.to_vec());
            let row = ChartRow {
                number: RowNumber { level: 1, number: self.charted.rows },
                points: sample,
                represented_points: represented,
                after: self.charted.through(),
                through: segment.place,
                digests: vec![segment.digest],
                packed: PACKED_ONCE - 1,
            };
            self.charted.rows += 1;
            self.charted.points += represented;
            self.charted.through = segment.place;
            self.charted.left = self.charted.left.saturating_sub(represented);
            self.chart(at, metric, row, ready);
        }
    }

    /// Adds a chart row, and the rows of higher levels that it completes.
    fn chart(&mut self, at: &RunLocation, metric: &str, row: ChartRow, ready: &mut Vec<Item>) {
        let mut last = row.number;
        ready.push(row.item(at, metric));
        self.rows.insert(last, row);
        while let Some(next) = last.completed() {
            let parts: Vec<_> = next.parts().filter_map(|part| self.rows.remove(&part)).collect();
            let Some(row) = ChartRow::of_parts(next, &parts, PACKED_ONCE - 1) else { return };
            ready.push(row.item(at, metric));
            self.rows.insert(next, row);
            last = next;
        }
    }
}
