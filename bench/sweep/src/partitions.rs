//! The consumption of partitions, second by second.

use std::cell::RefCell;
use std::collections::BTreeMap;

use embedded_engine::limits::{EngineLimits, PartitionUsage};

/// Maximum number of partitions of one kind whose sizes are measured. If there are more, the sizes
/// of this kind are not measured.
const MAX_MEASURED_PARTITIONS: usize = 2_000;

/// Measures the consumption of partitions in each second.
#[derive(Default)]
pub(crate) struct PartitionMeter {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    before: BTreeMap<String, PartitionUsage>,
    /// Total consumption by partition.
    totals: BTreeMap<String, PartitionUsage>,
    kinds: BTreeMap<String, PartitionKind>,
    seconds: usize,
}

/// The consumption of all partitions whose keys have the same form.
#[derive(Clone, Debug, Default)]
pub struct PartitionKind {
    /// Number of partitions that consumed anything.
    pub partitions: usize,
    /// Average number of write units per second that all partitions of the kind consume together.
    pub write_units: f64,
    /// Average number of read units per second that all partitions of the kind consume together.
    pub read_units: f64,
    /// Average number of write units per second that the busiest partition consumes.
    pub busiest_writes: f64,
    /// Average number of read units per second that the busiest partition consumes.
    pub busiest_reads: f64,
    /// For each second, the write units of the partition that consumes the most.
    pub writes_by_second: Vec<f64>,
    /// For each second, the read units of the partition that consumes the most.
    pub reads_by_second: Vec<f64>,
    /// Number of throttled requests.
    pub throttled: u64,
    /// Size of the largest partition in bytes. `None` if there are too many partitions to measure.
    pub largest_bytes: Option<u64>,
}

impl PartitionKind {
    /// Returns the maximum write units of one partition in one second.
    #[must_use]
    pub fn max_writes(&self) -> f64 {
        self.writes_by_second.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the maximum read units of one partition in one second.
    #[must_use]
    pub fn max_reads(&self) -> f64 {
        self.reads_by_second.iter().copied().fold(0.0, f64::max)
    }
}

impl PartitionMeter {
    /// Records the consumption of the past second.
    pub(crate) fn record_second(&self, limits: &EngineLimits) {
        let usage = limits.usage();
        let state = &mut *self.state.borrow_mut();
        let mut most: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for (partition, now) in &usage {
            let taken = since(state.before.get(partition).copied().unwrap_or_default(), *now);
            if taken == PartitionUsage::default() {
                continue;
            }
            add(state.totals.entry(partition.clone()).or_default(), taken);
            let (writes, reads) = most.entry(kind_of(partition)).or_default();
            (*writes, *reads) = (writes.max(taken.write_units), reads.max(taken.read_units));
        }
        for (kind, (writes, reads)) in most {
            let kind = state.kinds.entry(kind).or_default();
            kind.writes_by_second.resize(state.seconds, 0.0);
            kind.reads_by_second.resize(state.seconds, 0.0);
            kind.writes_by_second.push(writes);
            kind.reads_by_second.push(reads);
        }
        state.seconds += 1;
        state.before = usage;
    }

    /// Starts a new measurement.
    pub(crate) fn reset(&self, limits: &EngineLimits) {
        *self.state.borrow_mut() = State { before: limits.usage(), ..State::default() };
    }

    /// Returns the keys of the partitions with consumption, grouped by the form of the key. Forms
    /// that have too many partitions to measure are left out.
    pub(crate) fn measured_partitions(&self) -> BTreeMap<String, Vec<String>> {
        let mut few: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for partition in self.state.borrow().totals.keys() {
            few.entry(kind_of(partition)).or_default().push(partition.clone());
        }
        few.retain(|_, partitions| partitions.len() <= MAX_MEASURED_PARTITIONS);
        few
    }

    /// Returns the measurements, by the form of the partitions' keys.
    pub(crate) fn kinds(&self) -> BTreeMap<String, PartitionKind> {
        let state = self.state.borrow();
        let mut kinds = state.kinds.clone();
        let seconds = f64::from(u32::try_from(state.seconds.max(1)).unwrap_or(u32::MAX));
        for (partition, whole) in &state.totals {
            let kind = kinds.entry(kind_of(partition)).or_default();
            let (writes, reads) = (whole.write_units / seconds, whole.read_units / seconds);
            kind.partitions += 1;
            kind.write_units += writes;
            kind.read_units += reads;
            kind.busiest_writes = kind.busiest_writes.max(writes);
            kind.busiest_reads = kind.busiest_reads.max(reads);
            kind.throttled += whole.throttled_reads + whole.throttled_writes;
            kind.writes_by_second.resize(state.seconds, 0.0);
            kind.reads_by_second.resize(state.seconds, 0.0);
        }
        kinds
    }
}

fn since(before: PartitionUsage, now: PartitionUsage) -> PartitionUsage {
    PartitionUsage {
        read_units: now.read_units - before.read_units,
        write_units: now.write_units - before.write_units,
        throttled_reads: now.throttled_reads - before.throttled_reads,
        throttled_writes: now.throttled_writes - before.throttled_writes,
    }
}

fn add(sum: &mut PartitionUsage, other: PartitionUsage) {
    sum.read_units += other.read_units;
    sum.write_units += other.write_units;
    sum.throttled_reads += other.throttled_reads;
    sum.throttled_writes += other.throttled_writes;
}

/// Returns the form of a partition's key, for example `EXP#` for `EXP#1`, and `IX#…#M` for the list
/// of a metric.
fn kind_of(partition: &str) -> String {
    let mut parts = partition.split('#');
    let first = parts.next().unwrap_or_default();
    match (first, parts.nth(1)) {
        // In the keys of copies, the third part also contains the stage, so only the first letter
        // of that part is used.
        ("IX", Some(list)) => format!("IX#…#{}", list.get(..1).unwrap_or_default()),
        _ => format!("{first}#"),
    }
}

#[cfg(test)]
mod tests {
    use super::kind_of;

    #[test]
    fn partitions_are_told_apart_by_the_form_of_their_keys() {
        let kinds = ["EXP#1", "RUN#abc", "IX#1#M#loss", "IX#1#Ca#run", "IX#1#T#w#run#tags.a#b", "LATER#07", "GSI1 R#x"];
        let kinds = kinds.map(kind_of);
        assert_eq!(kinds, ["EXP#", "RUN#", "IX#…#M", "IX#…#C", "IX#…#T", "LATER#", "GSI1 R#"]);
    }
}
