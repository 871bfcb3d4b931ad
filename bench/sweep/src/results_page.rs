//! The page with the results.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use domain::Function;
use embedded_engine::limits::Throughput;

use crate::Result;
use crate::call_counts::{CallCounts, CallKind, CallStats};
use crate::chart::Chart;
use crate::compute::{CpuRule, units};
use crate::gateway::RequestLimit;
use crate::indexing_lag::quantile;
use crate::load::Load;
use crate::network::{BATCH_LATENCY, REQUEST_LATENCY};
use crate::partitions::PartitionKind;
use crate::scenario::ScenarioResult;
use crate::stream_delivery::{BATCH_WINDOW, IndexerWork, SHARD_COUNT};

/// Prices in dollars per million, on demand in us-east-1 at the time of writing: write units, read
/// units, calls through API Gateway and Lambda.
const WRITE_PRICE: f64 = 0.625;
const READ_PRICE: f64 = 0.125;
const CALL_PRICE: f64 = 1.28;
/// Limits of the units per second of a partition.
const WRITE_LIMIT: f64 = Throughput::PARTITION_MAX.writes;
const READ_LIMIT: f64 = Throughput::PARTITION_MAX.reads;
/// Maximum size in bytes of all items of one partition key, in a table with local indexes.
const MAX_COLLECTION_BYTES: f64 = 10e9;
/// Units per second that a new on-demand table handles before it has grown.
const NEW_TABLE_WRITES: f64 = 4_000.0;
const NEW_TABLE_READS: f64 = 12_000.0;
/// Sizes of memory that the indexer is compared with, in MB.
const MEMORY_SIZES: [u32; 4] = [512, 1_024, 1_769, 3_008];
/// Maximum number of lines in a chart.
const MAX_LINES: usize = 6;

/// Writes `scale.md` into a directory, and its charts into `images` next to the directory.
///
/// # Errors
/// A file cannot be written.
pub fn write(directory: &Path, measured: &[ScenarioResult]) -> Result<()> {
    let images = directory.join("../images");
    fs::create_dir_all(directory)?;
    fs::create_dir_all(&images)?;
    let mut page = introduction(measured)?;
    for one in measured {
        for (name, chart) in charts(one) {
            fs::write(images.join(format!("scale-{}-{name}.svg", one.scenario.name)), chart.svg())?;
        }
        page.push_str(&section(one));
    }
    Ok(fs::write(directory.join("scale.md"), page)?)
}

/// Returns the introduction, and a table that compares the scenarios.
fn introduction(measured: &[ScenarioResult]) -> Result<String> {
    let rule = CpuRule::read()?;
    let requests = measured.first().map_or(RequestLimit::of_template()?, |one| one.scenario.requests);
    let indexer_memory = measured.first().map_or(fts_indexer::FUNCTION.memory, |one| one.scenario.indexer_memory);
    let memory = Function::DEFAULT_MEMORY_MB;
    let mut text = format!(
        include_str!("head.md"),
        writes = format_count(WRITE_LIMIT),
        reads = format_count(READ_LIMIT),
        request = REQUEST_LATENCY.as_millis(),
        batch = BATCH_LATENCY.as_millis(),
        shards = SHARD_COUNT,
        window = BATCH_WINDOW.as_secs(),
        call_cpu = format_number(rule.call_ms),
        unit_cpu = format_number(rule.unit_ms),
        indexed_cpu = format_number(rule.indexed_unit_ms),
        packed_cpu = format_number(rule.packed_unit_ms),
        core = format_count(rule.whole_core_mb),
        memory = memory,
        slower = format_number(slowdown(rule, memory)),
        indexer_memory = format_count(f64::from(indexer_memory)),
        indexer_slower = format_number(slowdown(rule, indexer_memory)),
        rate = format_count(requests.rate),
        burst = format_count(requests.burst),
    );
    text.push_str(
        "\n| | calls a second | answered 429 | last change indexed after | latest 100 | top 100 by a metric, latest 100 by a tag | busiest partition | \
         whole table | busiest indexer | objectives not met | an hour |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|\n",
    );
    for one in measured {
        let calls = of_clients(&one.tally, |calls| calls.made);
        let units = |call| mean(&one.tally, call, |calls| calls.usage.read_units);
        let busiest = one.partitions.values().map(|kind| kind.busiest_writes).fold(0.0, f64::max);
        let [.., table, gateway] = hourly_costs(one).1;
        let [latest, other] = one.scenario.load.searches();
        let _ = writeln!(
            text,
            "| {} | {} | {:.1}% | {} | {:.0} read units | {:.0} read units | {} write units a second | {} write units a second | {:.0}% | {} | ${:.2} |",
            title(one.scenario.load),
            format_number(calls / one.scenario.sample.as_secs_f64()),
            of_clients(&one.tally, |calls| calls.throttled) / calls.max(1.0) * 100.0,
            if has_runs(one) { format!("{:.0} s", one.waits.longest()) } else { String::new() },
            units(latest),
            units(other),
            format_number(busiest),
            format_number(table_units(one).0),
            busiest_indexer(one, one.scenario.indexer_memory) * 100.0,
            missed(one),
            table + gateway,
        );
    }
    Ok(text)
}

/// Returns the names of the objectives that are not met, or `none`.
fn missed(measured: &ScenarioResult) -> String {
    let table = objectives(measured);
    let rows = table.lines().filter(|row| row.contains("| **no** |"));
    let names: Vec<_> = rows.filter_map(|row| row.trim_start_matches("| ").split(" | ").next()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join("; ") }
}

/// Returns how many times longer a function with this memory computes than on a whole core.
fn slowdown(rule: CpuRule, memory_mb: u32) -> f64 {
    rule.slowed(Duration::from_secs(1), memory_mb).as_secs_f64()
}

/// Returns the write units and read units per second of the whole table.
fn table_units(measured: &ScenarioResult) -> (f64, f64) {
    let seconds = measured.scenario.sample.as_secs_f64();
    let tally = &measured.tally;
    (tally.sum(|calls| calls.usage.write_units) / seconds, tally.sum(|calls| calls.usage.read_units) / seconds)
}

/// Returns the part of the time that an indexer with this memory is busy.
fn busy_part(measured: &ScenarioResult, work: IndexerWork, memory_mb: u32) -> f64 {
    let busy = work.waits + measured.rule.slowed(work.computed, memory_mb);
    busy.as_secs_f64() / measured.scenario.sample.as_secs_f64()
}

/// Returns the part of the time that the busiest indexer is busy, if it has this memory.
fn busiest_indexer(measured: &ScenarioResult, memory_mb: u32) -> f64 {
    measured.indexers.iter().map(|work| busy_part(measured, *work, memory_mb)).fold(0.0, f64::max)
}

/// Returns the processor time that this machine spent on calls, next to that of the rule, which can be
/// checked against it. Only an optimized build is meaningful.
#[must_use]
pub fn processor_time(measured: &ScenarioResult) -> String {
    let mut text = String::new();
    for (call, calls) in measured.tally.0.iter().filter(|(_, calls)| calls.computed > Duration::ZERO) {
        let made = f64::from(calls.made.max(1));
        let each = |time: Duration| time.as_secs_f64() * 1_000.0 / made;
        let _ = writeln!(
            text,
            "{}: {}: {:.3} ms of this machine's processor, {:.3} ms by the rule, {:.1} units, {:.1} requests",
            measured.scenario.name,
            call.name(),
            each(calls.computed),
            each(calls.by_rule),
            units(&calls.usage) / made,
            f64::from(calls.usage.requests) / made,
        );
    }
    text
}

fn title(load: Load) -> String {
    match load {
        Load::Long { runs, metrics, every, .. } if every.as_secs() == 1 => {
            format!("{} runs that log {metrics} metrics a second each", format_count(f64::from(runs)))
        }
        Load::Long { runs, metrics, every, .. } => {
            format!(
                "{} runs that log {metrics} metrics every {} s each",
                format_count(f64::from(runs)),
                every.as_secs_f64()
            )
        }
        Load::Short { per_second, .. } => format!("{} short runs a second", format_count(f64::from(per_second))),
        Load::Traces { per_second, .. } => format!("{} traces a second", format_count(f64::from(per_second))),
    }
}

/// Whether the jobs log runs, whose changes are indexed.
fn has_runs(measured: &ScenarioResult) -> bool {
    !matches!(measured.scenario.load, Load::Traces { .. })
}

fn section(measured: &ScenarioResult) -> String {
    let mut text = format!("\n## {}\n\n", title(measured.scenario.load));
    let scenario = &measured.scenario;
    let (sample, warm_up) = (scenario.sample.as_secs(), scenario.warm_up.as_secs());
    let load = match scenario.load {
        Load::Long { runs, metrics, every, ramp } => format!(
            "{} runs begin within {} seconds, and log {metrics} metrics every {} s each, in one call.",
            format_count(f64::from(runs)),
            ramp.as_secs(),
            every.as_secs_f64()
        ),
        Load::Short { per_second, batch: [metrics, params, tags] } => format!(
            "{per_second} runs a second are created with 4 tags, log one batch of {metrics} metrics, {params} params and {tags} tags, and end."
        ),
        Load::Traces { exporters, spans, partitions, .. } => format!(
            "{} processes export the traces of the last second once per second. Each trace has {spans} spans, about {} KB. The previous day had {partitions} \
             partitions, and this day starts with the same number. Traces are packed in waves, every four to five minutes, and the measured time need \
             not contain a whole number of waves. The hourly figures here therefore differ by a few percent from the metered [cost of a trace with its \
             packing](../reference/capacity-traces.md).",
            format_count(f64::from(exporters)),
            spans * 4 / 5
        ),
    };
    let _ = writeln!(
        text,
        "{load} Measured for {sample} seconds, after a warm-up of {warm_up} seconds, with {} sandboxes of the {} function.\n",
        measured.sandboxes,
        scenario.load.function()
    );
    text.push_str(&objectives(measured));
    text.push_str(&calls_before_measurement(measured));
    text.push_str(&partitions(measured));
    text.push_str(&calls(measured));
    text.push_str(&indexer(measured));
    text.push_str(&costs(measured));
    text
}

/// Returns the table of objectives, and whether they are met.
fn objectives(measured: &ScenarioResult) -> String {
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
            "| a change is indexed within two minutes | {} | {} changes indexed: half of them within {:.0} s, the last after {:.0} s; of {} still \
         waiting at the end, the oldest for {:.0} s |",
            mark(waits.longest() <= 120.0),
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

/// Returns a sentence about the calls before the measurement.
fn calls_before_measurement(measured: &ScenarioResult) -> String {
    let [made, throttled, given_up] =
        [|calls: &CallStats| calls.made, |calls: &CallStats| calls.throttled, |calls: &CallStats| calls.given_up]
            .map(|of| of_clients(&measured.before, of));
    format!(
        "During the warm-up of {} seconds, {} of {} calls were answered 429, and {} given up.\n",
        measured.scenario.warm_up.as_secs(),
        format_count(throttled),
        format_count(made),
        format_count(given_up),
    )
}

/// For traces, whose partitions belong to a day: returns the kind with the largest partition, and
/// the size in bytes that it reaches after a day of this load.
fn day_size(measured: &ScenarioResult) -> Option<(&str, f64)> {
    let Load::Traces { .. } = measured.scenario.load else { return None };
    let seconds = (measured.scenario.warm_up + measured.scenario.sample).as_secs_f64();
    let of_day = measured.partitions.iter().filter(|(kind, _)| ["TR#", "TS#"].contains(&kind.as_str()));
    let largest = of_day.filter_map(|(kind, taken)| Some((kind.as_str(), taken.largest_bytes?)));
    let (kind, bytes) = largest.max_by_key(|(_, bytes)| *bytes)?;
    #[expect(clippy::cast_precision_loss, reason = "bytes of a partition")]
    Some((kind, bytes as f64 * 86_400.0 / seconds))
}

fn partitions(measured: &ScenarioResult) -> String {
    let name = measured.scenario.name;
    let mut text = format!(
        "\n![Write units of the busiest partition of each kind, second by second](../images/scale-{name}-writes.svg)\n\n\
         Units per second. The busiest partition is the one of its kind with the highest consumption. Limits of a partition: {} and {}.\n\n\
         | partitions | in use | write units: all | busiest | maximum | read units: all | busiest | maximum | throttled requests | MB in the largest |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        format_count(WRITE_LIMIT),
        format_count(READ_LIMIT),
    );
    for (kind, taken) in &measured.partitions {
        let _ = writeln!(
            text,
            "| `{kind}` | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            taken.partitions,
            format_number(taken.write_units),
            format_number(taken.busiest_writes),
            format_number(taken.max_writes()),
            format_number(taken.read_units),
            format_number(taken.busiest_reads),
            format_number(taken.max_reads()),
            taken.throttled,
            taken.largest_bytes.map(|bytes| format_number(megabytes(bytes))).unwrap_or_default(),
        );
    }
    let seconds = measured.scenario.sample.as_secs_f64();
    let global = measured.tally.sum(|calls| calls.usage.global_index_units) / seconds;
    if global > 0.0 {
        let _ = writeln!(text, "| global indexes | | {} | | | | | | | |", format_number(global));
    }
    text
}

fn calls(measured: &ScenarioResult) -> String {
    let name = measured.scenario.name;
    let seconds = measured.scenario.sample.as_secs_f64();
    let mut text = format!(
        "\n![Records of the stream that wait for the indexer](../images/scale-{name}-queue.svg)\n\n\
         | call | per second | answered 429 | other errors | requests | write units | read units | seconds: mean | maximum |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    for (call, calls) in &measured.tally.0 {
        let mean = |units: f64| format_number(units / f64::from(calls.made.max(1)));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {:.3} | {:.2} |",
            call.name(),
            format_number(f64::from(calls.made) / seconds),
            calls.throttled,
            calls.failed,
            mean(f64::from(calls.usage.requests)),
            mean(calls.usage.write_units),
            mean(calls.usage.read_units),
            calls.time.as_secs_f64() / f64::from(calls.made.max(1)),
            calls.longest.as_secs_f64(),
        );
    }
    text.push_str("\nRequests, units and seconds are per call. Errors of the indexer are partly retried batches.\n");
    text
}

/// Returns the table that compares sizes of memory for the indexer.
fn indexer(measured: &ScenarioResult) -> String {
    let mut text = "\nThe indexer with other memory, computed from the time that it waits and computes here. Each shard has a sandbox, and so have the ticks.\n\n\
         | memory of the indexer | busiest sandbox is busy | GB-seconds an hour, all sandboxes |\n|---|---:|---:|\n"
        .to_owned();
    for memory in MEMORY_SIZES {
        let busy: f64 = measured.indexers.iter().map(|work| busy_part(measured, *work, memory)).sum();
        let _ = writeln!(
            text,
            "| {} MB{} | {:.0}% | {} |",
            format_count(f64::from(memory)),
            if memory == measured.scenario.indexer_memory { " (in the model)" } else { "" },
            busiest_indexer(measured, memory) * 100.0,
            format_number(busy * 3_600.0 * f64::from(memory) / 1_024.0),
        );
    }
    text
}

fn costs(measured: &ScenarioResult) -> String {
    let mut text = format!(
        "\nAn hour, on demand in us-east-1: ${WRITE_PRICE} for a million write units, ${READ_PRICE} for read units, ${CALL_PRICE} for calls by API Gateway and\n\
         Lambda; logs and Lambda's time of the indexer are left out.\n\n\
         | call | million calls | million write units | million read units | dollars: table | gateway and Lambda |\n\
         |---|---:|---:|---:|---:|---:|\n"
    );
    let (rows, sum) = hourly_costs(measured);
    let [made, .., table, gateway] = sum;
    for (name, row) in rows.into_iter().chain([("all", sum)]) {
        let _ = writeln!(text, "| {name} | {} |", row.map(|value| format!("{value:.3}")).join(" | "));
    }
    let _ = match measured.scenario.load {
        Load::Traces { per_second, .. } => {
            let traces = f64::from(per_second) * 0.0864;
            let (table, gateway) = (table * 24.0, gateway * 24.0);
            writeln!(
                text,
                "\nA day: {} million traces for ${} of the table, ${} a million, and {} million calls for ${}.",
                format_number(traces),
                format_number(table),
                format_number(table / traces),
                format_number(made * 24.0),
                format_number(gateway),
            )
        }
        _ => writeln!(
            text,
            "\nA day: ${} of the table, ${} of calls.",
            format_number(table * 24.0),
            format_number(gateway * 24.0)
        ),
    };
    text
}

/// Returns figures for an hour, by call and in total: millions of calls, write units and read
/// units, and dollars for the table, and for the gateway and Lambda.
fn hourly_costs(measured: &ScenarioResult) -> (Vec<(&'static str, [f64; 5])>, [f64; 5]) {
    let hours = 3_600.0 / measured.scenario.sample.as_secs_f64();
    let millions = |value: f64| value * hours / 1e6;
    let row = |(call, calls): (&CallKind, &CallStats)| {
        let (writes, reads) = (millions(calls.usage.write_units), millions(calls.usage.read_units));
        let made = if call.is_by_http() { millions(f64::from(calls.made)) } else { 0.0 };
        (call.name(), [made, writes, reads, writes * WRITE_PRICE + reads * READ_PRICE, made * CALL_PRICE])
    };
    let rows: Vec<_> = measured.tally.0.iter().map(row).collect();
    let sum = std::array::from_fn(|column| rows.iter().map(|(_, row)| row[column]).sum());
    (rows, sum)
}

/// Returns the sum of a counter over the calls of clients.
fn of_clients(tally: &CallCounts, of: fn(&CallStats) -> u32) -> f64 {
    tally.0.iter().filter(|(call, _)| call.is_by_http()).map(|(_, calls)| f64::from(of(calls))).sum()
}

/// Returns the average of a value over the calls of a kind.
fn mean(tally: &CallCounts, call: CallKind, of: impl Fn(&CallStats) -> f64) -> f64 {
    tally.0.get(&call).map_or(0.0, |calls| of(calls) / f64::from(calls.made.max(1)))
}

/// Returns the charts of a scenario, by name.
fn charts(measured: &ScenarioResult) -> Vec<(&'static str, Chart<'static>)> {
    let mut kinds: Vec<_> = measured.partitions.iter().filter(|(_, kind)| kind.max_writes() > 0.0).collect();
    kinds.sort_by(|(_, a), (_, b)| b.max_writes().total_cmp(&a.max_writes()));
    kinds.truncate(MAX_LINES);
    let lines = kinds.into_iter().map(|(name, kind)| (name.clone(), kind.writes_by_second.clone())).collect();
    let limit = Some((WRITE_LIMIT, "what a partition takes"));
    let writes = Chart { title: "Write units a second of the busiest partition of each kind", lines, limit };
    let lines = vec![("records".to_owned(), measured.queue.clone())];
    let queue = Chart { title: "Records of the stream that wait for the indexer", lines, limit: None };
    vec![("writes", writes), ("queue", queue)]
}

/// Formats a number with its significant digits.
fn format_number(value: f64) -> String {
    if value >= 100.0 {
        format_count(value)
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a partition")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a number of what was counted")]
fn count_of(value: u64) -> String {
    format_count(value as f64)
}

/// Formats a whole number in groups of three digits.
fn format_count(value: f64) -> String {
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
