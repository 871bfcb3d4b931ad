//! The events of calls, while a webhook subscribes to all of them.

use std::collections::BTreeMap;

use entities::webhooks::{StoredEvent, StoredWebhook, WorkspaceSubscriptions, new_webhook_id};
use key_schema::attributes::HOOK;
use key_schema::{ModelKey, rows};
use mlflow_api::Workspace;
use mlflow_api::webhooks::{WebhookEvent, WebhookStatus};
use serde_json::{Value, json};
use table::{Condition, Query, Write};
use test_site::TestResponse;

use crate::server::{Server, Site};

const PROMPT: &str = "mlflow.prompt.is_prompt";

/// Puts a webhook that subscribes to these events.
async fn subscribe(site: &Site, events: &[WebhookEvent]) {
    let workspace = &Workspace::default();
    let webhook = StoredWebhook {
        id: new_webhook_id(),
        name: "hook".to_owned(),
        description: String::new(),
        url: "https://example.com/".to_owned(),
        events: events.to_vec(),
        unknown_events: Vec::new(),
        status: WebhookStatus::Active,
        secret: None,
        created: 1,
        updated: 1,
        changes: 0,
        imported: None,
    };
    let row = site.table.get(&WorkspaceSubscriptions::key(workspace)).await.unwrap();
    let subscriptions = WorkspaceSubscriptions::of(row.as_ref()).with_change(workspace, None, Some(&webhook));
    let put = Write::Put(webhook.item(workspace), Condition::item_missing());
    site.table.transact(&[put, subscriptions]).await.unwrap();
}

/// A site with a webhook, and the events that have been checked.
struct Sent {
    site: Site,
    known: BTreeMap<String, String>,
}

impl Sent {
    async fn with(events: &[WebhookEvent]) -> Self {
        let site = Site::new().await;
        subscribe(&site, events).await;
        Self { site, known: BTreeMap::new() }
    }

    fn server(&self) -> &Server {
        &self.site.server
    }

    /// Returns the bodies of the events that were written since the last call, without their times.
    async fn unchecked(&mut self) -> Vec<String> {
        let mut events = BTreeMap::new();
        for item in self.site.dump().await.into_values().filter(|item| item.get(HOOK.name()).is_some()) {
            let item = self.site.table.get(&test_site::key_of(&item)).await.unwrap().unwrap();
            let event = StoredEvent::of(&item).unwrap();
            assert_eq!((event.webhooks.len(), &event.workspace), (1, &Workspace::default()));
            let body = event.body(&self.site.table).await.unwrap().unwrap();
            events.insert(event.id.to_string(), body);
        }
        let new = events.iter().filter(|(id, _)| !self.known.contains_key(*id));
        let new: Vec<_> = new.map(|(_, body)| without_time(body)).collect();
        self.known = events;
        new
    }

    /// Sends a request that must succeed, and checks which event it has sent: its entity and action,
    /// and its data.
    async fn check(&mut self, answer: TestResponse, expected: Option<(&str, &str)>) {
        answer.ok();
        let expected = expected.map(|(event, data)| {
            let (entity, action) = event.split_once('.').unwrap();
            format!("{{\"entity\": \"{entity}\", \"action\": \"{action}\", \"data\": {data}}}")
        });
        assert_eq!(self.unchecked().await, Vec::from_iter(expected));
    }
}

/// Removes the time from a body, and checks its form.
fn without_time(body: &str) -> String {
    let (before, rest) = body.split_once("\"timestamp\": \"").unwrap();
    let (time, after) = rest.split_once("\", ").unwrap();
    assert!(time.starts_with("20") && time.ends_with("+00:00") && time.as_bytes()[10] == b'T', "{time}");
    before.to_owned() + after
}

#[tokio::test]
async fn each_call_sends_the_event_of_mlflow() {
    let events = &mut Sent::with(WebhookEvent::ALL).await;
    let server = events.server().clone();
    let tags = json!([{ "key": "a", "value": "1" }, { "key": "b", "value": "ü" }, { "key": "a", "value": "2" }]);
    let model = server.post("registered-models/create", json!({ "name": "m", "tags": tags })).await;
    let data = r#"{"name": "m", "tags": {"a": "2", "b": "\u00fc"}, "description": ""}"#;
    events.check(model, Some(("registered_model.created", data))).await;
    let tags = json!([{ "key": PROMPT, "value": "TRUE" }, { "key": "t", "value": "u" }]);
    let new = json!({ "name": "p", "tags": tags, "description": "d" });
    let data = r#"{"name": "p", "tags": {"t": "u"}, "description": "d"}"#;
    events.check(server.post("registered-models/create", new).await, Some(("prompt.created", data))).await;
    let new = json!({ "name": "no", "tags": [{ "key": PROMPT, "value": "false" }] });
    let data = r#"{"name": "no", "tags": {"mlflow.prompt.is_prompt": "false"}, "description": ""}"#;
    events.check(server.post("registered-models/create", new).await, Some(("registered_model.created", data))).await;

    let new = json!({ "name": "m", "source": "s3://b/é", "run_id": "r", "description": "d" });
    let data =
        r#"{"name": "m", "version": "1", "source": "s3://b/\u00e9", "run_id": "r", "tags": {}, "description": "d"}"#;
    events.check(server.post("model-versions/create", new).await, Some(("model_version.created", data))).await;
    let new = json!({ "name": "m", "source": "models:/m/1" });
    let data =
        r#"{"name": "m", "version": "2", "source": "models:/m/1", "run_id": "r", "tags": {}, "description": null}"#;
    events.check(server.post("model-versions/create", new).await, Some(("model_version.created", data))).await;
    let tags = json!([{ "key": PROMPT, "value": "true" }, { "key": "mlflow.prompt.text", "value": "Hi {{x}}" },
        { "key": "_mlflow_prompt_type", "value": "text" }, { "key": "k", "value": "v" }]);
    let new = json!({ "name": "p", "source": "dummy-source", "tags": tags });
    let data = r#"{"name": "p", "version": "1", "template": "Hi {{x}}", "tags": {"k": "v"}, "description": null}"#;
    events.check(server.post("model-versions/create", new).await, Some(("prompt_version.created", data))).await;
    // Without the tag of prompts, the new version is not a version of a prompt, even though the
    // registered model is a prompt.
    let new = json!({ "name": "p", "source": "s3://b/x" });
    let data =
        r#"{"name": "p", "version": "2", "source": "s3://b/x", "run_id": null, "tags": {}, "description": null}"#;
    events.check(server.post("model-versions/create", new).await, Some(("model_version.created", data))).await;
}

#[tokio::test]
async fn tags_and_aliases_send_their_events_again() {
    let events = &mut Sent::with(WebhookEvent::ALL).await;
    let server = events.server().clone();
    let prompt = json!({ "name": "p", "tags": [{ "key": PROMPT, "value": "true" }] });
    server.post("registered-models/create", prompt).await.ok();
    server.model("m").await;
    for name in ["m", "p"] {
        server.version(name).await;
    }
    events.unchecked().await;
    for name in ["m", "p"] {
        let of = |event: &str| {
            if name == "p" { format!("prompt_version_{event}") } else { format!("model_version_{event}") }
        };
        let of_alias =
            |event: &str| if name == "p" { format!("prompt_{event}") } else { format!("model_version_{event}") };
        let long = "x".repeat(3_000);
        for (version, value) in [("1", "v"), ("1", "v"), ("01", ""), ("1", long.as_str()), (" 1", long.as_str())] {
            let set = json!({ "name": name, "version": version, "key": "k", "value": value });
            let data = format!(r#"{{"name": "{name}", "version": "{version}", "key": "k", "value": "{value}"}}"#);
            let answer = server.post("model-versions/set-tag", set).await;
            events.check(answer, Some((&of("tag.set"), &data))).await;
        }
        for key in ["k", "k", "none"] {
            let tag = json!({ "name": name, "version": "1", "key": key });
            let data = format!(r#"{{"name": "{name}", "version": "1", "key": "{key}"}}"#);
            let answer = server.delete("model-versions/delete-tag", tag).await;
            events.check(answer, Some((&of("tag.deleted"), &data))).await;
        }
        for version in ["1", "1", "01"] {
            let alias = json!({ "name": name, "alias": "ä", "version": version });
            let data = format!(r#"{{"name": "{name}", "alias": "\u00e4", "version": "{version}"}}"#);
            let answer = server.post("registered-models/alias", alias).await;
            events.check(answer, Some((&of_alias("alias.created"), &data))).await;
        }
        for _ in 0..2 {
            let data = format!(r#"{{"name": "{name}", "alias": "\u00e4"}}"#);
            let answer = server.delete("registered-models/alias", json!({ "name": name, "alias": "ä" })).await;
            events.check(answer, Some((&of_alias("alias.deleted"), &data))).await;
        }
        for value in ["v", "v", long.as_str()] {
            let data = format!(r#"{{"name": "p", "key": "k", "value": "{value}"}}"#);
            let expected = (name == "p").then_some(("prompt_tag.set", data.as_str()));
            let tag = json!({ "name": name, "key": "k", "value": value });
            events.check(server.post("registered-models/set-tag", tag).await, expected).await;
        }
        for key in ["k", "k", "none"] {
            let data = format!(r#"{{"name": "p", "key": "{key}"}}"#);
            let expected = (name == "p").then_some(("prompt_tag.deleted", data.as_str()));
            let tag = json!({ "name": name, "key": key });
            events.check(server.delete("registered-models/delete-tag", tag).await, expected).await;
        }
    }
    let model = server.model_of("m").await.ok()["registered_model"].clone();
    assert_eq!((model.get("tags"), model.get("aliases")), (None, None));
}

#[tokio::test]
async fn the_tag_of_prompts_sends_an_event_while_it_is_true() {
    let events = &mut Sent::with(WebhookEvent::ALL).await;
    let server = events.server().clone();
    server.model("m").await;
    events.unchecked().await;
    for value in ["true", "True"] {
        let data = format!(r#"{{"name": "m", "key": "{PROMPT}", "value": "{value}"}}"#);
        let tag = json!({ "name": "m", "key": PROMPT, "value": value });
        events.check(server.post("registered-models/set-tag", tag).await, Some(("prompt_tag.set", &data))).await;
    }
    let tag = json!({ "name": "m", "key": PROMPT, "value": "false" });
    events.check(server.post("registered-models/set-tag", tag).await, None).await;
    events
        .check(server.delete("registered-models/delete-tag", json!({ "name": "m", "key": PROMPT })).await, None)
        .await;
}

#[tokio::test]
async fn other_calls_and_refused_ones_send_nothing() {
    let events = &mut Sent::with(WebhookEvent::ALL).await;
    let server = events.server().clone();
    server.model("m").await;
    server.version("m").await;
    events.unchecked().await;
    events.check(server.transition("m", 1, "Production", true).await, None).await;
    events.check(server.rename("m", "n").await, None).await;
    let update = json!({ "name": "n", "version": "1", "description": "d" });
    events.check(server.call("PATCH", "model-versions/update", update).await, None).await;
    let update = json!({ "name": "n", "description": "d" });
    events.check(server.call("PATCH", "registered-models/update", update).await, None).await;
    for (path, body) in [
        ("registered-models/create", json!({ "name": "n" })),
        ("registered-models/set-tag", json!({ "name": "none", "key": "k" })),
        ("model-versions/set-tag", json!({ "name": "n", "version": "7", "key": "k" })),
        ("registered-models/alias", json!({ "name": "n", "alias": "a", "version": "7" })),
        ("model-versions/create", json!({ "name": "none", "source": "s3://b/x" })),
    ] {
        assert_ne!(server.post(path, body).await.status, 200, "{path}");
    }
    assert_eq!(events.unchecked().await, Vec::<String>::new());
    // The event of a renamed model has the new name.
    let tag = json!({ "name": "n", "version": "1", "key": "k", "value": "v" });
    let data = r#"{"name": "n", "version": "1", "key": "k", "value": "v"}"#;
    events.check(server.post("model-versions/set-tag", tag).await, Some(("model_version_tag.set", data))).await;
    events.check(server.delete("model-versions/delete", json!({ "name": "n", "version": "1" })).await, None).await;
    events.check(server.delete("registered-models/delete", json!({ "name": "n" })).await, None).await;
}

#[tokio::test]
async fn a_call_without_subscribers_writes_what_it_would_without_webhooks() {
    let events = &mut Sent::with(&[WebhookEvent::PromptCreated]).await;
    let server = events.server().clone();
    server.model("m").await;
    server.version("m").await;
    server.set_alias("m", "a", 1).await.ok();
    assert_eq!(events.unchecked().await, Vec::<String>::new());
}

/// If a webhook subscribes to the event, even the largest creation is possible, because the event
/// is stored in parts.
#[tokio::test]
async fn the_largest_creation_sends_an_event() {
    let events = &mut Sent::with(WebhookEvent::ALL).await;
    let server = events.server().clone();
    let tags: Vec<_> =
        (0..30).map(|number| json!({ "key": format!("k{number}"), "value": "é".repeat(50_000) })).collect();
    let new = json!({ "name": "m", "tags": tags });
    server.post("registered-models/create", new).await.ok();
    let new = events.unchecked().await;
    let body: Value = serde_json::from_str(&new[0]).unwrap();
    assert_eq!((new.len(), body["data"]["tags"]["k29"].as_str().unwrap().chars().count()), (1, 50_000));
    // In the body of the event, each character is escaped by six bytes.
    assert!(new[0].len() > 9_000_000);
    let key = ModelKey::of(&Workspace::default(), "m");
    let parts = parts_of(&events.site, &key).await;
    assert!(parts > 20, "{parts}");
}

/// Returns the number of parts of a model's events.
async fn parts_of(site: &Site, model: &ModelKey) -> usize {
    let all = Query::of(rows::WebhookEventPart::all(model));
    let items = site.table.query(all).await.unwrap();
    items.iter().filter(|item| rows::WebhookEventPart::parse(&item.key().unwrap()).is_some()).count()
}
