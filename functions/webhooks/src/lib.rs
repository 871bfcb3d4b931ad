//! The webhooks function: the webhooks of a workspace, which administrators create, change, test and
//! delete.
//!
//! [`routes`] lists the whole API on one page. An endpoint parses its request and calls one method of
//! the [`store`], which accesses the table and contains no HTTP.
//!
//! A **webhook** is an address that receives events of the model registry. This function neither
//! writes events nor sends them: calls of the registry write them (`store/call_event.rs` in
//! `functions/registry`), and the function `deliver` sends them. For a test of a webhook, this
//! function builds an example event and has `deliver` send it (`entities::webhooks`).
//!
//! # How a webhook is created
//!
//! `POST webhooks` → `endpoints::Create` → `Store::webhook_create` (`store/webhook_changes.rs`).
//!
//! 1. The name, the URL and the events are checked, in MLflow's order. The host of the URL is
//!    resolved, and all of its addresses have to be public (`store/target_url.rs`). The addresses are
//!    checked again whenever an event is sent, because the host may resolve to others by then.
//! 2. The secret is sealed, bound to the workspace and the webhook (`store/sealing.rs`). No response
//!    contains it.
//! 3. One transaction puts the webhook and changes the row with the subscriptions of the workspace,
//!    on condition that the row has not changed.
//! 4. The response is sent after a second. By then, every process that runs calls of the registry
//!    has read the subscriptions again.

mod declaration;
mod endpoints;
mod routes;
pub mod store;

pub use declaration::DOMAIN;
pub use routes::routes;

/// Returns the domain's router over a given store. For tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::FunctionContext::new(store.clone(), authorizer))
}
