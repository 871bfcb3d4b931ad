//! The artifacts function as its clients see it, over a directory of the test's own.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod attacks;
mod generated;
mod needs;
mod proxy;
mod runs;
mod server;
