//! Metrics documents. For each metric, such a document has a set of packed points: the latest
//! point, and the points that wait for a segment.

use mlflow_api::Result;
use table::{Item, Value, bytes_set};

use crate::attributes::{metric_attribute, metric_of};
use crate::points::Point;
use crate::unreadable_item::unreadable;

/// Returns a metric's waiting points in a document, including the latest, in no particular order.
///
/// # Errors
/// Returns an internal error if they cannot be read.
pub fn waiting(document: &Item, metric: &str) -> Result<Vec<Point>> {
    let set = document.0.get(&metric_attribute(metric)).map(|set| unpack_set(document, set));
    set.unwrap_or_else(|| Ok(Vec::new()))
}

/// Returns the latest point of each metric in a document.
///
/// # Errors
/// If a metric cannot be read, the iterator yields an internal error in place of its point.
pub fn latest(document: &Item) -> impl Iterator<Item = Result<(&str, Point)>> {
    let metrics = document.0.iter().filter_map(|(name, value)| Some((metric_of(name)?, value)));
    metrics.map(|(name, set)| {
        let latest = unpack_set(document, set)?.into_iter().max_by(Point::by_step);
        // A set without points can only be corrupt, because DynamoDB has no empty sets.
        Ok((name, latest.ok_or_else(|| unreadable(document, "a metric"))?))
    })
}

fn unpack_set(document: &Item, set: &Value) -> Result<Vec<Point>> {
    let points =
        |set: &Value| set.as_bs().ok()?.iter().map(|bytes| Point::unpack(bytes.as_ref())).collect::<Option<Vec<_>>>();
    points(set).ok_or_else(|| unreadable(document, "a metric"))
}

/// Packs points into a set as documents store it.
#[must_use]
pub fn pack_set(points: &[Point]) -> Value {
    let mut packed: Vec<_> = points.iter().map(Point::pack).collect();
    packed.sort_unstable();
    packed.dedup();
    bytes_set(packed)
}
