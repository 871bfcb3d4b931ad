//! The GraphQL endpoint over a table of the test's own.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod answers;
mod generated;
mod needs;
