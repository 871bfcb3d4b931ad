//! Data that belongs to one experiment, or to one incarnation of a trace, must not leak into
//! another.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use test_site::key_of;

use crate::server::{ALL, Server, Site, TestResponse, id, info, span};

/// Returns the items in the partitions of traces, of their spans, and of an experiment's marks and
/// blocks, except for items of the other experiment.
async fn held(site: &Site, other: &str) -> BTreeMap<String, Value> {
    let items = site.items().await.into_iter().map(|item| (key_of(&item), item));
    let of_traces = items.filter(|(key, _)| {
        let (kind, rest) = key.pk.split_once('#').unwrap_or_default();
        let is_others = rest.split('#').next() == Some(other);
        kind == "TRACE" || (["SPANS", "TR", "TS"].contains(&kind) && !is_others)
    });
    of_traces.map(|(key, item)| (format!("{} {}", key.pk, key.sk), item)).collect()
}

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
    // The spans of the trace in this experiment are accepted, and the response reports how many
    // spans of the other trace were rejected.
    let said = server.export_to(&other, &[forged, span(2, 1, None, 0, 5)]).await.ok();
    assert_eq!(said, json!({ "partialSuccess": { "rejectedSpans": "1", "errorMessage": message } }));
    assert_eq!(server.spans(1).await, ["step 1"]);
    assert_eq!(server.spans(2).await, ["step 1"]);
}

#[tokio::test]
async fn an_export_changes_nothing_of_a_trace_of_another_experiment() {
    let site = Site::new().await;
    let (one, two) = (site.other().await, site.other().await);
    let other = two.experiment("other").await;
    one.export(&[span(1, 1, None, 0, 5), span(2, 1, None, 0, 5)]).await.ok();
    let before = held(&site, &other).await;
    assert!(before.keys().any(|key| key.contains(" M#")) && before.keys().any(|key| key.contains("T#HEAD")));
    // The requests are sent to a process that has cached the trace's experiment, and to one that
    // has not.
    for server in [&one, &two] {
        for number in [1, 2] {
            server.export_to(&other, &[span(number, 7, None, 0, 9)]).await.refused(400, "INVALID_PARAMETER_VALUE");
        }
        server.start(&info(1, &other)).await.refused(400, "INVALID_PARAMETER_VALUE");
        assert_eq!(held(&site, &other).await, before);
    }
    // The items in the trace's experiment are deleted with the trace, and the items in the other
    // experiment do not matter.
    assert_eq!(delete(&one, "0", 1).await, 1);
    let left = held(&site, &other).await;
    assert!(!left.keys().any(|key| key.contains(&id(1)) && !key.contains(" M#")), "{left:?}");
}

/// Each kind of change is paused after the check of the caller's permissions and before the write.
/// In the meantime, another request deletes the trace and creates it again in another experiment.
#[tokio::test]
async fn a_change_that_was_granted_in_one_experiment_is_none_in_another() {
    type Change = fn(&str) -> (&'static str, String, Value);
    let changes: [Change; 8] = [
        |_| ("PATCH", format!("{ALL}/{}/tags", id(1)), json!({ "key": "mine", "value": "v" })),
        |_| ("DELETE", format!("{ALL}/{}/tags", id(1)), json!({ "key": "k" })),
        |run| {
            let link = json!({ "run_id": run, "trace_ids": [id(1)] });
            ("POST", "/api/2.0/mlflow/traces/link-to-run".to_owned(), link)
        },
        |_| {
            let prompts = json!({ "trace_id": id(1), "prompt_versions": [{ "name": "p", "version": "1" }] });
            ("POST", "/api/2.0/mlflow/traces/link-prompts".to_owned(), prompts)
        },
        |_| {
            let said = json!({ "assessment_name": "n", "feedback": { "value": 1 } });
            ("POST", format!("{ALL}/{}/assessments", id(1)), json!({ "assessment": said }))
        },
        |_| {
            let said = json!({ "assessment": { "rationale": "mine" }, "update_mask": "rationale" });
            ("PATCH", format!("{ALL}/{}/assessments/a-1", id(1)), said)
        },
        |_| ("DELETE", format!("{ALL}/{}/assessments/a-1", id(1)), json!({})),
        |_| ("PATCH", format!("/api/2.0/mlflow/traces/{}", id(1)), json!({ "timestamp_ms": 1, "status": "ERROR" })),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let site = Site::new().await;
        let rival = site.other().await;
        let other = rival.experiment("other").await;
        let run = rival.post("runs/create", json!({ "experiment_id": "0" })).await.ok();
        let said = |experiment: &str| {
            let mut started = info(1, experiment);
            started["tags"] = json!({ "k": "theirs" });
            let assessment = json!({ "assessment_id": "a-1", "assessment_name": "n", "feedback": { "value": 1 } });
            started["assessments"] = json!([assessment]);
            started
        };
        rival.start(&said("0")).await.ok();
        let (method, path, body) = change(run["run"]["info"]["run_id"].as_str().unwrap());
        let mut gate = site.faults.pause_after("GetItem", 1);
        let server = site.server.clone();
        let call = tokio::spawn(async move { server.call_at(method, &path, body.to_string()).await });
        gate.reached().await;
        assert_eq!(delete(&rival, "0", 1).await, 1);
        rival.start(&said(&other)).await.ok();
        let before = held(&site, "none").await;
        gate.open();
        let answer: TestResponse = call.await.unwrap();
        assert!(
            answer.status == 404 || (answer.status == 200 && number == 2),
            "{number}: {} {}",
            answer.status,
            answer.body
        );
        let after = held(&site, "none").await;
        // The experiment to which the caller was granted access may get one more mark, which has no
        // effect.
        let document = |items: &BTreeMap<String, Value>| items.get(&format!("TRACE#{} T#HEAD", id(1))).cloned();
        assert_eq!(document(&after), document(&before), "{number}");
    }
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
    assert!(refused.contains("would be too large"), "{refused}");
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
