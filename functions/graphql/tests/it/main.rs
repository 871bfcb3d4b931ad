//! Tests the GraphQL endpoint over a private table.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod generated;
mod query_permissions;
mod query_results;
