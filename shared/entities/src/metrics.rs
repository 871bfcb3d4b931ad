//! Metrics documents: for each metric a set of packed points, the latest and those that wait for a segment.

use table::{Item, Value, bytes_set};

use crate::points::Point;

/// The attribute of a metric. No other attribute begins with a dot.
#[must_use]
pub fn metric_attribute(metric: &str) -> String {
    format!(".{metric}")
}

/// Points of a metric that wait in a document, latest included; in no order.
#[must_use]
pub fn waiting(document: &Item, metric: &str) -> Vec<Point> {
    document.0.get(&metric_attribute(metric)).map(unpack_set).unwrap_or_default()
}

/// The latest point of each metric in a document.
pub fn latest(document: &Item) -> impl Iterator<Item = (&str, Point)> {
    let metrics = document.0.iter().filter_map(|(name, value)| Some((name.strip_prefix('.')?, value)));
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
