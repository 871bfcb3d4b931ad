//! What jobs do.

use std::time::Duration;

/// What jobs do.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// So many runs log a batch of metrics each, again and again. They begin one after another, within `ramp`.
    Long {
        /// Runs.
        runs: u32,
        /// Metrics in each batch.
        metrics: usize,
        /// The time between two batches of a run.
        every: Duration,
        /// Within which they begin.
        ramp: Duration,
    },
    /// So many runs a second are created, log one batch, and end.
    Short {
        /// Runs a second.
        per_second: u32,
        /// Metrics, params and tags in the batch.
        batch: [usize; 3],
    },
}
