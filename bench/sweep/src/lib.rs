//! A model of a load: many jobs that log to one experiment, through the real functions and the real indexer.
//!
//! The functions run over the embedded engine within DynamoDB's limits (`embedded_engine::limits`), and on a virtual clock
//! ([`clock::Simulation`]), which stands still while anything is computed: so what a sandbox waits for, a lease, a pause before the next
//! attempt, a minute of the indexer, takes its time, and nothing takes longer because this machine is slow.
//!
//! [`scenario`] says what the jobs do, [`world`] is what they meet: [`sandboxes`] that answer their calls, a [`network`] that takes its time,
//! and a [`feed`] that carries the stream to the indexer. [`lag`], [`partitions`] and [`tally`] count; [`page`] writes what was counted.

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

/// Why a model ended early.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
/// What may end a model.
pub type Result<T, E = Failure> = std::result::Result<T, E>;
