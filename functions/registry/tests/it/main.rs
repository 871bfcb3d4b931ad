//! The registry function as its clients see it, over an engine that throttles, forgets and breaks off.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod aliases;
mod concurrency;
mod creations;
mod deletion;
mod documents;
mod generated;
mod hidden;
mod logged_models;
mod malformed;
mod names;
mod renaming;
mod search;
mod server;

/// A fifth of the time of such tests went to the allocator of libc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
