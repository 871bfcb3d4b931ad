//! Counts the traces that a partition gets.
//!
//! A partition takes 1,000 write units a second. A trace needs about three of them there in its
//! time: its mark, the deletion of the mark, and its share of a block. Records of the stream say
//! when marks were put. So the consumer of a partition's records can count its traces without a
//! request.

use std::collections::{BTreeSet, HashMap};

use entities::attributes::MARKED_AT;
use mlflow_api::ExperimentId;
use serde_json::Value;
use trace_blocks::TracePartition;

/// Marks per second that one partition takes, in addition to the deletions and blocks of as many.
const MOST_A_SECOND: usize = 250;
/// When marks were put in partitions, by the records of a batch.
#[derive(Debug, Default)]
pub struct Marked(HashMap<TracePartition, Vec<i64>>);

impl Marked {
    /// Takes the record of a mark into account.
    pub fn add(&mut self, partition: TracePartition, record: &Value) {
        let at = record.pointer(&format!("/dynamodb/NewImage/{MARKED_AT}/N"));
        let at = at.and_then(Value::as_str).and_then(|at| at.parse().ok());
        self.0.entry(partition).or_default().extend::<Option<i64>>(at);
    }

    /// The days with a partition that got more marks than it takes.
    #[must_use]
    pub fn crowded(&self) -> BTreeSet<(ExperimentId, i64)> {
        let crowded = self.0.iter().filter(|(_, times)| is_crowded(times));
        crowded.map(|(partition, _)| (partition.experiment, partition.day)).collect()
    }
}

/// Whether marks that were put at these times were too many a second. Those of less than a second count for a whole one.
fn is_crowded(times: &[i64]) -> bool {
    let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else { return false };
    let ms = usize::try_from(last.saturating_sub(*first)).unwrap_or(usize::MAX).max(1_000);
    times.len().saturating_mul(1_000) > ms.saturating_mul(MOST_A_SECOND)
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
