//! Compares with recorded results of stock MLflow (`tests/compare/record_spans.py`).
//!
//! The environment variable `SPANS_RECORD` names a recording to use instead of the one in the
//! repository.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use spans::{
    ExportFormat, Span, TraceExport, TraceSummary, artifact_json, facts, join, json, pack, read, summarize,
    trace_id_text, unpack,
};

/// Cases that are rejected with a different error than in MLflow. The two bytes `{"` are not the
/// beginning of a deflate stream according to zlib, but are according to this crate's library.
/// Times that are not valid dates cause a failure of MLflow's database, which exporters would
/// retry.
const DIFFERENT: [&str; 3] = ["no deflate", "a start too large", "an end too large"];

/// Number of characters of a tag's value in a response. The stored value may be twice as long.
const ANSWERED_TAG: usize = 4096;

fn cases() -> Vec<Value> {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/stock.jsonl");
    let file = std::env::var("SPANS_RECORD").unwrap_or_else(|_| kept.to_owned());
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn bytes(body: &Value) -> Vec<u8> {
    match body["base64"].as_str() {
        Some(encoded) => STANDARD.decode(encoded).unwrap(),
        None => body["text"].as_str().unwrap().as_bytes().to_vec(),
    }
}

/// Reads all exports of a case, or returns the first error.
fn sent(case: &Value) -> Result<Vec<TraceExport>, (u16, Value)> {
    let mut exports = Vec::new();
    for body in case["bodies"].as_array().unwrap() {
        let format = ExportFormat::of(case["content_type"].as_str());
        match format.and_then(|format| read(format, case["content_encoding"].as_str(), &bytes(body))) {
            Ok(more) => exports.extend(more),
            Err(refusal) => return Err((refusal.status, serde_json::from_str(&refusal.body()).unwrap())),
        }
    }
    for export in &exports {
        if let Err(error) = summarize(&export.spans) {
            return Err((error.code.http_status(), Value::from(error.message)));
        }
    }
    Ok(exports)
}

#[test]
fn answers_are_those_of_mlflow() {
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 60);
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        if DIFFERENT.contains(&name) {
            continue;
        }
        for difference in compared(case) {
            wrong.push(format!("{name}: {difference}"));
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

fn compared(case: &Value) -> Vec<String> {
    let status = case["status"].as_u64().unwrap();
    let exports = match sent(case) {
        Ok(_) if status != 200 => return vec![format!("accepted, and not {status} {}", case["answer"])],
        Ok(exports) => exports,
        Err((ours, answer)) => {
            let expected = case["answer"].get("message").unwrap_or(&case["answer"]);
            let same = u64::from(ours) == status && answer == *expected;
            return if same { Vec::new() } else { vec![format!("{ours} {answer}, and not {status} {expected}")] };
        }
    };
    let mut wrong = Vec::new();
    for trace in case["traces"].as_array().unwrap() {
        let parts: Vec<&TraceExport> =
            exports.iter().filter(|export| trace_id_text(&export.trace_id) == trace["trace_id"]).collect();
        let spans = join(parts.iter().map(|part| {
            let packed = pack(&part.spans, 1000);
            unpack(&packed.parts.concat()).unwrap()
        }));
        wrong.extend(compared_spans(&spans, trace));
        wrong.extend(compared_info(&parts, &spans, &trace["info"]));
    }
    wrong
}

fn compared_spans(spans: &[Span], trace: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expect = |what: &str, ours: String, stock: String| {
        if ours != stock {
            wrong.push(format!("{what}\n  ours  {ours}\n  stock {stock}"));
        }
    };
    let ours: Vec<_> = spans.iter().map(|span| serde_json::to_string(&json(span)).unwrap()).collect();
    let stock = trace["spans"].as_array().cloned().unwrap_or_default();
    expect("spans", ours.len().to_string(), stock.len().to_string());
    for (ours, stock) in ours.iter().zip(&stock) {
        expect("answer", ours.clone(), stock.to_string());
    }
    // The parsed values are compared, because MLflow has not composed the recorded file of the
    // stored texts, and formats it differently.
    if let Some(file) = trace.get("file").and_then(|file| serde_json::from_str::<Value>(file.as_str()?).ok()) {
        let texts: Vec<_> = spans.iter().map(artifact_json).collect();
        let ours: Value = serde_json::from_str(&format!("{{\"spans\":[{}]}}", texts.join(","))).unwrap();
        expect("file", ours.to_string(), file.to_string());
    }
    let mut by_id: Vec<&Span> = spans.iter().collect();
    by_id.sort_by_key(|span| span.span_id.clone());
    let rows = trace["rows"].as_array().unwrap();
    for ((span, row), stored) in by_id.into_iter().zip(rows).zip(trace["stored"].as_array().unwrap()) {
        expect("stored", artifact_json(span), stored.as_str().unwrap().to_owned());
        let facts = facts(span);
        let ours = serde_json::json!({
            "span_id": facts.span_id, "parent_span_id": facts.parent_id, "name": facts.name, "type": facts.span_type,
            "status": facts.status, "start_time_unix_nano": facts.start_ns,
            "end_time_unix_nano": facts.end_ns.unwrap_or_default(), "model_name": facts.model,
            "model_provider": facts.provider, "input_cost": facts.cost[0], "output_cost": facts.cost[1],
            "total_cost": facts.cost[2],
        });
        let mut row = row.clone();
        // A type that is encoded as JSON twice is decoded twice in this server, also for filters.
        // MLflow's filters do not find it.
        if let Some(Value::String(unwrapped)) = row["type"].as_str().and_then(|text| serde_json::from_str(text).ok()) {
            row["type"] = unwrapped.into();
        }
        // MLflow shows a type that was derived from other SDKs' attributes, but its filters do not
        // find it.
        if row["type"].is_null() || row["type"] == "UNKNOWN" {
            let stored = mlflow_api::Json::parse(stored.as_str().unwrap()).unwrap();
            let attributes = stored.object().and_then(|span| span.get("attributes")?.object());
            let shown = attributes.and_then(|attributes| attributes.get("mlflow.spanType"));
            if let Some(mlflow_api::Json::Text(shown)) = shown
                && let Ok(Value::String(shown)) = serde_json::from_str(shown)
            {
                row["type"] = shown.into();
            }
        }
        expect("row", ours.to_string(), row.to_string());
    }
    wrong
}

/// Formats milliseconds as protobuf's JSON formats a duration.
fn seconds(milliseconds: i64) -> String {
    let sign = if milliseconds < 0 { "-" } else { "" };
    match (milliseconds.abs() / 1000, milliseconds.abs() % 1000) {
        (seconds, 0) => format!("{sign}{seconds}s"),
        (seconds, rest) => format!("{sign}{seconds}.{rest:03}s"),
    }
}

/// Returns the seconds in a time such as `2023-11-14T22:13:20.001Z`.
fn seconds_of_minute(time: &str) -> String {
    let seconds = time.trim_end_matches('Z').rsplit(':').next().unwrap();
    format!("{}s", seconds.strip_prefix('0').unwrap_or(seconds))
}

/// Compares the parts of the trace's info that are derived from its spans.
fn compared_info(parts: &[&TraceExport], spans: &[Span], info: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expect = |what: &str, ours: Value, stock: &Value| {
        if ours != *stock {
            wrong.push(format!("{what}: ours {ours}, stock {stock}"));
        }
    };
    let first = |pick: &dyn Fn(&TraceSummary) -> Option<String>| {
        parts.iter().find_map(|part| pick(&summarize(&part.spans).unwrap())).map_or(Value::Null, Value::from)
    };
    expect("request preview", first(&|part| part.root.clone()?.request_preview), &info["request_preview"]);
    expect("response preview", first(&|part| part.root.clone()?.response_preview), &info["response_preview"]);
    let state = first(&|part| Some(part.root.clone()?.state.as_str().to_owned()));
    let state = if state.is_null() { "IN_PROGRESS".into() } else { state };
    expect("state", state, &info["state"]);
    let summaries: Vec<TraceSummary> = parts.iter().map(|part| summarize(&part.spans).unwrap()).collect();
    let start = summaries.iter().map(|summary| summary.start_ms).min().unwrap();
    let end = summaries.iter().filter_map(|summary| summary.end_ms).max();
    // MLflow stores 1970 as the end time of a trace that has not ended.
    let end = end.unwrap_or_default();
    expect("duration", seconds(end - start).into(), &info["execution_duration"]);
    let time = info["request_time"].as_str().unwrap();
    expect("start", seconds(start % 60_000).into(), &seconds_of_minute(time).into());
    let metadata = &info["trace_metadata"];
    let optional = |text: Option<String>| text.map_or(Value::Null, Value::from);
    expect("session", first(&|part| part.session.clone()), &metadata["mlflow.trace.session"]);
    expect("user", first(&|part| part.user.clone()), &metadata["mlflow.trace.user"]);
    // An export without tokens does not change the usage, even if its spans are between spans with
    // tokens in the tree.
    let mut merged = spans::TraceUsage::default();
    let (mut tokens, mut cost) = (None, None);
    for summary in &summaries {
        merged.merge(summary.usage.clone());
        tokens = summary.usage.tokens().and_then(|_| merged.tokens()).or(tokens);
        cost = summary.usage.cost().and_then(|_| merged.cost()).or(cost);
    }
    expect("tokens", optional(tokens), &metadata["mlflow.trace.tokenUsage"]);
    expect("cost", optional(cost), &metadata["mlflow.trace.cost"]);
    assert_eq!(merged.tokens(), summarize(spans).unwrap().usage.tokens());

    let mut tags = serde_json::Map::new();
    for part in parts {
        tags.extend(part.resource.iter().map(|(key, value)| (key.clone(), value.clone().into())));
        let summary = summarize(&part.spans).unwrap();
        tags.extend(summary.tags.into_iter().map(|(key, value)| (key, value.into())));
        tags.extend(summary.trace_name.map(|name| ("mlflow.traceName".to_owned(), name.into())));
    }
    let mut stock = info["tags"].as_object().unwrap().clone();
    stock.retain(|key, _| !["mlflow.artifactLocation", "mlflow.trace.spansLocation"].contains(&key.as_str()));
    let sorted = |map: serde_json::Map<String, Value>| {
        let mut entries: Vec<_> = map.into_iter().collect();
        for (_, value) in &mut entries {
            *value = value.as_str().unwrap().chars().take(ANSWERED_TAG).collect::<String>().into();
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        Value::from(serde_json::Map::from_iter(entries))
    };
    expect("tags", sorted(tags), &sorted(stock));
    wrong
}
