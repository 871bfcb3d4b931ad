//! Tests the traces function over the embedded engine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod add_only_callers;
mod archival;
mod assessments;
mod blocks;
mod client_requests;
mod collector;
mod concurrent_exporters;
mod counting_archive;
mod deletion;
mod early_links;
mod expansion_limits;
mod experiment_isolation;
mod expiry;
mod generated;
mod marked_spans;
mod marks;
mod packing_races;
mod partitions;
mod recorded_metrics;
mod recorded_searches;
mod removal;
mod search;
mod search_while_packing;
mod server;
mod span_exports;
mod stream_consumer;
mod test_packer;
mod traces;

/// Replaces libc's allocator, because tests with an embedded engine spent a fifth of their time in
/// it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
