//! Access to the webhooks in the table.

mod sealing;
#[expect(clippy::module_inception, reason = "the store itself, which the other files use")]
mod store;
mod target_url;
mod webhook_changes;
mod webhook_reads;
mod webhook_test;

pub use store::Store;
pub use webhook_changes::{NewWebhook, WebhookChange};
