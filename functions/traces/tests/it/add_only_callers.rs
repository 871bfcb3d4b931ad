//! Callers who may only add traces, such as tokens for ingestion, can neither read nor change
//! existing traces.

use std::sync::Arc;
use std::time::Duration;

use access::{Action, Resource, Visibility};
use serde_json::{Value, json};
use test_site::TestAuthorizer;

use crate::marks::timed;
use crate::server::{Server, Site, id, info, span};

/// Starts a process whose callers may create traces and assessments, but not read or change any.
async fn adding(site: &Site) -> Server {
    let may = |ask: &access::AccessCheck| ask.action == Action::Create || ask.kind == Resource::Experiment;
    Server::guarded(&site.table, Arc::new(TestAuthorizer::of_asks(Visibility::Everything, may).looking())).await
}

/// Returns a trace with all fields that a client may set. Every field contains the given text.
fn said(number: u32, text: &str) -> Value {
    let mut said = info(number, "0");
    said["client_request_id"] = text.into();
    said["request_preview"] = text.into();
    said["response_preview"] = text.into();
    said["tags"] = json!({ "k": text, text: text });
    said["trace_metadata"] = json!({ "m": text, text: text });
    let assessment = |id: &str| {
        json!({ "assessment_id": id, "assessment_name": text, "feedback": { "value": text },
                "create_time": "2023-11-14T22:13:20Z", "last_update_time": "2023-11-14T22:13:20Z" })
    };
    said["assessments"] = json!([assessment("a-1"), assessment(&format!("a-{text}"))]);
    said
}

#[tokio::test]
async fn a_trace_that_is_said_again_keeps_all_its_fields_and_gets_new_ones() {
    let site = Site::new().await;
    let adding = adding(&site).await;
    site.server.start(&said(1, "theirs")).await.ok();
    let before = site.server.info(1).await;
    let mut other = said(1, "mine");
    other["request_time"] = "2020-01-01T00:00:00Z".into();
    other["execution_duration"] = "9s".into();
    other["state"] = "ERROR".into();
    // The request is sent to a process that has not cached the trace, and then to the process that
    // wrote it last.
    for _ in 0..2 {
        let answer = adding.start(&other).await.ok();
        assert!(!answer.to_string().contains("theirs"), "{answer}");
        assert_eq!(answer["trace"]["trace_info"]["request_preview"], "mine");
    }
    let after = site.other().await.info(1).await;
    let mut expected = before;
    expected["tags"]["mine"] = "mine".into();
    expected["trace_metadata"]["mine"] = "mine".into();
    let assessments = |info: &mut Value| {
        let mut all = info["assessments"].take().as_array().unwrap().clone();
        all.sort_by_key(|one| one["assessment_id"].as_str().unwrap().to_owned());
        all.iter().map(|one| one["feedback"]["value"].clone()).collect::<Vec<_>>()
    };
    let (mut expected, mut after) = (expected, after);
    assert_eq!(assessments(&mut after), ["theirs", "mine", "theirs"]);
    assessments(&mut expected);
    assert_eq!(after, expected);
    // Other callers can still change the trace.
    site.server.start(&other).await.ok();
    assert_eq!(site.server.info(1).await["request_preview"], "mine");
}

#[tokio::test]
async fn a_new_trace_is_answered_and_kept_as_it_was_sent() {
    let site = Site::new().await;
    let adding = adding(&site).await;
    let answer = adding.start(&said(1, "mine")).await.ok()["trace"]["trace_info"].take();
    assert_eq!(answer["tags"]["mine"], "mine");
    assert_eq!(site.server.info(1).await["response_preview"], "mine");
    // Clients of version 3.17 send the spans first. At the end, they add the fields that the spans
    // do not contain.
    adding.export(&[span(2, 1, None, 0, 5)]).await.ok();
    let answer = adding.start(&said(2, "mine")).await.ok()["trace"]["trace_info"].take();
    assert_eq!(answer["tags"]["mlflow.trace.spansLocation"], "TRACKING_STORE");
    let kept = site.server.info(2).await;
    assert_eq!((&kept["tags"]["k"], &kept["trace_metadata"]["m"]), (&json!("mine"), &json!("mine")));
    assert_eq!((&kept["request_preview"], &kept["client_request_id"]), (&json!("mine"), &json!("mine")));
}

#[tokio::test]
async fn exported_spans_are_added_and_replace_none() {
    let site = Site::new().await;
    let adding = adding(&site).await;
    let mut root = span(1, 1, None, 10, 50);
    root["attributes"] = json!([{ "key": "mlflow.traceTag.k", "value": { "stringValue": "theirs" } }]);
    site.server.export(&[root, span(1, 2, Some(1), 20, 40)]).await.ok();
    site.server.start(&said(1, "theirs")).await.ok();
    let before = site.server.info(1).await;
    let mut forged: Vec<_> = [span(1, 1, None, 0, 90), span(1, 2, Some(1), 0, 80), span(1, 3, Some(1), 0, 70)].into();
    for span in &mut forged {
        span["name"] = "forged".into();
        span["attributes"] = json!([{ "key": "mlflow.traceTag.k", "value": { "stringValue": "mine" } }]);
    }
    let answer = adding.export(&forged).await.ok();
    assert_eq!(answer, json!({}));
    assert_eq!(site.other().await.spans(1).await, ["step 1", "forged", "step 2"]);
    assert_eq!(site.other().await.info(1).await, before);
}

#[test]
fn of_two_added_spans_the_first_counts() {
    timed(async {
        let site = Site::new().await;
        let adding = adding(&site).await;
        let named = |name: &str| {
            let mut span = span(1, 1, None, 0, 50);
            span["name"] = name.into();
            [span]
        };
        for name in ["first", "second"] {
            adding.export(&named(name)).await.ok();
            runtime::clock::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(site.other().await.spans(1).await, ["first"]);
        // A caller with the right to change traces can replace it.
        site.server.export(&named("third")).await.ok();
        assert_eq!(site.other().await.spans(1).await, ["third"]);
    });
}

#[tokio::test]
async fn a_trace_whose_root_comes_last_is_completed() {
    let site = Site::new().await;
    let adding = adding(&site).await;
    adding.export(&[span(1, 2, Some(1), 20, 40)]).await.ok();
    adding.export(&[span(1, 1, None, 0, 50)]).await.ok();
    let ended = site.server.info(1).await;
    assert_eq!((&ended["state"], &ended["execution_duration"]), (&json!("OK"), &json!("0.050s")));
    assert_eq!(ended["trace_id"], id(1));
}
