//! Tests assessments of traces.

use serde_json::{Value, json};

use crate::server::{ALL, Server, Site, TestResponse, id, info};

async fn call(server: &Server, method: &str, path: &str, body: Value) -> TestResponse {
    server.call_at(method, &format!("{ALL}/{}/assessments{path}", id(1)), body.to_string()).await
}

async fn create(server: &Server, assessment: Value) -> Value {
    call(server, "POST", "", json!({ "assessment": assessment })).await.ok()["assessment"].take()
}

#[tokio::test]
async fn one_overrides_another_until_it_is_deleted() {
    let site = Site::new().await;
    let server = &site.server;
    server.start(&info(1, "0")).await.ok();
    let feedback = json!({ "assessment_name": "good", "feedback": { "value": 1 }, "rationale": "r", "source": { "source_type": "HUMAN", "source_id": "me" } });
    let first = create(server, feedback.clone()).await;
    assert_eq!(
        (&first["feedback"], &first["valid"], &first["trace_id"]),
        (&json!({ "value": 1.0 }), &json!(true), &json!(id(1)))
    );
    let path = format!("/{}", first["assessment_id"].as_str().unwrap());
    let mut second = feedback;
    second["overrides"] = first["assessment_id"].clone();
    let second = create(server, second).await;
    let valid = async || call(server, "GET", &path, json!({})).await.ok()["assessment"]["valid"].clone();
    assert_eq!(valid().await, false);
    assert_eq!(server.info(1).await["assessments"].as_array().unwrap().len(), 2);
    let other = format!("/{}", second["assessment_id"].as_str().unwrap());
    for _ in 0..2 {
        call(server, "DELETE", &other, json!({})).await.ok();
    }
    assert_eq!(valid().await, true);
    call(server, "GET", &other, json!({})).await.missing();
}

#[tokio::test]
async fn values_keep_their_form() {
    let site = Site::new().await;
    site.server.start(&info(1, "0")).await.ok();
    for (sent, kept) in [
        (json!({ "feedback": { "value": [1, "a", null] } }), json!({ "feedback": { "value": [1.0, "a", null] } })),
        (json!({ "feedback": {} }), json!({ "feedback": { "value": null } })),
        (
            json!({ "feedback": { "error": { "errorCode": "E", "stack_trace": "" } } }),
            json!({ "feedback": { "value": null, "error": { "error_code": "E" } } }),
        ),
        (json!({ "expectation": { "value": "x" } }), json!({ "expectation": { "value": "x" } })),
        (
            json!({ "expectation": { "serialized_value": { "serialization_format": "JSON_FORMAT", "value": "{\"a\":[1]}" } } }),
            json!({ "expectation": { "serialized_value": { "serialization_format": "JSON_FORMAT", "value": "{\"a\": [1]}" } } }),
        ),
        (json!({ "issue": { "issue_name": "i" } }), json!({ "issue": { "issue_name": "i" } })),
    ] {
        let created = create(&site.server, sent).await;
        let kind = kept.as_object().unwrap().keys().next().unwrap();
        assert_eq!(created[kind], kept[kind]);
    }
    for assessment in [json!({}), json!({ "expectation": {} })] {
        call(&site.server, "POST", "", json!({ "assessment": assessment }))
            .await
            .refused(400, "INVALID_PARAMETER_VALUE");
    }
}

#[tokio::test]
async fn changes_are_of_the_same_kind() {
    let site = Site::new().await;
    site.server.start(&info(1, "0")).await.ok();
    let named = json!({ "assessment_id": "a-1", "assessment_name": "n", "feedback": { "value": true }, "metadata": { "a": "1" } });
    create(&site.server, named.clone()).await;
    // Repeating the request has no effect, but a different assessment under this id is rejected.
    create(&site.server, named).await;
    let change = json!({ "assessment": { "assessment_name": "m", "metadata": { "b": "2" }, "rationale": "no" }, "update_mask": "assessmentName,metadata" });
    let changed = call(&site.server, "PATCH", "/a-1", change).await.ok()["assessment"].take();
    assert_eq!((&changed["assessment_name"], &changed["metadata"]), (&json!("m"), &json!({ "a": "1", "b": "2" })));
    assert!(changed.get("rationale").is_none());
    let change = json!({ "assessment": { "expectation": { "value": 1 } }, "update_mask": "expectation" });
    let refused = call(&site.server, "PATCH", "/a-1", change).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert_eq!(refused, "Cannot update expectation value on a Feedback assessment.");
}

/// MLflow's client sends a value that is not a scalar in one of two forms: as a text that contains
/// JSON, or unchanged.
#[tokio::test]
async fn values_may_be_deep_and_hold_half_a_surrogate_pair() {
    let site = Site::new().await;
    let server = &site.server;
    server.start(&info(1, "0")).await.ok();
    let path = format!("{ALL}/{}/assessments", id(1));
    let expectation = |value: &str| {
        let value = json!({ "serialization_format": "JSON_FORMAT", "value": value });
        json!({ "assessment": { "assessment_name": "n", "expectation": { "serialized_value": value } } }).to_string()
    };
    let said =
        |answer: &Value| answer["assessment"]["expectation"]["serialized_value"]["value"].as_str().unwrap().to_owned();
    let kept = server.call_at("POST", &path, expectation(r#"{"a": "x\ud83e"}"#)).await.ok();
    assert_eq!(said(&kept), r#"{"a": "x\ufffd"}"#);
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [200, 1_000] {
        let kept = server.call_at("POST", &path, expectation(&deep(depth))).await.ok();
        assert_eq!(said(&kept), deep(depth));
    }
    for depth in [1_001, 100_000] {
        let refused =
            server.call_at("POST", &path, expectation(&deep(depth))).await.refused(400, "INVALID_PARAMETER_VALUE");
        assert_eq!(refused, "The value of an expectation has more than 1000 levels of nested arrays and objects.");
    }
    assert_eq!(server.info(1).await["assessments"].as_array().map(Vec::len), Some(3));
    let feedback = |value: &str| {
        format!(
            r#"{{"assessment": {{"assessment_name": "n", "assessment_id": "a-7", "feedback": {{"value": {value}}}}}}}"#
        )
    };
    // The message nests the value in three objects, so this is the deepest value that is accepted.
    server.call_at("POST", &path, feedback(&deep(997))).await.ok();
    let read = server.get_at(&format!("{path}/a-7"), &[]).await;
    assert_eq!(read.status, 200);
    server.call_at("POST", &path, feedback(&deep(998))).await.refused(400, "INVALID_PARAMETER_VALUE");
    // The stored value can be read and searched.
    assert_eq!(server.get_at(&format!("{ALL}/{}", id(1)), &[]).await.status, 200);
    let places = json!([{ "mlflow_experiment": { "experiment_id": "0" } }]);
    let search = json!({ "locations": places, "filter": "feedback.n != 'x'" }).to_string();
    assert_eq!(server.call_at("POST", &format!("{ALL}/search"), search).await.status, 200);
}
