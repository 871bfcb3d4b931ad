//! The page with the results.

mod figures;
mod objectives;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use domain::Function;

use crate::Result;
use crate::call_counts::{CallKind, CallStats};
use crate::chart::Chart;
use crate::compute::{CpuRule, units};
use crate::gateway::RequestLimit;
use crate::load::Load;
use crate::network::{BATCH_LATENCY, REQUEST_LATENCY};
use crate::scenario::ScenarioResult;
use crate::stream_delivery::{BATCH_WINDOW, SHARD_COUNT};
use figures::{
    READ_LIMIT, WRITE_LIMIT, busiest_indexer, busy_part, format_count, format_number, has_runs, mean, of_clients,
    slowdown, table_units,
};
use objectives::objectives;

/// Prices in dollars per million, on demand in us-east-1 at the time of writing: write units, read
/// units, calls through API Gateway and Lambda.
const WRITE_PRICE: f64 = 0.625;
const READ_PRICE: f64 = 0.125;
const CALL_PRICE: f64 = 1.28;
/// Sizes of memory in MB for which the page shows how busy the indexer would be.
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

/// Returns the processor time that this machine spent on calls, next to the time that the rule
/// predicts, so that the rule can be checked. The comparison is only meaningful for an optimized
/// build.
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

/// Returns a sentence about the calls that were made before the measurement began.
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

/// Returns a table of the indexer's estimated load at other memory sizes.
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

/// Returns the calls and costs of one hour, for each kind of call and in total: millions of calls,
/// write units and read units, and the dollars for the table and for the gateway with Lambda.
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

#[expect(clippy::cast_precision_loss, reason = "bytes of a partition")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
