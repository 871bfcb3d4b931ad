//! Tests of the evaluation function through its HTTP API, over an engine that throttles requests,
//! loses responses and delays changes of its indexes.
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

/// Replaces libc's allocator, because tests with an embedded engine spent a fifth of their time in
/// it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
