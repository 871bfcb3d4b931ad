//! The throughput of a partition, and its usage.

use std::time::Duration;

/// The throughput of one partition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Read units a second.
    pub reads: f64,
    /// Write units a second.
    pub writes: f64,
    /// For how long unused units are kept for later. At least a second's are.
    pub burst: Duration,
}

impl Throughput {
    /// Nothing: every request is throttled.
    pub const NONE: Self = Self { reads: 0.0, writes: 0.0, burst: Duration::ZERO };

    /// The most that DynamoDB gives to one partition. A burst does not lift it: "Burst capacity can't alleviate partition-level throttling"
    /// (<https://repost.aws/knowledge-center/dynamodb-spiky-workloads-short-intervals>). A table with local indexes keeps all items of a
    /// partition key in one partition.
    pub const OF_A_PARTITION: Self = Self { reads: 3_000.0, writes: 1_000.0, burst: Duration::from_secs(1) };

    /// For how long DynamoDB keeps unused units of a table's provisioned throughput, at the time of
    /// writing
    /// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html>).
    pub const BURST: Duration = Duration::from_mins(5);
}

/// The consumption of a partition, with local indexes, and without global ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartitionUsage {
    /// Read units.
    pub read_units: f64,
    /// Write units.
    pub write_units: f64,
    /// Requests to read that were throttled, or the part of them that is about this partition.
    pub throttled_reads: u64,
    /// The same of requests to write.
    pub throttled_writes: u64,
}

/// Which of its two units a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

impl Direction {
    pub(super) fn of(operation: &str) -> Self {
        match operation {
            "GetItem" | "Query" | "BatchGetItem" | "TransactGetItems" => Self::Read,
            _ => Self::Write,
        }
    }
}
