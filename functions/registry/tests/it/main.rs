//! Tests of the registry function through its HTTP API, over an engine that throttles requests,
//! loses responses and cuts off requests.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod aliases;
mod concurrency;
mod creations;
mod deletion;
mod documents;
mod generated;
mod hidden_run_ids;
mod logged_models;
mod long_names;
mod rejected_requests;
mod renaming;
mod search;
mod server;
mod webhook_events;

/// Replaces libc's allocator, because tests with an embedded engine spent a fifth of their time in
/// it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
