//! Samples of webhooks. The host of the webhooks' URL is an IP address, so that no name is
//! resolved.

use serde_json::{Value, json};

use crate::route_samples::sample_client::{SampleClient, V2, text};

async fn created(walk: &mut SampleClient, name: &str) -> String {
    let events = json!([{ "entity": "MODEL_VERSION", "action": "CREATED" }]);
    let new = json!({ "name": name, "url": "https://93.184.216.34/hook", "events": events, "description": "d" });
    text(&walk.send(&format!("POST {V2}/webhooks"), &[], new).await, "/webhook/webhook_id")
}

pub(crate) async fn writes(walk: &mut SampleClient) {
    let webhook = created(walk, "written").await;
    let (one, ids) = (format!("{V2}/webhooks/{{webhook_id}}"), [webhook.as_str()]);
    walk.send(&format!("PATCH {one}"), &ids, json!({ "status": "DISABLED", "description": "" })).await;
    walk.send(&format!("POST {one}/test"), &ids, json!({})).await;
    walk.send(&format!("DELETE {one}"), &ids, json!({})).await;
}

pub(crate) async fn reads(walk: &mut SampleClient) {
    let webhook = created(walk, "read").await;
    let requests = [format!("GET {V2}/webhooks"), format!("GET {V2}/webhooks/{{webhook_id={webhook}}}")];
    walk.read(requests.into_iter().map(|request| (request, Value::Null)).collect()).await;
}
