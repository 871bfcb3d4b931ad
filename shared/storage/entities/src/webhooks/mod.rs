//! Webhooks in the table: the webhooks of a workspace, their subscriptions, the rows of events,
//! their pending deliveries, and the invocation of the function that delivers them.
//! `docs/design/webhooks.md` describes how an event gets from a call to the receivers.

mod deliverer;
mod delivery_queue;
mod delivery_rows;
mod event_row;
mod lambda_deliverer;
mod removal;
mod stored_webhook;
mod subscriptions;

pub use deliverer::{DelivererFailure, DeliveryRequest, TestOutcome, TestRequest, WebhookDeliverer};
pub use delivery_queue::{QueueLease, StoredQueue};
pub use delivery_rows::{QueueId, StoredDelivery};
pub use event_row::{EVENT_RETENTION_SECONDS, MAX_INLINE_BODY_BYTES, NewEvent, StoredEvent, new_event_id};
pub use lambda_deliverer::LambdaDeliverer;
pub use removal::rows_of;
pub use stored_webhook::{StoredWebhook, WEBHOOK_SECRET_PURPOSE, new_webhook_id};
pub use subscriptions::{SUBSCRIPTION_LEASE, Subscribers, Subscriptions, WorkspaceSubscriptions};
