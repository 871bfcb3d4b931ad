//! The objectives of a scenario, and whether they are met.

use std::fmt::Write;

use super::figures::{
    MAX_COLLECTION_BYTES, NEW_TABLE_READS, NEW_TABLE_WRITES, READ_LIMIT, WRITE_LIMIT, busiest_indexer, count_of,
    day_size, format_count, format_number, has_runs, mean, of_clients, table_units,
};
use crate::call_counts::CallStats;
use crate::indexing_lag::quantile;
use crate::partitions::PartitionKind;
use crate::scenario::ScenarioResult;

/// Maximum number of seconds until a change is indexed, or packed if the run is still being logged to. A
/// run with few points is packed every three minutes, and the tick that requests it comes once a
/// minute.
const MAX_INDEXING_SECONDS: f64 = 240.0;

/// Returns the table of objectives, and whether they are met.
pub(super) fn objectives(measured: &ScenarioResult) -> String {
    let tally = &measured.tally;
    let [made, throttled, given_up] =
        [|calls: &CallStats| calls.made, |calls: &CallStats| calls.throttled, |calls: &CallStats| calls.given_up]
            .map(|of| of_clients(tally, of));
    let refused = of_clients(tally, |calls| calls.refused);
    let waits = &measured.waits;
    let mut text = "| objective | met | measured |\n|---|---|---|\n".to_owned();
    let _ = writeln!(
        text,
        "| no call of a client is throttled | {} | {} of {} calls answered 429, {} of them by the gateway; {} given up |",
        mark(throttled + given_up == 0.0),
        format_count(throttled),
        format_count(made),
        format_count(refused),
        format_count(given_up),
    );
    text.push_str(&stack_objectives(measured, made - throttled, refused));
    if has_runs(measured) {
        let _ = writeln!(
            text,
            "| a change is indexed or packed within four minutes | {} | {} changes indexed or packed: half of them within {:.0} s, the last after {:.0} s; of {} still \
         waiting at the end, the oldest for {:.0} s |",
            mark(waits.longest() <= MAX_INDEXING_SECONDS),
            count_of(waits.indexed.len() as u64),
            quantile(&waits.indexed, 0.5),
            quantile(&waits.indexed, 1.0),
            count_of(waits.waiting.len() as u64),
            quantile(&waits.waiting, 1.0),
        );
    }
    for call in measured.scenario.load.searches() {
        let calls = tally.0.get(&call).cloned().unwrap_or_default();
        let _ = writeln!(
            text,
            "| {}: always answered | {} | {} of {} answered: {:.1} requests and {:.0} read units each, {:.2} s, the longest {:.2} s |",
            call.name(),
            mark(calls.made > 0 && calls.answered == calls.made),
            calls.answered,
            calls.made,
            mean(tally, call, |calls| f64::from(calls.usage.requests)),
            mean(tally, call, |calls| calls.usage.read_units),
            mean(tally, call, |calls| calls.time.as_secs_f64()),
            calls.longest.as_secs_f64(),
        );
    }
    let throttled: u64 = measured.partitions.values().map(|kind| kind.throttled).sum();
    let most = |of: fn(&PartitionKind) -> f64| measured.partitions.values().map(of).fold(0.0, f64::max);
    let _ = writeln!(
        text,
        "| no request to the table is throttled | {} | {} throttled; the maximum of a partition in one second: {} write units, {} read units \
         (limits: {} and {}) |",
        mark(throttled == 0),
        count_of(throttled),
        format_number(most(PartitionKind::max_writes)),
        format_number(most(PartitionKind::max_reads)),
        format_count(WRITE_LIMIT),
        format_count(READ_LIMIT),
    );
    if let Some((kind, bytes)) = day_size(measured) {
        let _ = writeln!(
            text,
            "| no partition of a day is full before midnight | {} | at this rate, the largest one, of `{kind}`, reaches {:.2} GB of {:.0} |",
            mark(bytes < MAX_COLLECTION_BYTES),
            bytes / 1e9,
            MAX_COLLECTION_BYTES / 1e9,
        );
    }
    let (earlier, later) = measured.queue.split_at(measured.queue.len() / 2);
    let in_the_mean = |of: &[f64]| {
        let (sum, count) = of.iter().fold((0.0, 0.0), |(sum, count), records| (sum + records, count + 1.0));
        (sum / f64::max(count, 1.0)).round()
    };
    let _ = writeln!(
        text,
        "\nA record of the stream was processed after {:.0} s (median), and after {:.0} s at most. At most {} records were waiting; the mean was {} in \
         the first half and {} in the second.",
        quantile(&waits.delivered, 0.5),
        quantile(&waits.delivered, 1.0),
        format_count(quantile(&measured.queue, 1.0)),
        format_count(in_the_mean(earlier)),
        format_count(in_the_mean(later)),
    );
    text
}

/// Returns the mark of an objective.
fn mark(is_met: bool) -> &'static str {
    if is_met { "yes" } else { "**no**" }
}

/// Returns the objectives of the stack around the functions: the gateway, the table and the indexers.
fn stack_objectives(measured: &ScenarioResult, accepted: f64, refused: f64) -> String {
    let mut text = String::new();
    let sent = accepted / measured.scenario.sample.as_secs_f64();
    let rate = measured.scenario.requests.rate;
    let _ = writeln!(
        text,
        "| the gateway accepts the load for as long as it lasts | {} | {} calls per second (`RequestRate`: {}) |",
        mark(sent <= rate && refused == 0.0),
        format_number(sent),
        format_count(rate),
    );
    let (writes, reads) = table_units(measured);
    let _ = writeln!(
        text,
        "| a new table handles it before it has grown | {} | {} write units and {} read units per second (limits: {} and {}) |",
        mark(writes <= NEW_TABLE_WRITES && reads <= NEW_TABLE_READS),
        format_number(writes),
        format_number(reads),
        format_count(NEW_TABLE_WRITES),
        format_count(NEW_TABLE_READS),
    );
    let busiest = busiest_indexer(measured, measured.scenario.indexer_memory);
    let _ = writeln!(
        text,
        "| each sandbox of the indexer is busy for less than 80% of the time | {} | the busiest for {:.0}% |",
        mark(busiest < 0.8),
        busiest * 100.0,
    );
    text
}
