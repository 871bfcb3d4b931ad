//! The portion of a run's journal that one pass packs.
//!
//! Points that arrive late are put into separate chart rows, one per 256 points. After an outage of
//! the stream's consumer, there may be millions of late points, and a pass over all of them would
//! not finish. A pass therefore takes only as many tails of the journal as result in about two
//! hundred rows. The remaining tails stay in the journal, where readers find them, and the next
//! pass continues.

use std::collections::BTreeMap;

use entities::journal::Journal;
use entities::{ChartProgress, RunMetrics, SegmentStart, charted};
use mlflow_api::Result;

/// Number of late points after which a pass takes no further tails. The last tail that is taken may
/// exceed it.
const MAX_LATE_POINTS: usize = 50_000;

/// Returns the metrics with the part of the journal that is packed now, or `None` if the whole
/// journal is packed.
///
/// # Errors
/// Returns an internal error if the metrics cannot be read.
pub(crate) fn portion(metrics: &RunMetrics) -> Result<Option<RunMetrics>> {
    let mut known = BTreeMap::new();
    for document in &metrics.documents {
        known.extend(charted(document)?);
    }
    if late(&metrics.journal, &known) <= MAX_LATE_POINTS {
        return Ok(None);
    }
    let (mut taken, mut points) = (Vec::new(), 0);
    for tail in &metrics.tails {
        if points > MAX_LATE_POINTS {
            return metrics.with_tails(taken).map(Some);
        }
        points += late(&metrics.with_tails(vec![tail.clone()])?.journal, &known);
        taken.push(tail.clone());
    }
    Ok(None)
}

/// Counts the points of a journal that arrived late: their position in the history is already
/// covered by chart rows.
fn late(journal: &Journal, known: &BTreeMap<&str, ChartProgress>) -> usize {
    let is_late =
        |metric: &str, place: SegmentStart| known.get(metric).is_some_and(|charted| charted.has_passed(place));
    let segments = journal.segments.iter().flat_map(|(metric, segments)| {
        segments.iter().filter(|segment| is_late(metric, segment.place)).map(|segment| segment.points)
    });
    let waiting = journal
        .waiting
        .iter()
        .map(|(metric, points)| points.iter().filter(|point| is_late(metric, (point.timestamp, point.step))).count());
    segments.chain(waiting).sum()
}
