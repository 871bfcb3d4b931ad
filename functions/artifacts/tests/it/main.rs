//! Tests the artifacts function through its HTTP API, over a private directory.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod attacks;
mod generated;
mod needs;
mod proxy;
mod runs;
mod server;
