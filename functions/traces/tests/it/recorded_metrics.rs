//! Compares metrics with those that stock MLflow computed for the same traces
//! (`tests/compare/record_trace_metrics.py`).

use std::collections::HashMap;

use axum::body::Body;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use crate::server::{Server, Site, TestResponse};
use crate::test_packer::{pack_all, pack_some};

const RECORDED: &str = include_str!("figures.json");

type Known = HashMap<String, String>;

fn filled(text: &str, known: &Known) -> String {
    known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

async fn call(server: &Server, call: &Value, known: &mut Known) {
    let request = Request::builder().method(call["method"].as_str().unwrap()).uri(call["path"].as_str().unwrap());
    let experiment = filled(call["experiment"].as_str().unwrap_or_default(), known);
    let request = request.header(CONTENT_TYPE, "application/json").header("x-mlflow-experiment-id", experiment);
    let body = Body::from(filled(&call["body"].to_string(), known));
    let answer = server.send(request.body(body).unwrap()).await.ok();
    if let [Value::String(path), Value::String(name)] = call["capture"].as_array().map_or(&[][..], Vec::as_slice) {
        let value = path.split('.').fold(&answer, |value, part| &value[part]);
        known.insert(name.clone(), value.as_str().unwrap().to_owned());
    }
}

/// Checks whether two values are equal. Floats may differ in the last digits, because libraries
/// compute logarithms differently.
fn is_same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) => {
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            (found - expected).abs() <= expected.abs() * 1e-14
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| is_same(found, expected))
        }
        (Value::Object(found), Value::Object(expected)) => {
            found.len() == expected.len()
                && expected.iter().all(|(name, value)| found.get(name).is_some_and(|found| is_same(found, value)))
        }
        _ => found == expected,
    }
}

/// Returns the difference between a response and the recorded one, if there is one. Requests that
/// cause an exception in MLflow must be rejected.
fn difference(answer: &TestResponse, status: u64, expected: &Value, known: &Known) -> Option<String> {
    let (found, is_alike) = match status {
        500.. => (&answer.body["message"], (400..500).contains(&answer.status)),
        200 => (&answer.body, u64::from(answer.status) == status && is_same(&answer.body, expected)),
        _ => {
            let said = &answer.body["message"];
            let expected = filled(expected.as_str().unwrap_or_default(), known);
            (said, u64::from(answer.status) == status && said.as_str() == Some(&expected))
        }
    };
    (!is_alike).then(|| format!("{} {found}\n  not {status} {expected}", answer.status))
}

#[tokio::test]
#[ignore = "another test covers these queries with some traces packed; part of `make test-slow`"]
async fn figures_are_those_of_mlflow() {
    are_those_of_mlflow(async |_| {}).await;
}

#[tokio::test]
async fn they_are_where_some_traces_are_packed() {
    are_those_of_mlflow(async |site| pack_some(site, 5, |place| place % 4 != 1).await).await;
}

#[tokio::test]
#[ignore = "another test covers these queries with some traces packed; part of `make test-slow`"]
async fn they_are_where_all_traces_are_packed() {
    are_those_of_mlflow(async |site| pack_all(site, 128).await).await;
}

/// Removes the counts by span type for types that are only in attributes of other SDKs. MLflow does
/// not count these types, but this server counts spans by the type that is shown.
fn leave_out_translated_types(body: &mut Value) {
    if let Some(points) = body.get_mut("data_points").and_then(Value::as_array_mut) {
        points.retain(|point| point["dimensions"]["span_type"] != "CHAT_MODEL");
    }
}

async fn are_those_of_mlflow(pack: impl AsyncFn(&Site)) {
    let recorded: HashMap<String, Vec<Value>> = serde_json::from_str(RECORDED).unwrap();
    let site = Site::new().await;
    let mut known = Known::new();
    for made in &recorded["made"] {
        call(&site.server, made, &mut known).await;
    }
    pack(&site).await;
    let mut differences = Vec::new();
    for (kind, path) in [("metrics", "metrics"), ("correlations", "calculate-filter-correlation")] {
        let path = format!("/api/3.0/mlflow/traces/{path}");
        for asked in &recorded[kind] {
            let body = filled(&asked[0].to_string(), &known);
            let mut answer = site.server.call_at("POST", &path, body).await;
            leave_out_translated_types(&mut answer.body);
            if let Some(difference) = difference(&answer, asked[1].as_u64().unwrap(), &asked[2], &known) {
                differences.push(format!("{}\n  {difference}", asked[0]));
            }
        }
    }
    assert!(recorded["metrics"].len() + recorded["correlations"].len() > 200);
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
}
