//! Segments: points of one metric, packed, in the order of history.

use key_schema::{Ascending, Digest, Key, Name, part, rows};
use mlflow_api::Result;
use table::{Item, bytes};

use crate::attributes::POINTS;
use crate::points::{self, Point};
use crate::run_location::RunLocation;
use crate::unreadable::unreadable;

/// Points of a metric from which on they are worth a segment. It is an item of its own and costs at least a write unit; a waiting point
/// costs its bytes whenever the metrics document is written. The two meet at about ten.
pub const SEAL_AT: usize = 10;
/// Points in one segment.
const SEGMENT_POINTS: usize = 2_000;

/// Where a segment begins in the order of history: timestamp, in ms, and step of its first point.
pub type SegmentStart = (i64, i64);

/// Names a segment of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentName {
    /// Where it begins.
    pub place: SegmentStart,
    /// The digest of its points.
    pub digest: Digest,
    /// How many these are.
    pub points: usize,
}

impl SegmentName {
    /// The segment's key.
    #[must_use]
    pub fn key(&self, at: &RunLocation, metric: &str) -> Key {
        let (timestamp, step) = self.place;
        rows::MetricSegment::key(&at.run, &Name::from(metric), &Ascending(timestamp), &Ascending(step), &self.digest)
    }
}

/// Segments of points that are in the order of history, each with its name and its points.
pub fn segments<'a>(
    at: &'a RunLocation,
    metric: &'a str,
    points: &'a [Point],
) -> impl Iterator<Item = (SegmentName, Item, &'a [Point])> + 'a {
    points.chunks(SEGMENT_POINTS).filter_map(move |points| {
        let first = points.first()?;
        let packed = points::pack(points);
        let place = (first.timestamp, first.step);
        let name = SegmentName { place, digest: points::digest(&packed), points: points.len() };
        Some((name, Item::new(name.key(at, metric)).with(POINTS, bytes(packed)), points))
    })
}

/// A segment's points, in the order of history, and their digest.
///
/// # Errors
/// An internal one if they cannot be read, or are not those that were written.
pub fn read_segment(segment: &Item) -> Result<(Vec<Point>, Digest)> {
    let read = || {
        let packed = segment.bytes(POINTS)?;
        let digest = part::points_of_segment(&segment.key()?.sk)?;
        // Without the digest, a segment that lost its end would be a shorter one.
        let is_whole = digest == points::digest(packed);
        Some((is_whole.then(|| points::unpack(packed))??, digest))
    };
    read().ok_or_else(|| unreadable(segment, "a segment of points"))
}
