//! Tests from the body of a request to MLflow's response.

use serde_json::json;
use spans::{ExportFormat, artifact_json, join, json as answered, pack, read, trace_id_text, unpack};

fn body() -> Vec<u8> {
    json!({"resourceSpans": [{
        "resource": {"attributes": [
            {"key": "service.name", "value": {"stringValue": "shop"}},
            {"key": "telemetry.sdk.name", "value": {"stringValue": "opentelemetry"}},
            {"key": "replicas", "value": {"intValue": "3"}}
        ]},
        "scopeSpans": [{"spans": [{
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "GET /", "kind": 2,
            "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": 1_700_000_001_000_000_000_u64,
            "attributes": [
                {"key": "http.status", "value": {"intValue": "200"}},
                {"key": "body", "value": {"stringValue": "{\"a\": [1, 2]}"}},
                {"key": "number", "value": {"stringValue": "1"}}
            ],
            "links": [{"traceId": "0AF7651916CD43DD8448EB211C80319D", "spanId": "b7ad6b7169203332"}],
            "status": {"code": "STATUS_CODE_ERROR", "message": "no"}
        }]}]
    }]})
    .to_string()
    .into_bytes()
}

#[test]
fn a_span_comes_back_as_mlflow_answers_it() {
    let exports = read(ExportFormat::Json, None, &body()).unwrap();
    let [export] = exports.as_slice() else { panic!("one trace") };
    assert_eq!(trace_id_text(&export.trace_id), "tr-0af7651916cd43dd8448eb211c80319c");
    let tags = [("service.name", "shop"), ("replicas", "3")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(*export.resource, tags);

    let packed = pack(&export.spans, 1 << 20);
    assert_eq!(packed, pack(&export.spans, 1 << 20));
    let spans = join([unpack(&packed.parts.concat()).unwrap()]);
    assert_eq!(spans, export.spans);
    assert_eq!(pack(&export.spans, 7).parts.concat(), packed.parts.concat());

    let answer = serde_json::to_value(answered(&spans[0])).unwrap();
    let expected = json!({
        "trace_id": "CvdlGRbNQ92ESOshHIAxnA==", "span_id": "t61rcWkgMzE=", "name": "GET /",
        "start_time_unix_nano": 1_700_000_000_000_000_000_u64, "end_time_unix_nano": 1_700_000_001_000_000_000_u64,
        "attributes": [
            {"key": "http.status", "value": {"int_value": 200}},
            {"key": "body", "value": {"kvlist_value": {"values": [
                {"key": "a", "value": {"array_value": {"values": [{"int_value": 1}, {"int_value": 2}]}}}
            ]}}},
            {"key": "number", "value": {"string_value": "1"}},
            {"key": "mlflow.traceRequestId", "value": {"string_value": "tr-0af7651916cd43dd8448eb211c80319c"}}
        ],
        "links": [{"trace_id": "CvdlGRbNQ92ESOshHIAxnQ==", "span_id": "t61rcWkgMzI="}],
        "status": {"message": "no", "code": "STATUS_CODE_ERROR"}
    });
    assert_eq!(answer, expected);
    assert_eq!(
        artifact_json(&spans[0]),
        "{\"trace_id\": \"CvdlGRbNQ92ESOshHIAxnA==\", \"span_id\": \"t61rcWkgMzE=\", \"parent_span_id\": null, \
         \"name\": \"GET /\", \"start_time_unix_nano\": 1700000000000000000, \"end_time_unix_nano\": \
         1700000001000000000, \"events\": [], \"status\": {\"code\": \"STATUS_CODE_ERROR\", \"message\": \"no\"}, \
         \"attributes\": {\"http.status\": \"200\", \"body\": \"{\\\"a\\\": [1, 2]}\", \"number\": \"\\\"1\\\"\", \
         \"mlflow.traceRequestId\": \"\\\"tr-0af7651916cd43dd8448eb211c80319c\\\"\"}, \"links\": [{\"trace_id\": \
         \"tr-0af7651916cd43dd8448eb211c80319d\", \"span_id\": \"b7ad6b7169203332\", \"attributes\": null}]}"
    );
}

#[test]
fn what_cannot_be_read_is_refused_as_mlflow_does() {
    let refused = |content_type: Option<&str>, encoding: Option<&str>, body: &[u8]| {
        let refusal = ExportFormat::of(content_type).and_then(|format| read(format, encoding, body)).unwrap_err();
        (refusal.status, refusal.detail)
    };
    let json = Some("application/json");
    for (content_type, encoding, body, status, detail) in [
        (None, None, &b""[..], 400, "Invalid Content-Type: None. Expected: application/x-protobuf or application/json"),
        (
            Some("text/plain; a"),
            None,
            b"",
            400,
            "Invalid Content-Type: text/plain; a. Expected: application/x-protobuf or application/json",
        ),
        (json, Some("br"), b"", 400, "Unsupported Content-Encoding: br"),
        (json, Some("GZIP"), b"x", 400, "Failed to decompress gzip payload"),
        (json, Some("deflate"), b"x", 400, "Failed to decompress deflate payload"),
        (json, None, b"{", 400, "Invalid OpenTelemetry format"),
        (json, None, b"{}", 400, "Invalid OpenTelemetry format - no spans found"),
        (Some("application/x-protobuf"), None, b"", 400, "Invalid OpenTelemetry format - no spans found"),
        (Some("application/x-protobuf"), None, b"\xff\xff", 400, "Invalid OpenTelemetry format"),
        (
            json,
            None,
            br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"","spanId":"01"}]}]}]}"#,
            422,
            "Cannot convert OpenTelemetry span to MLflow span",
        ),
        (
            json,
            None,
            br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"01","spanId":"01","endTimeUnixNano":"9223372036854775808"}]}]}]}"#,
            422,
            "Failed to log OpenTelemetry spans",
        ),
    ] {
        assert_eq!(refused(content_type, encoding, body), (status, detail.to_owned()));
    }
}
