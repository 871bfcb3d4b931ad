//! Requests about webhooks (`webhooks.proto`). The id of a webhook is in the path.

use crate::messages;
use crate::webhooks::{WebhookEventMessage, WebhookStatus};

messages! {
    /// The request message of `POST webhooks`.
    CreateWebhook {
        name: String [Text, Required],
        url: String [Text, Required],
        events: Vec<WebhookEventMessage> [List, Required],
        description: String [Text],
        secret: String [Text],
        status: Option<WebhookStatus> [Text],
    }
    /// The request message of `GET webhooks`.
    ListWebhooks {
        max_results: i32 [Integer],
        page_token: String [Text],
    }
    /// The request message of `PATCH webhooks/{webhook_id}`. MLflow treats an empty name, an empty
    /// URL and an empty list of events as not sent. An empty description removes the description,
    /// and an empty secret ends signing.
    UpdateWebhook {
        name: String [Text],
        description: Option<String> [Text],
        url: String [Text],
        events: Vec<WebhookEventMessage> [List],
        secret: Option<String> [Text],
        status: Option<WebhookStatus> [Text],
    }
    /// The request message of `POST webhooks/{webhook_id}/test`.
    TestWebhook {
        event: Option<WebhookEventMessage>,
    }
}
