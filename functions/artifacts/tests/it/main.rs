//! Tests the artifacts function through its HTTP API, over a private directory.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod generated;
mod path_permissions;
mod path_traversal;
mod proxy;
mod run_artifacts;
mod server;
