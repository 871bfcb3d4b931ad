//! Traces of ten spans and 5 KB, as ledgers meter them.

use std::ops::Range;

use serde_json::{Value, json};

/// Returns a text of `count` words, different for each seed.
pub fn words(seed: u64, count: u64) -> String {
    let words = ["what", "is", "the", "answer", "of", "model", "when", "context", "says", "nothing", "about", "it"];
    let word = |place: u64| words[usize::try_from((seed * 7 + place * place) % 12).unwrap()];
    let words: Vec<_> = (0..count).map(|place| format!("{}{}", word(place), (seed * 31 + place * 17) % 97)).collect();
    words.join(" ")
}

/// Returns an OTLP export of the trace with this number, which began at a time in ms. A whole trace has
/// ten spans of half a KB each: a root, and nine calls below the root.
pub fn export(number: u32, spans: Range<u64>, began: u64) -> Value {
    let attribute = |key: &str, value: String| json!({ "key": key, "value": { "stringValue": value } });
    let time = |ms: u64| ((began + ms) * 1_000_000).to_string();
    let span = |place: u64| {
        let seed = u64::from(number) * 100 + place;
        let mut span = json!({
            "traceId": format!("{number:032x}"),
            "spanId": format!("{:016x}", place + 1),
            "name": format!("step {place}"),
            "startTimeUnixNano": time(10 * place),
            "endTimeUnixNano": time(if place == 0 { 100 } else { 10 * place + 9 }),
            "attributes": [
                attribute("mlflow.spanInputs", json!({ "question": words(seed, 20) }).to_string()),
                attribute("mlflow.spanOutputs", json!({ "answer": words(seed + 1, 30) }).to_string()),
                attribute("mlflow.spanType", "\"TOOL\"".to_owned()),
            ],
        });
        if place > 0 {
            span["parentSpanId"] = format!("{:016x}", 1).into();
        }
        span
    };
    let spans: Vec<_> = spans.map(span).collect();
    json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] })
}

/// Returns the `StartTrace` request that follows the export. `time` is the start as MLflow sends it.
pub fn start(number: u32, experiment: &str, time: &str) -> Value {
    let seed = u64::from(number) * 100;
    json!({ "trace": { "trace_info": {
        "trace_id": format!("tr-{number:032x}"),
        "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": experiment } },
        "request_time": time,
        "execution_duration": "0.1s",
        "state": "OK",
        "request_preview": words(seed, 20),
        "response_preview": words(seed + 1, 30),
        "trace_metadata": {
            "mlflow.trace_schema.version": "3",
            "mlflow.user": "somebody",
            "mlflow.source.name": "/home/somebody/agent.py",
            "mlflow.source.type": "LOCAL",
            "mlflow.trace.sizeStats": "{\"total_size_bytes\": 5000, \"num_spans\": 10, \"max\": 594}",
            "mlflow.trace.sizeBytes": "5000",
        },
        "tags": { "mlflow.traceName": "agent" },
    } } })
}
