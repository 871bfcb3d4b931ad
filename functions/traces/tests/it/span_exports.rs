//! Tests spans from exporters.

use serde_json::{Value, json};

use crate::server::{ALL, Site, id, info, span};

#[tokio::test]
async fn spans_make_their_trace() {
    let site = Site::new().await;
    let server = &site.server;
    assert_eq!(server.export(&[span(1, 2, Some(1), 10, 40)]).await.status, 200);
    let begun = server.info(1).await;
    assert_eq!((&begun["state"], &begun["execution_duration"]), (&json!("IN_PROGRESS"), &json!("0.030s")));
    assert_eq!(begun["tags"]["mlflow.trace.spansLocation"], "TRACKING_STORE");
    assert_eq!(server.export(&[span(1, 1, None, 0, 50)]).await.status, 200);
    let ended = server.info(1).await;
    assert_eq!((&ended["state"], &ended["execution_duration"]), (&json!("OK"), &json!("0.050s")));
    assert_eq!(ended["request_time"], "2023-11-14T22:13:20Z");
    assert_eq!(server.spans(1).await, ["step 1", "step 2"]);
    // If a span is sent again, the latest version is kept. A retry does not add a second span.
    let mut renamed = span(1, 2, Some(1), 10, 40);
    renamed["name"] = "other".into();
    server.export(&[renamed]).await.ok();
    assert_eq!(site.other().await.spans(1).await, ["step 1", "other"]);
}

#[tokio::test]
async fn a_type_that_other_sdks_say_is_found_as_it_is_shown() {
    let site = Site::new().await;
    let server = &site.server;
    for (number, key, value) in [(1, "openinference.span.kind", "TOOL"), (2, "gen_ai.operation.name", "chat")] {
        let mut root = span(number, 1, None, 0, 5);
        root["attributes"] = json!([{ "key": key, "value": { "stringValue": value } }]);
        server.export(&[root]).await.ok();
    }
    let shown = async |number: u32| {
        let file = server.get_at("/ajax-api/3.0/mlflow/get-trace-artifact", &[("request_id", &id(number))]).await.ok();
        file["spans"][0]["attributes"]["mlflow.spanType"].as_str().unwrap().trim_matches('"').to_owned()
    };
    assert_eq!(shown(1).await, "TOOL");
    for number in [1, 2] {
        let filter = format!("span.type = '{}'", shown(number).await);
        assert_eq!(server.found(&["0"], &filter, "", 10).await, [id(number)]);
    }
    assert_eq!(server.found(&["0"], "span.type IN ('TOOL', 'UNKNOWN')", "", 10).await, [id(1)]);
}

#[tokio::test]
async fn half_a_surrogate_pair_costs_no_span() {
    let site = Site::new().await;
    let server = &site.server;
    let mut cut = span(1, 1, None, 0, 5);
    cut["name"] = "CUT".into();
    cut["attributes"] = json!([{ "key": "text", "value": { "stringValue": "CUT \u{1f916}" } }]);
    let body = crate::server::export(&[cut, span(2, 1, None, 0, 5)]).replace("CUT", "\\ud83e");
    server.call_at("POST", "/v1/traces", body).await.ok();
    assert_eq!(server.spans(1).await, ["\u{fffd}"]);
    assert_eq!(server.spans(2).await, ["step 1"]);
    let file = server.get_at("/ajax-api/3.0/mlflow/get-trace-artifact", &[("request_id", &id(1))]).await.ok();
    let kept: String = serde_json::from_str(file["spans"][0]["attributes"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(kept, "\u{fffd} \u{1f916}");
}

#[tokio::test]
async fn a_duration_may_have_any_number_of_digits() {
    let site = Site::new().await;
    let mut started = info(1, "0");
    started["execution_duration"] = "0.012345678901234s".into();
    started["request_time"] = "2023-11-14T22:13:20.1234567890123Z".into();
    site.server.start(&started).await.ok();
    let trace = site.server.info(1).await;
    assert_eq!(
        (&trace["execution_duration"], &trace["request_time"]),
        (&json!("0.012s"), &json!("2023-11-14T22:13:20.123Z"))
    );
}

#[tokio::test]
async fn a_repetition_changes_nothing() {
    let site = Site::new().await;
    let spans = [span(1, 1, None, 0, 50), span(2, 1, None, 0, 50)];
    site.server.export(&spans).await.ok();
    let before = site.dump().await;
    site.server.export(&spans).await.ok();
    site.other().await.export(&spans).await.ok();
    let items = |dump: &[Value]| dump.iter().map(|item| item["SK"].to_string()).collect::<Vec<_>>();
    assert_eq!(items(&site.items().await).len(), 1 + 1 + 1 + 1 + 6, "{before:?}");
    assert_eq!(site.server.spans(2).await, ["step 1"]);
}

#[tokio::test]
async fn exporters_at_once_lose_no_span() {
    let site = Site::new().await;
    let servers = [site.other().await, site.other().await, site.other().await];
    let mut exports = Vec::new();
    for number in 0..24_u64 {
        let server = servers[usize::try_from(number % 3).unwrap()].clone();
        let spans = [span(1, number + 1, (number > 0).then_some(1), 100 - number, 100 + number)];
        exports.push(tokio::spawn(async move { server.export(&spans).await }));
    }
    for export in exports {
        assert_eq!(export.await.unwrap().status, 200);
    }
    let server = site.other().await;
    assert_eq!(server.spans(1).await.len(), 24);
    let trace = server.info(1).await;
    assert_eq!(trace["request_time"], "2023-11-14T22:13:20.077Z");
    assert_eq!((&trace["state"], &trace["execution_duration"]), (&json!("OK"), &json!("0.046s")));
}

#[tokio::test]
async fn what_a_client_says_stands() {
    let site = Site::new().await;
    let server = &site.server;
    server.start(&info(1, "0")).await.ok();
    assert!(server.info(1).await["tags"].get("mlflow.trace.spansLocation").is_none(), "no span has arrived");
    let mut root = span(1, 1, None, 0, 50);
    root["attributes"] = json!([{ "key": "session.id", "value": { "stringValue": "s" } }]);
    server.export(&[root]).await.ok();
    let trace = server.info(1).await;
    assert_eq!(trace["execution_duration"], "1.500s");
    assert_eq!(trace["trace_metadata"]["mlflow.trace.session"], "s");
    assert_eq!(trace["tags"]["mlflow.trace.spansLocation"], "TRACKING_STORE");
}

#[tokio::test]
async fn a_trace_of_many_spans_and_a_long_one_come_back_whole() {
    let site = Site::new().await;
    let many: Vec<_> =
        (1..=3_000).map(|number| span(1, number, (number > 1).then_some(1), number, number + 1)).collect();
    for part in many.chunks(1_000) {
        site.server.export(part).await.ok();
    }
    assert_eq!(site.server.spans(1).await.len(), 3_000);
    let noise: String = (0..3_000_000_u32)
        .map(|number| char::from(33 + u8::try_from(number.wrapping_mul(2_654_435_761) >> 25).unwrap() % 90))
        .collect();
    let mut long = span(2, 1, None, 0, 1);
    long["attributes"] = json!([{ "key": "noise", "value": { "stringValue": noise } }]);
    site.server.export(&[long]).await.ok();
    let path = "/ajax-api/3.0/mlflow/get-trace-artifact";
    let file = site.server.get_at(path, &[("request_id", &id(2))]).await.ok();
    let kept: Value = serde_json::from_str(file["spans"][0]["attributes"]["noise"].as_str().unwrap()).unwrap();
    assert_eq!(kept, noise);
    let asked = json!({ "experiment_id": "0", "request_ids": [id(1), id(2)] });
    let deleted = site.server.call_at("POST", &format!("{ALL}/delete-traces"), asked.to_string()).await.ok();
    assert_eq!(deleted["traces_deleted"], 2);
}

#[tokio::test]
#[ignore = "reads traces of many MB; part of `make test-slow`"]
async fn large_traces_are_read_in_turn_and_no_more_of_them_than_an_answer_holds() {
    let site = Site::new().await;
    // The spans are large, but tiny once they are packed.
    let text = "x".repeat(20 << 20);
    for number in 1..=4 {
        let mut long = span(number, 1, None, 0, 1);
        long["attributes"] = json!([{ "key": "text", "value": { "stringValue": text } }]);
        site.server.export(&[long]).await.ok();
    }
    let batch = format!("{ALL}/batchGet");
    let ids = [id(1), id(2), id(3), id(4)];
    let asked: Vec<_> = ids.iter().map(|id| ("trace_ids", id.as_str())).collect();
    let three = site.server.get_at(&batch, &asked[..3]).await.ok();
    let traces = three["traces"].as_array().unwrap();
    let order: Vec<_> = traces.iter().map(|trace| trace["trace_info"]["trace_id"].as_str().unwrap()).collect();
    assert_eq!(order, &ids[..3]);
    let refused = site.server.get_at(&batch, &asked).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.body["message"].as_str().unwrap().starts_with("The answer is longer than 64 MB"),
        "{}",
        refused.body
    );
}

#[tokio::test]
async fn what_is_no_export_is_answered_as_mlflow_answers_it() {
    let site = Site::new().await;
    let request = |headers: &[(&str, &str)], body: &str| {
        let request = http::Request::post("/v1/traces");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(axum::body::Body::from(body.to_owned())).unwrap()
    };
    let json_type = ("content-type", "application/json");
    let experiment = ("x-mlflow-experiment-id", "0");
    for (headers, body, status, detail) in [
        (
            vec![json_type],
            "{}",
            422,
            json!([{ "type": "missing", "loc": ["header", "x-mlflow-experiment-id"], "msg": "Field required", "input": null }]),
        ),
        (vec![json_type, experiment], "{}", 400, json!("Invalid OpenTelemetry format - no spans found")),
        (vec![json_type, experiment], "x", 400, json!("Invalid OpenTelemetry format")),
        (
            vec![experiment],
            "",
            400,
            json!("Invalid Content-Type: None. Expected: application/x-protobuf or application/json"),
        ),
    ] {
        let answer = site.server.send(request(&headers, body)).await;
        assert_eq!((answer.status, &answer.body["detail"]), (status, &detail), "{body}");
    }
    let gone = ("x-mlflow-experiment-id", "77");
    let spans = crate::server::export(&[span(1, 1, None, 0, 1)]);
    site.server.send(request(&[json_type, gone], &spans)).await.missing();
}

#[tokio::test]
async fn a_deleted_experiment_takes_no_spans() {
    let site = Site::new().await;
    let experiment = site.server.experiment("gone").await;
    site.server.post("experiments/delete", json!({ "experiment_id": experiment })).await.ok();
    let refused = site.server.start(&info(1, &experiment)).await.refused(400, "INVALID_PARAMETER_VALUE");
    site.server.export_to(&experiment, &[span(1, 1, None, 0, 5)]).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert!(refused.contains("must be in the 'active' state"), "{refused}");
    // A trace cannot move to another experiment, either.
    site.server.start(&info(2, "0")).await.ok();
    let other = site.server.experiment("other").await;
    let refused = site.server.start(&info(2, &other)).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert!(refused.contains("does not belong to experiment"), "{refused}");
}
