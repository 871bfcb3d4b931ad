//! Sealing turns the waiting points of a metric into segments. The latest point also stays in the
//! metrics document.

use std::collections::HashSet;

use entities::points::{self, Point};
use entities::{ChartProgress, RunLocation, SegmentEncoding, SegmentName, segments};
use table::Item;

/// A metric of a run that is being packed.
#[derive(Debug)]
pub(crate) struct PackedMetric {
    /// The waiting points and the latest point.
    pub(crate) points: Vec<Point>,
    /// The latest point, if it is also in a segment.
    kept: Option<Point>,
    /// How much of the metric's history is in chart rows.
    pub(crate) charted: ChartProgress,
    /// Segments that are written in this pass.
    pub(crate) sealed: Vec<(SegmentName, Vec<Point>)>,
    /// Segments that calls have written since the metric was last packed.
    pub(crate) announced: Vec<SegmentName>,
}

impl PackedMetric {
    /// Creates a metric from its waiting points. `in_document` contains the waiting points that are
    /// already in the metric's document.
    pub(crate) fn new(mut points: Vec<Point>, in_document: &[Point], charted: ChartProgress) -> Self {
        points::sort_by_time(&mut points);
        let known = if charted.is_kept { in_document.iter().copied().max_by(Point::by_step) } else { None };
        let mut metric = Self { points, kept: None, charted, sealed: Vec::new(), announced: Vec::new() };
        metric.keep(known);
        metric
    }

    /// Records that a point has been written to a segment. As long as it is the latest point, it
    /// also stays in the document.
    fn keep(&mut self, sealed: Option<Point>) {
        let latest = self.points.iter().copied().max_by(Point::by_step);
        self.kept = sealed.filter(|sealed| latest == Some(*sealed));
        self.charted.is_kept = self.kept.is_some();
        if self.kept.is_none() {
            self.points.retain(|point| Some(*point) != sealed);
        }
    }

    /// Turns all points into segments, and keeps the latest point in the document as well. Points
    /// that precede points in chart rows are put into separate segments.
    pub(crate) fn seal(&mut self, at: &RunLocation, name: &str, encoding: SegmentEncoding, items: &mut Vec<Item>) {
        let points: Vec<_> = self.points.iter().copied().filter(|point| Some(*point) != self.kept).collect();
        let late = points.partition_point(|point| self.charted.has_passed((point.timestamp, point.step)));
        let (late, others) = points.split_at(late);
        for (segment, item, points) in segments(at, name, late, encoding).chain(segments(at, name, others, encoding)) {
            self.charted.left += count(&segment);
            self.sealed.push((segment, points.to_vec()));
            items.push(item);
        }
        let latest = self.points.iter().copied().max_by(Point::by_step);
        self.points.retain(|point| Some(*point) == latest);
        self.keep(latest);
    }

    /// Returns the segments that were created since the metric's document was last written.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &SegmentName> {
        self.sealed.iter().map(|(segment, _)| segment).chain(&self.announced)
    }

    /// Records segments that calls have written, and the latest points in them.
    pub(crate) fn announce<'a>(
        &mut self,
        announced: impl Iterator<Item = &'a SegmentName>,
        latest: impl Iterator<Item = &'a Point>,
    ) {
        let mut known: HashSet<_> = self.announced.iter().map(|segment| (segment.place, segment.digest.0)).collect();
        for segment in announced {
            // The segment is known already if a client has repeated the call.
            if known.insert((segment.place, segment.digest.0)) {
                self.charted.left += count(segment);
                self.announced.push(*segment);
            }
        }
        let Some(newest) = latest.copied().max_by(Point::by_step) else { return };
        if self.points.iter().any(|point| point.by_step(&newest).is_ge()) {
            return;
        }
        // Of the points that are also in segments, only the latest has to be kept.
        let before = self.kept;
        self.points.retain(|point| Some(*point) != before);
        self.points.push(newest);
        self.keep(Some(newest));
    }
}

fn count(segment: &SegmentName) -> u64 {
    u64::try_from(segment.points).unwrap_or(u64::MAX)
}
