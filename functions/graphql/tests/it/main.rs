//! Tests the GraphQL endpoint over a private table.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod answers;
mod generated;
mod needs;
