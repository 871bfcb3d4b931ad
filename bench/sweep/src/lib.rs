//! A load model: many jobs that log to one experiment, through the real functions and the real
//! indexer.
//!
//! The functions run over the embedded engine within DynamoDB's limits (`embedded_engine::limits`),
//! on a simulated clock ([`runtime::clock::Simulation`]) that stands still during computations. So whatever
//! a sandbox waits for, such as a lease, the pause before a retry or a tick of the indexer, takes
//! its time, and nothing takes longer because this machine is slow.
//!
//! `scenario.rs` defines what the jobs do, and `world.rs` their environment: sandboxes that answer
//! their calls (`sandboxes.rs`), a network with latency (`network.rs`), and the delivery of the
//! stream to the indexer (`feed.rs`). `lag.rs`, `partitions.rs` and `tally.rs` measure, and
//! `page.rs` writes the results.

mod chart;
mod feed;
mod jobs;
mod lag;
mod load;
mod machine;
mod network;
mod page;
mod partitions;
mod sandboxes;
mod scenario;
mod tally;
mod traces;
mod world;

pub use load::Load;
pub use page::write;
pub use scenario::{Measured, Scenario};
pub use tally::Call;

/// The reason why a model was aborted.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
/// The result of an operation that may abort the model.
pub type Result<T, E = Failure> = std::result::Result<T, E>;
