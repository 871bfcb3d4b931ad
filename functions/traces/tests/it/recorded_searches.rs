//! Searches for traces whose results were recorded from stock MLflow's own store
//! (`tests/compare/record_trace_searches.py`), run against the table.

use std::collections::HashMap;

use axum::body::Body;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::blocks::all_searches;
use crate::server::{Server, Site};
use crate::test_packer::{pack_all, pack_some};

const RECORDED: &str = include_str!("../../../../shared/language/search/tests/trace_searches.json");

/// Checks whether a search depends on values that differ from those in MLflow's recording. These
/// are ids of traces and runs, also within spans, and the JSON of integers that clients send as
/// floats.
fn is_of_other_values(search: &Value) -> bool {
    let written = search.to_string();
    ["request_id", "tr-", "run", "experiment_id", "4$'", "= '5'", "= '3'"].iter().any(|word| written.contains(word))
}

/// Returns the id of a trace in this test.
fn id(number: usize) -> String {
    format!("tr-{number:032x}")
}

async fn export(server: &Server, experiment: &str, number: usize, spans: &[Value]) {
    let span = |(place, span): (usize, &Value)| {
        let content: Value = serde_json::from_str(span[4].as_str().unwrap()).unwrap();
        let attributes = content["attributes"].as_object().unwrap().iter();
        let attributes = attributes.filter(|(key, _)| key.as_str() != "mlflow.traceRequestId").map(|(key, value)| {
            let value: Value = serde_json::from_str(value.as_str().unwrap()).unwrap();
            let value = match value {
                Value::String(text) => json!({ "stringValue": text }),
                number => json!({ "doubleValue": number }),
            };
            json!({"key": key, "value": value})
        });
        let code = match span[2].as_str().unwrap() {
            "OK" => 1,
            "ERROR" => 2,
            _ => 0,
        };
        let start = span[3].as_i64().unwrap();
        json!({
            "traceId": format!("{number:032x}"),
            "spanId": format!("{:016x}", place + 1),
            "parentSpanId": if place == 0 { String::new() } else { format!("{:016x}", 1) },
            "name": span[0],
            "startTimeUnixNano": start.to_string(),
            "endTimeUnixNano": (start + 1_000_000).to_string(),
            "attributes": attributes.collect::<Vec<_>>(),
            "status": {"code": code},
        })
    };
    let spans: Vec<_> = spans.iter().enumerate().map(span).collect();
    let body = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    let request = Request::post("/v1/traces").header(CONTENT_TYPE, "application/json");
    let request = request.header("x-mlflow-experiment-id", experiment).body(Body::from(body.to_string()));
    server.send(request.unwrap()).await.ok();
}

async fn assess(server: &Server, trace: &str, assessment: &Value) {
    let call = async |body: Value| {
        let path = format!("/api/3.0/mlflow/traces/{trace}/assessments");
        server.call_at("POST", &path, json!({ "assessment": body }).to_string()).await.ok()
    };
    let (kind, name) = (assessment[0].as_str().unwrap(), &assessment[1]);
    let value: Value = serde_json::from_str(assessment[2].as_str().unwrap()).unwrap();
    let value = match (kind, &value) {
        ("issue", _) => json!({"issue_name": "x"}),
        ("expectation", Value::Object(_)) => {
            json!({"serialized_value": {"serialization_format": "JSON_FORMAT", "value": assessment[2]}})
        }
        _ => json!({ "value": value }),
    };
    let session = if assessment[4] == true { json!({"mlflow.trace.session": "x"}) } else { json!({}) };
    let source = json!({"source_type": "HUMAN", "source_id": "x"});
    let made = call(json!({"assessment_name": name, kind: value, "metadata": session, "source": source})).await;
    if assessment[3] == false {
        let overridden = &made["assessment"]["assessment_id"];
        let other = json!({"value": "x"});
        call(json!({"assessment_name": "z", "feedback": other, "source": source, "overrides": overridden})).await;
    }
}

async fn make(server: &Server, experiments: &[String], number: usize, trace: &Value) {
    let (experiment, id) = (&experiments[usize::try_from(trace["experiment"].as_u64().unwrap()).unwrap()], id(number));
    let spans = trace["spans"].as_array().unwrap();
    if !spans.is_empty() {
        export(server, experiment, number, spans).await;
    }
    let mut info = json!({
        "trace_id": id,
        "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}},
        "request_time": mlflow_api::proto_json::time_text(trace["time"].as_i64().unwrap()),
        "state": trace["state"],
        "tags": trace["tags"],
        "trace_metadata": trace["metadata"],
    });
    if let Some(duration) = trace["duration"].as_i64() {
        info["execution_duration"] = mlflow_api::proto_json::duration_text(duration).into();
    }
    if let Some(client) = trace["client"].as_str() {
        info["client_request_id"] = client.into();
    }
    let body = json!({"trace": {"trace_info": info}});
    server.call_at("POST", "/api/3.0/mlflow/traces", body.to_string()).await.ok();
    for assessment in trace["assessments"].as_array().unwrap() {
        assess(server, &id, assessment).await;
    }
    for prompt in trace["prompts"].as_array().unwrap() {
        let (name, version) = prompt.as_str().unwrap().split_once('/').unwrap();
        let versions = json!([{"name": name, "version": version}]);
        server.post("traces/link-prompts", json!({"trace_id": id, "prompt_versions": versions})).await.ok();
    }
}

/// Returns the results of a search, read page by page, or the error message.
async fn search(server: &Server, experiments: &[String], search: &Value, page: u64) -> Result<Vec<String>, String> {
    let place = |number: &Value| {
        let experiment = &experiments[usize::try_from(number.as_u64().unwrap()).unwrap()];
        json!({"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}})
    };
    let locations: Vec<_> = search[0].as_array().unwrap().iter().map(place).collect();
    let mut body = json!({"locations": locations, "filter": search[1], "order_by": search[2], "max_results": page});
    let mut found = Vec::new();
    loop {
        let answer = server.call_at("POST", "/api/3.0/mlflow/traces/search", body.to_string()).await;
        if answer.status != 200 {
            return Err(answer.body["message"].as_str().unwrap_or_default().to_owned());
        }
        let traces = answer.body["traces"].as_array().cloned().unwrap_or_default();
        found.extend(traces.iter().map(|trace| trace["trace_id"].as_str().unwrap().to_owned()));
        match answer.body["next_page_token"].as_str() {
            Some(token) => body["page_token"] = token.into(),
            None => return Ok(found),
        }
    }
}

#[tokio::test]
#[ignore = "an eighth of the searches, where no trace is packed; part of `make test-slow`"]
async fn searches_find_what_mlflow_finds_page_by_page() {
    find_what_mlflow_finds(0, async |_| {}).await;
}

#[tokio::test]
async fn they_do_so_where_some_traces_are_packed() {
    find_what_mlflow_finds(1, async |site| pack_some(site, 5, |place| place % 4 != 1).await).await;
}

#[tokio::test]
#[ignore = "an eighth of the searches, where all traces are packed; part of `make test-slow`"]
async fn they_do_so_where_all_traces_are_packed() {
    find_what_mlflow_finds(2, async |site| pack_all(site, 128).await).await;
}

/// Number of shares into which the searches are divided. Each test runs another share, or all
/// searches in slow tests.
const SHARES: usize = 8;

async fn find_what_mlflow_finds(share: usize, pack: impl AsyncFn(&Site)) {
    let is_all = all_searches();
    let recorded: HashMap<String, Vec<Value>> = serde_json::from_str(RECORDED).unwrap();
    let site = Site::new().await;
    let server = &site.server;
    let mut experiments = Vec::new();
    for name in ["a", "b", "c"] {
        experiments.push(server.experiment(name).await);
    }
    for (number, trace) in recorded["traces"].iter().enumerate() {
        make(server, &experiments, number, trace).await;
    }
    pack(&site).await;
    let (mut asked, mut differences) = (0, Vec::new());
    let searches = recorded["searches"].iter().enumerate();
    for (_, recorded) in searches.filter(|(place, _)| is_all || place % SHARES == share) {
        let expected = match &recorded[3] {
            Value::Array(numbers) => Ok(numbers
                .iter()
                .map(|number| id(usize::try_from(number.as_u64().unwrap()).unwrap()))
                .collect::<Vec<_>>()),
            Value::String(message) => Err(message.clone()),
            _ => continue,
        };
        if is_of_other_values(recorded) {
            continue;
        }
        asked += 1;
        let found = search(server, &experiments, recorded, if asked % 2 == 0 { 7 } else { 500 }).await;
        let unsupported = |message: &String| message.ends_with("which is not supported.");
        if found != expected && !found.as_ref().is_err_and(unsupported) {
            differences.push(format!("{recorded}\n  {found:?}\n  not {expected:?}"));
        }
    }
    assert!(asked > if is_all { 400 } else { 400 / SHARES }, "{asked}");
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
}
