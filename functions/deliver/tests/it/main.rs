//! Delivery of events, with the indexer, over a private table and in simulated time.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod broken_rows;
mod endings;
mod failures;
mod generated;
mod interruptions;
mod receiver;
mod world;

/// Replaces libc's allocator, because tests with an embedded engine spent a fifth of their time in
/// it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
