//! The registry of skills as its clients see it, over an engine that throttles and loses responses.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod creations;
mod generated;
mod races;
mod server;
mod skills;
mod uploads;

/// Replaces libc's allocator, because such tests spent a fifth of their time in it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
