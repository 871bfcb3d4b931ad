//! A test environment: a table in the test's own process, the injection of faults into requests to
//! it, a client for routers over the table, and an authorizer whose decisions the test defines.
//!
//! This crate does not depend on any function: each test provides the routers and their content.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "tests fail by panicking"
)]

pub mod creations;
mod dump;
mod fault_samples;
pub mod hash_collisions;
pub mod ledger;
pub mod route_samples;
pub mod sample_metrics;
pub mod sample_traces;
mod test_authorizer;
mod test_client;
mod test_environment;

pub use dump::{TableChanges, TableDump, key_of};
pub use fault_samples::{BACKGROUND_FAULTS, all_troubles, sample, tried, writes};
pub use test_authorizer::{TestAuthorizer, everybody};
pub use test_client::{PrefixedTestClient, TestClient, TestResponse};
pub use test_environment::{ROOT, TABLE, TestEnvironment};
