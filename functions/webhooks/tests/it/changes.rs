//! Creating, changing and deleting webhooks, and the resulting subscriptions.

use entities::webhooks::WorkspaceSubscriptions;
use mlflow_api::Workspace;
use mlflow_api::webhooks::WebhookEvent;
use serde_json::{Value, json};
use test_site::TestClient;
use test_site::creations::{Creation, CreationSetup};

use crate::server::{Site, new_webhook};

/// Returns the number of webhooks in the workspace, and the ids of those that subscribe to an
/// event.
async fn subscribers(site: &Site, event: WebhookEvent) -> (u32, Vec<String>) {
    let row = site.table.get(&WorkspaceSubscriptions::key(&Workspace::default())).await.unwrap();
    let subscriptions = WorkspaceSubscriptions::of(row.as_ref());
    let subscribers = subscriptions.subscribers();
    (subscriptions.count(), subscribers.of(event).iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn a_webhook_is_created_changed_and_deleted() {
    let site = Site::new().await;
    let server = &site.server;
    let (created, set) = (WebhookEvent::ModelVersionCreated, WebhookEvent::PromptTagSet);
    let first = server.create(new_webhook("first")).await;
    let mut disabled = new_webhook("second");
    disabled["status"] = "DISABLED".into();
    disabled["description"] = "d".into();
    let second = server.create(disabled).await;
    assert_eq!(subscribers(&site, created).await, (2, vec![first.clone()]));

    let unchanged = server.get(&format!("webhooks/{second}"), &[]).await.ok()["webhook"].clone();
    let mut patched = server.update(&second, json!({ "name": "", "url": "", "events": [], "description": null })).await;
    patched["last_updated_timestamp"] = unchanged["last_updated_timestamp"].clone();
    assert_eq!(patched, unchanged);
    let events =
        json!([{ "entity": "PROMPT_TAG", "action": "SET" }, { "entity": "MODEL_VERSION", "action": "CREATED" }]);
    let patched = server.update(&second, json!({ "status": "ACTIVE", "events": events, "description": "" })).await;
    assert_eq!((&patched["events"][1], patched.get("description")), (&events[0], None), "in MLflow's order");
    let mut both = vec![first.clone(), second.clone()];
    both.sort();
    assert_eq!(subscribers(&site, created).await, (2, both));
    assert_eq!(subscribers(&site, set).await, (2, vec![second.clone()]));
    server.update(&first, json!({ "status": "DISABLED" })).await;
    assert_eq!(subscribers(&site, created).await, (2, vec![second.clone()]));

    server.call("DELETE", &format!("webhooks/{second}"), json!({})).await.ok();
    assert_eq!(subscribers(&site, created).await, (1, Vec::new()));
    for (method, path) in [("GET", ""), ("DELETE", ""), ("PATCH", ""), ("POST", "/test")] {
        let message = server
            .call(method, &format!("webhooks/{second}{path}"), json!({}))
            .await
            .refused(404, "RESOURCE_DOES_NOT_EXIST");
        assert_eq!(message, format!("Webhook with ID {second} not found."));
    }
    let message = server.get("webhooks/none", &[]).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    assert_eq!(message, "Webhook with ID none not found.");
}

#[tokio::test]
async fn a_workspace_has_a_limited_number_of_webhooks() {
    let site = Site::new().await;
    let server = &site.server;
    let mut ids = Vec::new();
    for number in 0..100 {
        ids.push(server.create(new_webhook(&format!("hook{number}"))).await);
    }
    let message = server.post("webhooks", new_webhook("another")).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert!(message.starts_with("A workspace has at most 100 webhooks."), "{message}");
    server.call("DELETE", &format!("webhooks/{}", ids[7]), json!({})).await.ok();
    server.create(new_webhook("another")).await;
}

#[tokio::test]
async fn invalid_webhooks_are_refused_with_the_messages_of_mlflow() {
    let site = Site::new().await;
    let created = json!([{ "entity": "PROMPT", "action": "CREATED" }]);
    for (field, value, expected) in [
        ("name", json!("a b"), "Webhook name 'a b' is invalid. It must start"),
        ("url", json!(" "), "Webhook URL cannot be empty or just whitespace: ' '"),
        ("url", json!("http://example.com"), "Invalid webhook URL scheme: 'http'. Allowed schemes are: https."),
        ("url", json!("x"), "Invalid webhook URL scheme: ''. Allowed schemes are: https."),
        ("url", json!("https:///x"), "Webhook URL must include a hostname: 'https:///x'"),
        ("url", json!("https:x"), "Webhook URL must include a hostname: 'https:x'"),
        ("url", json!("https://u:p@example.com"), "Webhook URL must not contain a user name or a password."),
        (
            "url",
            json!("https://127.0.0.1/x"),
            "Webhook URL must not resolve to a non-public IP address. '127.0.0.1' resolves to 127.0.0.1.",
        ),
        (
            "url",
            json!("https://[::1]:8/x"),
            "Webhook URL must not resolve to a non-public IP address. '::1' resolves to ::1.",
        ),
        ("url", json!(format!("https://a/{}", "x".repeat(3_000))), "The URL of a webhook must be at most 2048 bytes"),
        ("events", json!([]), "Webhook events must be a non-empty list of WebhookEvent objects: []."),
        ("events", json!([{}]), "Invalid webhook event."),
        ("events", json!([created[0], created[0]]), "Webhook events must be different, but 'prompt.created' is"),
        ("description", json!("d".repeat(1_001)), "The description of a webhook must be at most 1000 characters"),
        ("secret", json!("s".repeat(1_001)), "The secret of a webhook must be at most 1000 bytes"),
    ] {
        let mut new = new_webhook("hook");
        new[field] = value;
        let message = site.server.post("webhooks", new).await.refused(400, "INVALID_PARAMETER_VALUE");
        assert!(message.starts_with(expected), "{message}");
    }
    assert_eq!(site.server.get("webhooks", &[]).await.ok(), json!({}));
}

/// If the response makes the client retry, nothing may have been created. Otherwise, the retry
/// would create a second webhook.
#[tokio::test]
async fn a_creation_with_faults_creates_at_most_one_webhook() {
    let check = Creation {
        path: "2.0/mlflow/webhooks",
        count: |dump| vec![dump.values().filter(|item| item.get("url").is_some()).count()],
        adds: &[1],
    };
    check
        .check(async || {
            let site = Site::new().await;
            let (faulty, other) = (TestClient::clone(&site.impatient()), TestClient::clone(&site.other()));
            CreationSetup { faulty, other, body: new_webhook("hook"), site: test_site::TestEnvironment::clone(&site) }
        })
        .await;
}

/// Concurrent changes of several webhooks are all contained in the subscriptions.
#[tokio::test]
async fn concurrent_changes_do_not_lose_subscriptions() {
    let site = Site::new().await;
    let server = &site.server;
    let ids = futures::future::join_all((0..8).map(|number| server.create(new_webhook(&format!("h{number}"))))).await;
    assert_eq!(subscribers(&site, WebhookEvent::ModelVersionCreated).await.1.len(), 8);
    let half = ids.iter().step_by(2).map(|id| server.update(id, json!({ "status": "DISABLED" })));
    let _: Vec<Value> = futures::future::join_all(half).await;
    assert_eq!(subscribers(&site, WebhookEvent::ModelVersionCreated).await, {
        let mut left: Vec<_> = ids.iter().skip(1).step_by(2).cloned().collect();
        left.sort();
        (8, left)
    });
}
