//! Requests of the OpenTelemetry Collector's `otlphttp` exporter: protobuf, gzip, spans of several
//! programs in one request, and retries after a lost response.

use std::io::Write;

use axum::body::Body;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Request;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use serde_json::json;

use crate::server::{ALL, Server, Site, TestResponse, id};

const BEGIN: u64 = 1_700_000_000_000_000_000;

fn attribute(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Any::StringValue(value.to_owned()))
}

/// Returns a span of a trace. The span's number is also its duration in ms.
pub(crate) fn span(trace: u32, number: u64, parent: Option<u64>, attributes: Vec<KeyValue>) -> Span {
    Span {
        trace_id: u128::from(trace).to_be_bytes().to_vec(),
        span_id: number.to_be_bytes().to_vec(),
        parent_span_id: parent.map_or_else(Vec::new, |parent| parent.to_be_bytes().to_vec()),
        name: format!("step {number}"),
        kind: 3,
        start_time_unix_nano: BEGIN,
        end_time_unix_nano: BEGIN + number * 1_000_000,
        attributes,
        status: Some(Status::default()),
        flags: 0x100,
        ..Span::default()
    }
}

/// Returns the spans of a program. Each element of `scopes` becomes one instrumentation scope.
pub(crate) fn program(attributes: Vec<KeyValue>, scopes: Vec<Vec<Span>>) -> ResourceSpans {
    let scope = |(number, spans): (usize, Vec<Span>)| ScopeSpans {
        scope: Some(InstrumentationScope { name: format!("library {number}"), ..InstrumentationScope::default() }),
        spans,
        schema_url: "https://opentelemetry.io/schemas/1.26.0".to_owned(),
    };
    ResourceSpans {
        resource: Some(Resource { attributes, ..Resource::default() }),
        scope_spans: scopes.into_iter().enumerate().map(scope).collect(),
        schema_url: "https://opentelemetry.io/schemas/1.26.0".to_owned(),
    }
}

/// Sends a request like the exporter.
pub(crate) async fn send(server: &Server, resource_spans: Vec<ResourceSpans>) -> TestResponse {
    let mut body = GzEncoder::new(Vec::new(), Compression::fast());
    body.write_all(&ExportTraceServiceRequest { resource_spans }.encode_to_vec()).unwrap();
    let request = Request::post("/v1/traces")
        .header("content-type", "application/x-protobuf")
        .header("content-encoding", "gzip")
        .header("user-agent", "OpenTelemetry Collector Contrib/0.140.0 (linux/amd64)")
        .header("x-mlflow-experiment-id", "0");
    server.send(request.body(Body::from(body.finish().unwrap())).unwrap()).await
}

/// Returns the spans of two programs. The second program continues the trace of the first one, and
/// also has a separate trace.
fn gathered() -> Vec<ResourceSpans> {
    let shop = vec![text("service.name", "shop"), text("telemetry.sdk.language", "go"), text("zone", "a")];
    let model = vec![text("service.name", "model"), attribute("replicas", Any::IntValue(3))];
    let call = vec![
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.request.model", "gpt-4o-mini"),
        attribute("gen_ai.usage.input_tokens", Any::IntValue(7)),
        attribute("gen_ai.usage.output_tokens", Any::IntValue(2)),
    ];
    vec![
        program(
            shop,
            vec![vec![span(1, 50, None, vec![text("session.id", "s")])], vec![span(1, 20, Some(50), vec![])]],
        ),
        program(model, vec![vec![span(1, 10, Some(20), call), span(2, 30, None, vec![])]]),
    ]
}

#[tokio::test]
async fn what_a_collector_gathers_becomes_its_traces() {
    let site = Site::new().await;
    let answer = send(&site.server, gathered()).await;
    // The response is an empty protobuf message.
    assert_eq!((answer.status, answer.body), (200, json!("")));
    let server = site.other().await;
    assert_eq!(server.spans(1).await, ["step 50", "step 20", "step 10"]);
    assert_eq!(server.spans(2).await, ["step 30"]);
    let first = server.info(1).await;
    assert_eq!((&first["state"], &first["execution_duration"]), (&json!("OK"), &json!("0.050s")));
    // The trace gets the name of the first program that has one.
    assert_eq!((&first["tags"]["service.name"], &first["tags"]["zone"]), (&json!("shop"), &json!("a")));
    assert!(first["tags"].get("telemetry.sdk.language").is_none() && first["tags"].get("replicas").is_none());
    assert_eq!(first["trace_metadata"]["mlflow.trace.session"], "s");
    let usage = first["trace_metadata"]["mlflow.trace.tokenUsage"].as_str().unwrap().to_owned();
    assert!(usage.contains("\"total_tokens\": 9"), "{usage}");
    let second = server.info(2).await;
    assert_eq!((&second["tags"]["service.name"], &second["tags"]["replicas"]), (&json!("model"), &json!("3")));

    // After a lost response, the request is sent again to another process. It stores the spans of both
    // traces under the traces' keys, and changes nothing else.
    let before = site.items().await.len();
    assert_eq!(send(&server, gathered()).await.status, 200);
    assert_eq!(site.items().await.len(), before + 2);
    assert_eq!((server.info(1).await, server.info(2).await), (first, second));
}

#[tokio::test]
async fn a_batch_of_more_traces_than_are_written_at_a_time_is_taken_whole() {
    Box::pin(is_taken_whole(1_010, false)).await;
}

#[tokio::test]
#[ignore = "sends more than a thousand traces twice; part of `make test-slow`"]
async fn a_batch_of_more_traces_than_are_written_at_a_time_changes_nothing_when_it_comes_again() {
    Box::pin(is_taken_whole(1_300, true)).await;
}

/// Sends this many traces in one request, which may be more than the thousand that are written at a
/// time, and checks that either all of them are stored or none. If `comes_again` is set, sends the
/// request twice.
async fn is_taken_whole(traces: u32, comes_again: bool) {
    let site = Site::new().await;
    let server = &site.server;
    let batch = |too_long: Option<u32>| {
        let spans = (1..=traces).map(|trace| {
            let session = if Some(trace) == too_long { "s".repeat(251) } else { "s".to_owned() };
            span(trace, 1, None, vec![text("session.id", &session)])
        });
        vec![program(vec![text("service.name", "shop")], vec![spans.collect()])]
    };
    // An error in any trace, even the last one, rejects the whole request, and nothing is written.
    let before = site.items().await.len();
    let refused = send(server, batch(Some(traces))).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert!(refused.contains("Session ID"), "{refused}");
    assert_eq!(site.items().await.len(), before);

    assert_eq!(send(server, batch(None)).await.status, 200);
    if comes_again {
        let written = site.items().await.len();
        assert_eq!(send(&site.other().await, batch(None)).await.status, 200);
        assert_eq!(site.items().await.len(), written);
    }
    let other = site.other().await;
    for chunk in (1..=traces).map(id).collect::<Vec<_>>().chunks(1_000) {
        let asked = json!({ "trace_ids": chunk }).to_string();
        let found = other.call_at("POST", &format!("{ALL}/batchGetInfos"), asked).await.ok();
        let infos = found["trace_infos"].as_array().unwrap();
        assert_eq!(infos.len(), chunk.len());
        assert!(infos.iter().all(|info| info["tags"]["service.name"] == "shop" && info["state"] == "OK"));
    }
}
