//! The evaluation function as its clients see it, over an engine that throttles, loses responses
//! and lags behind.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod creations;
mod dataset_searches;
mod evaluation_datasets;
mod evaluation_records;
mod generated;
mod issues;
mod review_costs;
mod reviews;
mod scorers;
mod server;

/// Replaces libc's allocator, because such tests spent a fifth of their time in it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
