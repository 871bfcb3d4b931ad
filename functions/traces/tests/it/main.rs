//! Tests the traces function over the embedded engine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod adding;
mod assessments;
mod blocks;
mod bounds;
mod client_requests;
mod collector;
mod consumer;
mod deletion;
mod early;
mod expiry;
mod exporters;
mod exports;
mod figures;
mod generated;
mod guarded;
mod marks;
mod packer;
mod packing;
mod partitions;
mod recorded;
mod removal;
mod search;
mod server;
mod traces;

/// With libc's allocator, these tests spend a fifth of their time in it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
