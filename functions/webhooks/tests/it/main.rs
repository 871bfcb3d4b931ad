//! The webhooks function as its clients see it.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod changes;
mod deleted_workspaces;
mod generated;
mod lists;
mod secrets;
mod server;
mod tests_of_webhooks;

/// Replaces libc's allocator, because tests with an embedded engine spent a fifth of their time in
/// it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
