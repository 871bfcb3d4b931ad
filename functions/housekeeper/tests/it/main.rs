//! Permanent deletion, tested on a private table with concurrent clients and a running indexer.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod full;
mod histories;
mod lab;
mod policy;
mod races;
mod refusals;
mod removal;

/// The libc allocator took a fifth of the time of such tests.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
