//! Segments: packed points of one metric, in history order.

use key_schema::{Ascending, Digest, Key, Name, key_parts, rows};
use mlflow_api::Result;
use table::{Item, bytes};

use crate::attributes::POINTS;
use crate::points::{self, Point};
use crate::run_location::RunLocation;
use crate::unreadable_item::unreadable;

/// Minimum number of points of a metric that are sealed as a segment. A segment is an item of its
/// own and costs at least one write unit, while a waiting point costs its bytes whenever the
/// metrics document is written. The two costs are equal at about ten points.
pub const MIN_SEGMENT_POINTS: usize = 10;
/// Maximum number of points in one segment.
const MAX_SEGMENT_POINTS: usize = 2_000;

/// Start of a segment in history order: timestamp in ms and step of its first point.
pub type SegmentStart = (i64, i64);

/// Identity of a metric's segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentName {
    /// Start of the segment.
    pub place: SegmentStart,
    /// Digest of the segment's points.
    pub digest: Digest,
    /// Number of points in the segment.
    pub points: usize,
}

impl SegmentName {
    /// Returns the segment's key.
    #[must_use]
    pub fn key(&self, at: &RunLocation, metric: &str) -> Key {
        let (timestamp, step) = self.place;
        rows::MetricSegment::key(&at.run, &Name::from(metric), &Ascending(timestamp), &Ascending(step), &self.digest)
    }
}

/// Splits points that are in history order into segments, each with its name, its item and its
/// points.
pub fn segments<'a>(
    at: &'a RunLocation,
    metric: &'a str,
    points: &'a [Point],
) -> impl Iterator<Item = (SegmentName, Item, &'a [Point])> + 'a {
    points.chunks(MAX_SEGMENT_POINTS).filter_map(move |points| {
        let first = points.first()?;
        let packed = points::pack(points);
        let place = (first.timestamp, first.step);
        let name = SegmentName { place, digest: points::digest(&packed), points: points.len() };
        Some((name, Item::new(name.key(at, metric)).with(POINTS, bytes(packed)), points))
    })
}

/// Reads a segment's points, in history order, and their digest.
///
/// # Errors
/// Returns an internal error if the points cannot be read, or are not the ones that were written.
pub fn read_segment(segment: &Item) -> Result<(Vec<Point>, Digest)> {
    let read = || {
        let packed = segment.bytes(POINTS)?;
        let digest = key_parts::points_of_segment(&segment.key()?.sk)?;
        // Without the comparison of digests, a truncated segment would be read as a shorter one.
        let is_whole = digest == points::digest(packed);
        Some((is_whole.then(|| points::unpack(packed))??, digest))
    };
    read().ok_or_else(|| unreadable(segment, "a segment of points"))
}
