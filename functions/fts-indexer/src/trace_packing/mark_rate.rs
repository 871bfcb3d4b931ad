//! Counts the traces that a partition receives.
//!
//! A partition handles 1,000 write units per second. A trace takes about three write units: one for
//! its mark, one for the deletion of the mark, and its share of a block. A mark with spans usually takes
//! two for each, so it counts twice. Records of the stream
//! contain the time when a mark was put. The consumer of a partition's records can therefore count
//! the partition's traces without a request.

use std::collections::{BTreeSet, HashMap};

use entities::attributes::{CONTENT, MARKED_AT};
use mlflow_api::ExperimentId;
use serde_json::Value;
use trace_blocks::TracePartition;

/// Maximum number of marks per second that one partition handles, together with the deletions and
/// blocks that these marks cause.
const MAX_MARKS_PER_SECOND: usize = 250;
/// Times at which marks were put, by partition, according to the records of a batch.
#[derive(Debug, Default)]
pub(crate) struct MarkTimes(HashMap<TracePartition, Vec<i64>>);

impl MarkTimes {
    /// Adds the time of a mark, given the mark's record.
    pub(crate) fn add(&mut self, partition: TracePartition, record: &Value) {
        let at = record.pointer(&format!("/dynamodb/NewImage/{MARKED_AT}/N"));
        let Some(at) = at.and_then(Value::as_str).and_then(|at| at.parse::<i64>().ok()) else { return };
        let has_spans = record.pointer(&format!("/dynamodb/NewImage/{CONTENT}/B")).is_some();
        self.0.entry(partition).or_default().extend(std::iter::repeat_n(at, if has_spans { 2 } else { 1 }));
    }

    /// Returns the days that have a partition with more marks per second than a partition can
    /// handle.
    #[must_use]
    pub(crate) fn crowded_days(&self) -> BTreeSet<(ExperimentId, i64)> {
        let crowded = self.0.iter().filter(|(_, times)| is_crowded(times));
        crowded.map(|(partition, _)| (partition.experiment, partition.day)).collect()
    }
}

/// Checks whether marks that were put at these times exceed the limit per second. A period of less
/// than one second is treated as one second.
fn is_crowded(times: &[i64]) -> bool {
    let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else { return false };
    let ms = usize::try_from(last.saturating_sub(*first)).unwrap_or(usize::MAX).max(1_000);
    times.len().saturating_mul(1_000) > ms.saturating_mul(MAX_MARKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_crowded_by_what_comes_in_a_second() {
        let every = |ms: i64, marks: i64| (0..marks).map(|number| number * ms).collect::<Vec<_>>();
        for (times, expected) in [
            (every(0, 250), false),
            (every(0, 251), true),
            (every(10, 1_000), false),
            (every(4, 1_000), true),
            (every(3, 1_000), true),
            (every(5, 1_000), false),
            (vec![i64::MIN, i64::MAX], false),
            (Vec::new(), false),
        ] {
            assert_eq!(is_crowded(&times), expected, "{} in {:?} ms", times.len(), times.last());
        }
    }
}
