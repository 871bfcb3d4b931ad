//! Values of a scenario that several parts of the page need, and functions that format them.

use std::time::Duration;

use embedded_engine::limits::Throughput;

use crate::call_counts::{CallCounts, CallKind, CallStats};
use crate::compute::CpuRule;
use crate::load::Load;
use crate::scenario::ScenarioResult;
use crate::stream_delivery::IndexerWork;

/// Maximum write units and read units per second of one partition.
pub(super) const WRITE_LIMIT: f64 = Throughput::PARTITION_MAX.writes;
pub(super) const READ_LIMIT: f64 = Throughput::PARTITION_MAX.reads;
/// Maximum size in bytes of all items of one partition key, in a table with local indexes.
pub(super) const MAX_COLLECTION_BYTES: f64 = 10e9;
/// Units per second that a new on-demand table handles before it has grown.
pub(super) const NEW_TABLE_WRITES: f64 = 4_000.0;
pub(super) const NEW_TABLE_READS: f64 = 12_000.0;

/// Returns the factor by which a function with this memory computes more slowly than on a whole
/// core.
pub(super) fn slowdown(rule: CpuRule, memory_mb: u32) -> f64 {
    rule.slowed(Duration::from_secs(1), memory_mb).as_secs_f64()
}

/// Returns the write units and read units per second of the whole table.
pub(super) fn table_units(measured: &ScenarioResult) -> (f64, f64) {
    let seconds = measured.scenario.sample.as_secs_f64();
    let tally = &measured.tally;
    (tally.sum(|calls| calls.usage.write_units) / seconds, tally.sum(|calls| calls.usage.read_units) / seconds)
}

/// Returns the fraction of the time for which an indexer with this memory is busy.
pub(super) fn busy_part(measured: &ScenarioResult, work: IndexerWork, memory_mb: u32) -> f64 {
    let busy = work.waits + measured.rule.slowed(work.computed, memory_mb);
    busy.as_secs_f64() / measured.scenario.sample.as_secs_f64()
}

/// Returns the fraction of the time for which the busiest indexer would be busy with this memory.
pub(super) fn busiest_indexer(measured: &ScenarioResult, memory_mb: u32) -> f64 {
    measured.indexers.iter().map(|work| busy_part(measured, *work, memory_mb)).fold(0.0, f64::max)
}

/// Returns whether the jobs log runs, whose changes are indexed.
pub(super) fn has_runs(measured: &ScenarioResult) -> bool {
    !matches!(measured.scenario.load, Load::Traces { .. })
}

/// Returns the kind of partition that contains the largest one, and the size in bytes that this
/// partition reaches after a whole day of the load. Returns `None` if the load has no traces,
/// because only partitions of traces belong to a day.
pub(super) fn day_size(measured: &ScenarioResult) -> Option<(&str, f64)> {
    let Load::Traces { .. } = measured.scenario.load else { return None };
    let seconds = (measured.scenario.warm_up + measured.scenario.sample).as_secs_f64();
    let of_day = measured.partitions.iter().filter(|(kind, _)| ["TR#", "TS#"].contains(&kind.as_str()));
    let largest = of_day.filter_map(|(kind, taken)| Some((kind.as_str(), taken.largest_bytes?)));
    let (kind, bytes) = largest.max_by_key(|(_, bytes)| *bytes)?;
    #[expect(clippy::cast_precision_loss, reason = "bytes of a partition")]
    Some((kind, bytes as f64 * 86_400.0 / seconds))
}

/// Returns the sum of a counter over the calls of clients.
pub(super) fn of_clients(tally: &CallCounts, of: fn(&CallStats) -> u32) -> f64 {
    tally.0.iter().filter(|(call, _)| call.is_by_http()).map(|(_, calls)| f64::from(of(calls))).sum()
}

/// Returns the average of a value over the calls of a kind.
pub(super) fn mean(tally: &CallCounts, call: CallKind, of: impl Fn(&CallStats) -> f64) -> f64 {
    tally.0.get(&call).map_or(0.0, |calls| of(calls) / f64::from(calls.made.max(1)))
}

/// Formats a number with two decimals if it is below 10, with one if it is below 100, and otherwise
/// as a whole number.
pub(super) fn format_number(value: f64) -> String {
    if value >= 100.0 {
        format_count(value)
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(super) fn count_of(value: u64) -> String {
    format_count(value as f64)
}

/// Formats a whole number in groups of three digits.
pub(super) fn format_count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
