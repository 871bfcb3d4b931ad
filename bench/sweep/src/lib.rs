//! A load model: many jobs that log to one experiment, through the real functions and the real
//! indexer.
//!
//! The functions run over the embedded engine within DynamoDB's limits (`embedded_engine::limits`),
//! on a simulated clock ([`runtime::clock::SimulatedClock`]) that stands still during computations.
//! Waiting, for example for a lease, for the pause before a retry or for a tick of the indexer,
//! takes its real duration in simulated time, and the speed of this machine has no effect. The
//! duration of computations is predicted by a rule (`compute.rs`), and added after everything that
//! a call waits for.
//!
//! `scenario.rs` defines what the jobs do, and `simulated_stack.rs` their environment: sandboxes that answer
//! their calls (`lambda_sandboxes.rs`) behind a gateway (`gateway.rs`), a network with latency (`network.rs`), and the delivery of the
//! stream to the indexer (`stream_delivery.rs`). `indexing_lag.rs`, `partitions.rs` and `call_counts.rs` measure, and
//! `results_page.rs` writes the results.

mod call_counts;
mod chart;
mod compute;
mod executor;
mod gateway;
mod indexing_lag;
mod lambda_sandboxes;
mod load;
mod network;
mod partitions;
mod results_page;
mod run_clients;
mod scenario;
mod simulated_stack;
mod stream_delivery;
mod trace_clients;

pub use call_counts::CallKind;
pub use compute::CpuRule;
pub use gateway::RequestLimit;
pub use load::Load;
pub use results_page::{processor_time, write};
pub use scenario::{Scenario, ScenarioResult};

/// The reason why a model was aborted.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
/// The result of an operation that may abort the model.
pub type Result<T, E = Failure> = std::result::Result<T, E>;
