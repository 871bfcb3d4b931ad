//! Permanent deletion, tested on a private table with concurrent clients and a running indexer.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod archived_histories;
mod concurrent_removals;
mod entity_policy;
mod full_partition;
mod history_policy;
mod rejected_removals;
mod removal;
mod test_server;

/// Replaces libc's allocator, because tests with an embedded engine spent a fifth of their time in
/// it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
