//! What belongs to one experiment, or to one life of a trace, is not another's.

use serde_json::json;

use crate::server::{ALL, Server, Site, id, info, span};

async fn delete(server: &Server, experiment: &str, number: u32) -> u64 {
    let asked = json!({ "experiment_id": experiment, "request_ids": [id(number)] });
    let answer = server.call_at("POST", &format!("{ALL}/delete-traces"), asked.to_string()).await.ok();
    answer["traces_deleted"].as_u64().unwrap()
}

#[tokio::test]
async fn spans_for_a_trace_of_another_experiment_are_never_shown() {
    let site = Site::new().await;
    let server = &site.server;
    let other = server.experiment("other").await;
    server.export(&[span(1, 1, None, 0, 5)]).await.ok();
    let mut forged = span(1, 1, None, 0, 9);
    forged["name"] = "forged".into();
    let refused = server.export_to(&other, &[forged.clone(), span(1, 2, Some(1), 1, 2)]).await;
    let message = refused.refused(400, "INVALID_PARAMETER_VALUE");
    assert_eq!(message, format!("Trace with ID '{}' does not belong to experiment {other}.", id(1)));
    assert_eq!(server.spans(1).await, ["step 1"]);
    assert_eq!(server.info(1).await["execution_duration"], "0.005s");
    // What is refused of one trace is taken of others, and the answer says how much it is.
    let said = server.export_to(&other, &[forged, span(2, 1, None, 0, 5)]).await.ok();
    assert_eq!(said, json!({ "partialSuccess": { "rejectedSpans": "1", "errorMessage": message } }));
    assert_eq!(server.spans(1).await, ["step 1"]);
    assert_eq!(server.spans(2).await, ["step 1"]);
}

#[tokio::test]
async fn a_process_that_remembers_a_deleted_trace_does_not_bring_it_back() {
    let site = Site::new().await;
    let (one, two) = (site.other().await, site.other().await);
    let other = two.experiment("other").await;
    one.export(&[span(1, 1, None, 0, 5)]).await.ok();
    assert_eq!(delete(&two, "0", 1).await, 1);
    two.start(&info(1, &other)).await.ok();
    one.export(&[span(1, 1, None, 0, 5)]).await.refused(400, "INVALID_PARAMETER_VALUE");
    let trace = two.info(1).await;
    assert_eq!(trace["trace_location"]["mlflow_experiment"]["experiment_id"], other.as_str());
    assert_eq!(trace["execution_duration"], "1.500s");
    assert!(trace["tags"].get("mlflow.trace.spansLocation").is_none());
}

#[tokio::test]
async fn a_process_does_not_refuse_what_only_it_remembers() {
    let site = Site::new().await;
    let (one, two) = (site.other().await, site.other().await);
    let other = two.experiment("other").await;
    one.export(&[span(1, 1, None, 0, 5)]).await.ok();
    assert_eq!(delete(&two, "0", 1).await, 1);
    two.export_to(&other, &[span(1, 1, None, 0, 5)]).await.ok();
    one.export_to(&other, &[span(1, 2, Some(1), 1, 2)]).await.ok();
    assert_eq!(two.spans(1).await, ["step 1", "step 2"]);
}

#[tokio::test]
async fn what_is_answered_is_there_whatever_a_process_remembers() {
    let site = Site::new().await;
    let (one, two) = (site.other().await, site.other().await);
    let mut started = info(1, "0");
    started["tags"] = json!({ "k": "v1" });
    one.start(&started).await.ok();
    one.export(&[span(2, 1, None, 0, 5)]).await.ok();
    for number in [1, 2] {
        assert_eq!(delete(&two, "0", number).await, 1);
    }
    one.start(&started).await.ok();
    one.export(&[span(2, 1, None, 0, 5)]).await.ok();
    assert_eq!(two.info(1).await["tags"]["k"], "v1");
    assert_eq!(two.spans(2).await, ["step 1"]);
    let path = format!("traces/{}/tags", id(1));
    two.call("PATCH", &path, json!({ "key": "k", "value": "v2" })).await.ok();
    one.start(&started).await.ok();
    assert_eq!(two.info(1).await["tags"]["k"], "v1");
}

#[tokio::test]
async fn spans_do_not_set_what_the_server_sets() {
    let site = Site::new().await;
    let mut root = span(1, 1, None, 0, 5);
    let tag = |key: &str| json!({ "key": format!("mlflow.traceTag.{key}"), "value": { "stringValue": "mine" } });
    root["attributes"] = json!([tag("mlflow.trace.spansLocation"), tag("mlflow.artifactLocation"), tag("team")]);
    site.server.export(&[root]).await.ok();
    let tags = site.server.info(1).await["tags"].clone();
    assert_eq!((&tags["mlflow.trace.spansLocation"], &tags["team"]), (&json!("TRACKING_STORE"), &json!("mine")));
    assert!(tags["mlflow.artifactLocation"].as_str().unwrap().ends_with("/artifacts"));
}

#[tokio::test]
async fn a_document_keeps_room_for_what_the_server_adds() {
    let site = Site::new().await;
    let server = &site.server;
    let long = "x".repeat(8_000);
    let mut started = info(1, "0");
    started["trace_metadata"] = (0..39).map(|number| (format!("k{number}"), json!(long))).collect();
    server.start(&started).await.ok();
    let feedback = json!({ "assessment": { "assessment_name": "n", "feedback": {}, "rationale": "x".repeat(20_000) } });
    let path = format!("{ALL}/{}/assessments", id(1));
    let refused = server.call_at("POST", &path, feedback.to_string()).await.refused(400, "BAD_REQUEST");
    assert!(refused.contains("has no room for this"), "{refused}");
    server.export(&[span(1, 1, None, 0, 5)]).await.ok();
    assert_eq!(server.spans(1).await, ["step 1"]);
}

#[tokio::test]
async fn a_request_brings_traces_of_no_more_days_than_it_may() {
    let site = Site::new().await;
    let day = |number: u32| u64::from(number) * 86_400_000;
    let days: Vec<_> = (0..33).map(|number| span(number + 1, 1, None, day(number), day(number) + 5)).collect();
    assert_eq!(site.server.export(&days).await.status, 413);
}
