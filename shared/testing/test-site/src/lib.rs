//! A test environment: a table in the test's own process, faults in front of it, and requests to a
//! router over it. Also an authorizer that refuses requests by a rule.
//!
//! This crate does not depend on any function: each test provides the routers and their content.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "tests fail by panicking"
)]

mod api;
pub mod colliding;
pub mod creations;
mod dump;
mod judge;
pub mod ledger;
mod sample;
pub mod samples;
mod site;

pub use api::{Answer, Api};
pub use dump::{Changes, Dump, key_of};
pub use judge::{Judge, everybody};
pub use sample::{TROUBLES, all_troubles, sample, tried, writes};
pub use site::{ROOT, Site, TABLE};
