//! Removing for good, over a table of the test's own, while clients and the indexer run.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod full;
mod histories;
mod lab;
mod policy;
mod races;
mod refusals;
mod removal;

/// A fifth of the time of such tests went to the allocator of libc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
