//! Tests the GraphQL endpoint over a private table.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod answers;
mod generated;
mod needs;
