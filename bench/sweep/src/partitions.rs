//! What partitions take, second by second.

use std::cell::RefCell;
use std::collections::BTreeMap;

use embedded_engine::limits::{Limits, PartitionUsage};

/// Partitions of a kind whose bytes are looked at, at the most.
const FEW: usize = 2_000;

/// Counts what partitions take, from one second to the next.
#[derive(Default)]
pub(crate) struct Partitions {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    before: BTreeMap<String, PartitionUsage>,
    /// The whole of it, by partition.
    whole: BTreeMap<String, PartitionUsage>,
    kinds: BTreeMap<String, Kind>,
    seconds: usize,
}

/// Partitions whose keys have the same form.
#[derive(Clone, Debug, Default)]
pub struct Kind {
    /// How many of them took something.
    pub partitions: usize,
    /// What all of them took in a second, in the mean.
    pub write_units: f64,
    /// The same, read.
    pub read_units: f64,
    /// What the one that took most took in a second, in the mean.
    pub busiest_writes: f64,
    /// The same, read.
    pub busiest_reads: f64,
    /// The most that one of them took, of each second.
    pub writes_by_second: Vec<f64>,
    /// The same, read.
    pub reads_by_second: Vec<f64>,
    /// Requests that were throttled.
    pub throttled: u64,
    /// The bytes of the one that holds most; nothing where there are too many to look at.
    pub largest_bytes: Option<u64>,
}

impl Kind {
    /// The most that one of them took in a second.
    #[must_use]
    pub fn most_writes(&self) -> f64 {
        self.writes_by_second.iter().copied().fold(0.0, f64::max)
    }

    /// The same, read.
    #[must_use]
    pub fn most_reads(&self) -> f64 {
        self.reads_by_second.iter().copied().fold(0.0, f64::max)
    }
}

impl Partitions {
    /// A second is over.
    pub(crate) fn second(&self, limits: &Limits) {
        let usage = limits.usage();
        let state = &mut *self.state.borrow_mut();
        let mut most: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for (partition, now) in &usage {
            let taken = since(state.before.get(partition).copied().unwrap_or_default(), *now);
            if taken == PartitionUsage::default() {
                continue;
            }
            add(state.whole.entry(partition.clone()).or_default(), taken);
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

    /// Starts a new count.
    pub(crate) fn reset(&self, limits: &Limits) {
        *self.state.borrow_mut() = State { before: limits.usage(), ..State::default() };
    }

    /// Of each form of keys that not too many partitions have, those that took something.
    pub(crate) fn few(&self) -> BTreeMap<String, Vec<String>> {
        let mut few: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for partition in self.state.borrow().whole.keys() {
            few.entry(kind_of(partition)).or_default().push(partition.clone());
        }
        few.retain(|_, partitions| partitions.len() <= FEW);
        few
    }

    /// What was counted, by the form of the partitions' keys.
    pub(crate) fn kinds(&self) -> BTreeMap<String, Kind> {
        let state = self.state.borrow();
        let mut kinds = state.kinds.clone();
        let seconds = f64::from(u32::try_from(state.seconds.max(1)).unwrap_or(u32::MAX));
        for (partition, whole) in &state.whole {
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

/// The form of a partition's key: `EXP#` of `EXP#1`, `IX#…#M` of the list of a metric.
fn kind_of(partition: &str) -> String {
    let mut parts = partition.split('#');
    let first = parts.next().unwrap_or_default();
    match (first, parts.nth(1)) {
        // Of copies, the third part also says the stage.
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
