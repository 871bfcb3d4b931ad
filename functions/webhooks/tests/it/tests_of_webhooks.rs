//! Tests of webhooks, with a deliverer that sends nothing.

use std::sync::{Arc, Mutex};

use entities::webhooks::{DelivererFailure, DeliveryRequest, TestOutcome, TestRequest, WebhookDeliverer};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::server::{Site, new_webhook};

/// A deliverer that records the requests and returns the same outcome each time.
#[derive(Debug)]
struct Recorder {
    requests: Mutex<Vec<TestRequest>>,
    outcome: Result<TestOutcome, DelivererFailure>,
}

impl WebhookDeliverer for Recorder {
    fn deliver(&self, _: DeliveryRequest) -> BoxFuture<'_, Result<(), DelivererFailure>> {
        Box::pin(async { Ok(()) })
    }

    fn test(&self, request: TestRequest) -> BoxFuture<'_, Result<TestOutcome, DelivererFailure>> {
        self.requests.lock().unwrap().push(request);
        let outcome = self.outcome.clone();
        Box::pin(async { outcome })
    }
}

async fn tested(outcome: Result<TestOutcome, DelivererFailure>, body: Value) -> (test_site::TestResponse, TestRequest) {
    let recorder = Arc::new(Recorder { requests: Mutex::default(), outcome });
    let deliverer = recorder.clone();
    let site = Site::with(|store| store.with_deliverer(deliverer).with_workspaces(true)).await;
    let id = site.server.create(new_webhook("hook")).await;
    let answer = site.server.post(&format!("webhooks/{id}/test"), body).await;
    let request = recorder.requests.lock().unwrap().pop().unwrap();
    assert_eq!((&request.webhook, request.workspace.as_str()), (&id, "default"));
    (answer, request)
}

#[tokio::test]
async fn a_test_sends_an_example_and_shows_the_response() {
    let outcome = TestOutcome { status: Some(204), body: Some("ok".to_owned()), error: None };
    let (answer, request) = tested(Ok(outcome), json!({})).await;
    let expected = json!({ "result": { "success": true, "response_status": 204, "response_body": "ok" } });
    assert_eq!(answer.ok(), expected);
    assert!(request.body.starts_with(r#"{"entity": "model_version", "action": "created", "timestamp": ""#));
    assert!(request.body.ends_with(r#""description": "An example model version"}, "workspace": "default"}"#));
}

#[tokio::test]
async fn a_test_sends_the_named_event() {
    let outcome = TestOutcome { status: Some(500), ..TestOutcome::default() };
    let event = json!({ "event": { "entity": "PROMPT_ALIAS", "action": "DELETED" } });
    let (answer, request) = tested(Ok(outcome), event).await;
    assert_eq!(answer.ok(), json!({ "result": { "success": false, "response_status": 500 } }));
    assert!(request.body.starts_with(r#"{"entity": "prompt_alias", "action": "deleted", "#));
}

#[tokio::test]
async fn a_test_without_a_response_says_why() {
    let outcome = TestOutcome { error: Some("cannot connect: refused".to_owned()), ..TestOutcome::default() };
    let (answer, _) = tested(Ok(outcome), json!({})).await;
    let message = "Failed to test webhook: cannot connect: refused";
    assert_eq!(answer.ok(), json!({ "result": { "success": false, "error_message": message } }));
    let (answer, _) = tested(Err(DelivererFailure("internal".to_owned())), json!({})).await;
    assert!(!answer.refused(503, "TEMPORARILY_UNAVAILABLE").contains("internal"));
}
