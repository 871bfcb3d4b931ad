//! Metrics documents: for each metric a set of packed points, the latest and those that wait for a segment.

use table::{Item, Value, bytes_set};

use crate::attributes::{metric_attribute, metric_of};
use crate::points::Point;

/// Points of a metric that wait in a document, latest included; in no order.
#[must_use]
pub fn waiting(document: &Item, metric: &str) -> Vec<Point> {
    document.0.get(&metric_attribute(metric)).map(unpack_set).unwrap_or_default()
}

/// The latest point of each metric in a document.
pub fn latest(document: &Item) -> impl Iterator<Item = (&str, Point)> {
    let metrics = document.0.iter().filter_map(|(name, value)| Some((metric_of(name)?, value)));
    metrics.filter_map(|(name, value)| Some((name, unpack_set(value).into_iter().max_by(Point::by_step)?)))
}

fn unpack_set(value: &Value) -> Vec<Point> {
    let set = value.as_bs().map(Vec::as_slice).unwrap_or_default();
    set.iter().filter_map(|bytes| Point::unpack(bytes.as_ref())).collect()
}

/// A set of points as a document holds it.
#[must_use]
pub fn pack_set(points: &[Point]) -> Value {
    let mut packed: Vec<_> = points.iter().map(Point::pack).collect();
    packed.sort_unstable();
    packed.dedup();
    bytes_set(packed)
}
