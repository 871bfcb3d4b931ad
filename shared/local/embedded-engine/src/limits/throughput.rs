//! The throughput of a partition, and its usage.

use std::time::Duration;

/// The throughput of one partition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Read units per second.
    pub reads: f64,
    /// Write units per second.
    pub writes: f64,
    /// Time for which unused units are kept, at least one second.
    pub burst: Duration,
}

impl Throughput {
    /// No throughput: every request is throttled.
    pub const NONE: Self = Self { reads: 0.0, writes: 0.0, burst: Duration::ZERO };

    /// The maximum throughput that DynamoDB gives to one partition. Bursts cannot exceed it: "Burst
    /// capacity can't alleviate partition-level throttling"
    /// (<https://repost.aws/knowledge-center/dynamodb-spiky-workloads-short-intervals>). In a table
    /// with local indexes, all items of a partition key are in one partition.
    pub const PARTITION_MAX: Self = Self { reads: 3_000.0, writes: 1_000.0, burst: Duration::from_secs(1) };

    /// Time for which DynamoDB keeps unused units of a table's provisioned throughput, at the time
    /// of writing
    /// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html>).
    pub const BURST_DURATION: Duration = Duration::from_mins(5);
}

/// The consumption of a partition, including local indexes, but not global ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartitionUsage {
    /// Read units consumed.
    pub read_units: f64,
    /// Write units consumed.
    pub write_units: f64,
    /// Number of throttled reads. A batch or a transaction counts once for each partition that
    /// throttled its part of the request.
    pub throttled_reads: u64,
    /// Number of throttled writes. A batch or a transaction counts once for each partition that
    /// throttled its part of the request.
    pub throttled_writes: u64,
}

/// The kind of units that a request consumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CapacityKind {
    Read,
    Write,
}

impl CapacityKind {
    pub(super) fn of(operation: &str) -> Self {
        match operation {
            "GetItem" | "Query" | "BatchGetItem" | "TransactGetItems" => Self::Read,
            _ => Self::Write,
        }
    }
}
