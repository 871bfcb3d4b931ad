//! Webhooks (`webhooks.proto`): events, the messages of the endpoints, limits, and the bodies of
//! deliveries.

mod body;
mod event;
mod example;
mod limits;
mod responses;
#[cfg(test)]
mod tests;

pub use body::{EventData, event_body, timestamp_text};
pub use event::{WebhookAction, WebhookEntity, WebhookEvent, WebhookEventMessage, WebhookStatus, read_events};
pub use example::example_body;
pub use limits::{
    DEFAULT_PAGE_SIZE, MAX_DESCRIPTION_LENGTH, MAX_PAGE_SIZE, MAX_SECRET_LENGTH, MAX_WEBHOOKS, check_description,
    check_events, check_name, check_secret, check_url_text, page_size,
};
pub use responses::{ListWebhooksResponse, TestWebhookResponse, WebhookEntry, WebhookResponse, WebhookTestResult};
