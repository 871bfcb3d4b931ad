//! Every write of all functions while the table throttles, loses answers, breaks off and leaves batches half done.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing")]

mod expiry;
mod model;
mod packing;
mod removal;
#[allow(dead_code, reason = "each test binary uses a part of it")]
#[path = "../it/site.rs"]
mod site;
mod sweep;
mod whole;
mod workspaces;
