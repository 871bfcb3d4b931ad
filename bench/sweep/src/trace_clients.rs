//! Processes that export traces, and users who search for them.

use std::rc::Rc;
use std::time::Duration;

use axum::body::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use rand::RngExt;
use serde_json::json;

use crate::Result;
use crate::call_counts::CallKind;
use crate::lambda_sandboxes::ClientCall;
use crate::load::SEARCH_INTERVAL;
use crate::simulated_stack::SimulatedStack;

/// Interval at which a process exports the traces that it has gathered.
const EXPORT_INTERVAL: Duration = Duration::from_secs(1);
/// On average, one in this many traces has the tag that is searched for.
const TAG_INTERVAL: u32 = 20;
/// Words of the generated sentences.
const WORDS: [&str; 16] = [
    "flower", "carpel", "stamen", "petal", "leaf", "stem", "root", "seed", "pollen", "nectar", "garden", "season",
    "water", "light", "soil", "colour",
];

/// Starts the processes that export traces.
pub(crate) fn begin(world: &Rc<SimulatedStack>, per_second: u32, exporters: u32, spans: usize) -> Result<()> {
    for number in 0..exporters {
        // If the traces cannot be divided evenly, some processes export one trace more than others.
        let traces = per_second / exporters + u32::from(number < per_second % exporters);
        world.spawn(async move |world| export(world, traces, spans).await)?;
    }
    Ok(())
}

/// Runs a process that exports, once per interval, the traces that began during the last second.
/// While a request is in flight, the process continues to gather traces.
async fn export(world: &Rc<SimulatedStack>, traces: u32, spans: usize) -> Result<()> {
    let mut due = world.now() + EXPORT_INTERVAL.mul_f64(rand::rng().random());
    loop {
        world.sleep_until(due).await;
        due += EXPORT_INTERVAL;
        world.spawn(async move |world| {
            let asked = ClientCall {
                path: "/v1/traces".to_owned(),
                content_type: "application/x-protobuf",
                experiment: Some(world.experiment.clone()),
                body: Bytes::from(gathered(traces, spans)),
            };
            world.send(CallKind::Export, &asked).await.map(drop)
        })?;
    }
}

/// Returns an export of traces that began in the last second, with this number of spans each. Five
/// spans are about 4 KB.
fn gathered(traces: u32, spans: usize) -> Vec<u8> {
    let now = u64::try_from(runtime::clock::now_ms()).unwrap_or_default() * 1_000_000;
    let all = (0..traces).flat_map(|_| {
        let mut random = rand::rng();
        let trace: [u8; 16] = random.random();
        let start = now - random.random_range(0..1_000_000_000);
        let is_tagged = random.random_range(0..TAG_INTERVAL) == 0;
        (0..spans as u64).map(move |number| span(trace, number, start, is_tagged && number == 0))
    });
    let scope = ScopeSpans { spans: all.collect(), ..ScopeSpans::default() };
    let resource = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![resource] }.encode_to_vec()
}

fn span(trace: [u8; 16], number: u64, start: u64, is_tagged: bool) -> Span {
    let text = |key: &str, value: String| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(any_value::Value::StringValue(value)) }),
        ..KeyValue::default()
    };
    let id = |number: u64| (number + 1).to_be_bytes().to_vec();
    let kind = ["AGENT", "RETRIEVER", "CHAT_MODEL", "TOOL"][usize::try_from(number).unwrap_or_default() % 4];
    let mut attributes = vec![
        text("mlflow.spanType", json!(kind).to_string()),
        text("mlflow.spanInputs", json!({ "question": sentence(50) }).to_string()),
        text("mlflow.spanOutputs", json!({ "answer": sentence(50) }).to_string()),
    ];
    if kind == "CHAT_MODEL" {
        let tokens = json!({ "input_tokens": 812, "output_tokens": 96, "total_tokens": 908 });
        attributes.push(text("mlflow.chat.tokenUsage", tokens.to_string()));
    }
    if is_tagged {
        attributes.push(text("mlflow.traceTag.team", json!("search").to_string()));
    }
    Span {
        trace_id: trace.to_vec(),
        span_id: id(number),
        parent_span_id: if number == 0 { Vec::new() } else { id(0) },
        name: kind.to_lowercase(),
        start_time_unix_nano: start + number * 1_000_000,
        end_time_unix_nano: start + 300_000_000,
        attributes,
        status: Some(Status { code: 1, ..Status::default() }),
        ..Span::default()
    }
}

fn sentence(words: usize) -> String {
    let mut random = rand::rng();
    (0..words).map(|_| WORDS[random.random_range(0..WORDS.len())]).collect::<Vec<_>>().join(" ")
}

/// Starts the searches, ten per minute of each kind: for the latest 100 traces, and for the latest
/// 100 traces with a tag.
pub(crate) fn begin_searches(world: &Rc<SimulatedStack>) -> Result<()> {
    for (call, filter) in [(CallKind::LatestTraces, ""), (CallKind::TracesByTag, "tag.team = 'search'")] {
        world.spawn(async move |world| {
            for number in 1.. {
                world.sleep_until(SEARCH_INTERVAL * number).await;
                world.spawn(async move |world| send_search(world, call, filter).await)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

async fn send_search(world: &SimulatedStack, call: CallKind, filter: &str) -> Result<()> {
    let place = json!({ "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": world.experiment } });
    let search = json!({ "locations": [place], "max_results": 100, "filter": filter });
    let asked = ClientCall { path: "/api/3.0/mlflow/traces/search".to_owned(), ..ClientCall::json("", &search) };
    let Some(page) = world.send(call, &asked).await? else { return Ok(()) };
    let found = page["traces"].as_array().map_or(0, Vec::len);
    let times = page["traces"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|trace| Some(trace["request_time"].as_str()?.trim_end_matches('Z')));
    let is_ordered = times.collect::<Vec<_>>().is_sorted_by(|one, other| one >= other);
    // In the first seconds, there may be no traces yet, so the result can be empty.
    let is_empty = found == 0 && world.now() > Duration::from_secs(30);
    if is_empty || !is_ordered {
        return Err(format!("{}: a page of {found} traces, in order: {is_ordered}", call.name()).into());
    }
    Ok(())
}
