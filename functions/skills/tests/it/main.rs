//! Tests of the registry of skills through its HTTP API, over an engine that throttles requests and
//! loses responses.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod creations;
mod generated;
mod races;
mod server;
mod skills;
mod uploads;

/// Replaces libc's allocator, because tests with an embedded engine spent a fifth of their time in
/// it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
