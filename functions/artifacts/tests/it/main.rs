//! Tests the artifacts function through its HTTP API, over a private directory.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod attacks;
mod generated;
mod needs;
mod proxy;
mod runs;
mod server;
