//! The responses of the endpoints of webhooks.

use serde::Serialize;

use super::event::{WebhookEvent, WebhookStatus};

/// A webhook in a response. Its secret is never returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WebhookEntry {
    /// The id.
    pub webhook_id: String,
    /// The name.
    pub name: String,
    /// The description. Omitted if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The address that events are sent to.
    pub url: String,
    /// The events that the webhook subscribes to, in order.
    pub events: Vec<WebhookEvent>,
    /// The status.
    pub status: WebhookStatus,
    /// The creation time, in ms.
    pub creation_timestamp: i64,
    /// The time of the last change, in ms.
    pub last_updated_timestamp: i64,
}

/// The response of `POST webhooks`, and of `GET` and `PATCH webhooks/{webhook_id}`.
#[derive(Debug, Serialize)]
pub struct WebhookResponse {
    /// The webhook.
    pub webhook: WebhookEntry,
}

/// The response of `GET webhooks`.
#[derive(Debug, Serialize)]
pub struct ListWebhooksResponse {
    /// The webhooks of the page, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookEntry>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// The response of `POST webhooks/{webhook_id}/test`.
#[derive(Debug, Serialize)]
pub struct TestWebhookResponse {
    /// The outcome.
    pub result: WebhookTestResult,
}

/// The outcome of sending a test event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WebhookTestResult {
    /// Whether the receiver's status was below 400.
    pub success: bool,
    /// The receiver's HTTP status, if it responded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<i32>,
    /// The beginning of the receiver's response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_body: Option<String>,
    /// The reason why the receiver did not respond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}
