//! The partitions that requests have been sent to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::throughput::{CapacityKind, PartitionUsage, Throughput};
use super::token_bucket::TokenBucket;

type ThroughputOf = Arc<dyn Fn(&str) -> Option<Throughput> + Send + Sync>;

/// The usage and the remaining units of partitions, by their keys.
#[derive(Default)]
pub(super) struct Partitions {
    throughput: Option<ThroughputOf>,
    partitions: BTreeMap<String, Partition>,
}

#[derive(Default)]
struct Partition {
    reads: TokenBucket,
    writes: TokenBucket,
    usage: PartitionUsage,
}

impl Partitions {
    pub(super) fn set_throughput(&mut self, of: ThroughputOf) {
        self.throughput = Some(of);
    }

    /// Checks whether a partition admits another request. Requests that are not admitted are
    /// counted.
    pub(super) fn admits(&mut self, partition: &str, direction: CapacityKind, now: Duration) -> bool {
        let throughput = self.throughput.as_ref().and_then(|of| of(partition));
        let partition = self.partitions.entry(partition.to_owned()).or_default();
        let Some(Throughput { reads, writes, burst }) = throughput else { return true };
        let (bucket, rate, throttled) = match direction {
            CapacityKind::Read => (&mut partition.reads, reads, &mut partition.usage.throttled_reads),
            CapacityKind::Write => (&mut partition.writes, writes, &mut partition.usage.throttled_writes),
        };
        let is_admitted = bucket.admits(now, rate, burst);
        if !is_admitted {
            *throttled += 1;
        }
        is_admitted
    }

    /// Charges the units that a request has consumed.
    pub(super) fn charge(&mut self, partition: &str, direction: CapacityKind, units: f64) {
        let partition = self.partitions.entry(partition.to_owned()).or_default();
        let (bucket, used) = match direction {
            CapacityKind::Read => (&mut partition.reads, &mut partition.usage.read_units),
            CapacityKind::Write => (&mut partition.writes, &mut partition.usage.write_units),
        };
        bucket.take(units);
        *used += units;
    }

    pub(super) fn usage(&self) -> BTreeMap<String, PartitionUsage> {
        self.partitions.iter().map(|(key, partition)| (key.clone(), partition.usage)).collect()
    }

    pub(super) fn reset_usage(&mut self) {
        for partition in self.partitions.values_mut() {
            partition.usage = PartitionUsage::default();
        }
    }
}
