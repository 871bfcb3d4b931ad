//! Segments: points of one metric, packed, in the order of history.

use key_schema::{Ascending, Name, rows};
use table::{Item, bytes};

use crate::attributes::POINTS;
use crate::points::{self, Point};
use crate::run_location::RunLocation;

/// Points of a metric from which on they are worth a segment. It is an item of its own and costs at least a write unit; a waiting point
/// costs its bytes whenever the metrics document is written. The two meet at about ten.
pub const SEAL_AT: usize = 10;
/// Points in one segment.
const SEGMENT_POINTS: usize = 2_000;

/// Segments of points that are in the order of history.
pub fn segments<'a>(at: &'a RunLocation, metric: &'a str, points: &'a [Point]) -> impl Iterator<Item = Item> + 'a {
    points.chunks(SEGMENT_POINTS).filter_map(move |points| segment(at, metric, points))
}

fn segment(at: &RunLocation, metric: &str, points: &[Point]) -> Option<Item> {
    let first = points.first()?;
    let packed = points::pack(points);
    let key = rows::MetricSegment::key(
        &at.run,
        &Name::from(metric),
        &Ascending(first.timestamp),
        &Ascending(first.step),
        &points::digest(&packed),
    );
    Some(Item::new(key).with(POINTS, bytes(packed)))
}
