//! The registry of MCP servers as its clients see it, over an engine that throttles and loses
//! responses.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod creations;
mod generated;
mod races;
mod searches;
mod server;
mod servers;
mod versions;

/// Replaces libc's allocator, because tests with an embedded engine spent a fifth of their time in
/// it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
