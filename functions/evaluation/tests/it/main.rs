//! The evaluation function as its clients see it, over an engine that throttles, forgets and lags.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod creations;
mod dataset_searches;
mod evaluation_datasets;
mod evaluation_records;
mod generated;
mod scorers;
mod server;

/// A fifth of the time of such tests went to the allocator of libc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
