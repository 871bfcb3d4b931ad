//! The load that jobs cause.

use std::time::Duration;

use crate::call_counts::CallKind;

/// Interval between two searches of the same kind, which makes ten searches of each kind per
/// minute.
pub(crate) const SEARCH_INTERVAL: Duration = Duration::from_secs(6);

/// The load that jobs cause.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// Long runs, each of which repeatedly logs a batch of metrics. They start one after another,
    /// within `ramp`.
    Long {
        /// Number of runs.
        runs: u32,
        /// Number of metrics in each batch.
        metrics: usize,
        /// Interval between two batches of a run.
        every: Duration,
        /// Time within which the runs start.
        ramp: Duration,
    },
    /// Short runs, which are created, log one batch, and end.
    Short {
        /// Number of runs per second.
        per_second: u32,
        /// Number of metrics, params and tags in the batch.
        batch: [usize; 3],
    },
    /// Processes that export traces. Once per second, each process exports the traces that it has
    /// gathered.
    Traces {
        /// Number of traces per second, from all processes.
        per_second: u32,
        /// Number of processes.
        exporters: u32,
        /// Number of spans in a trace.
        spans: usize,
        /// Number of partitions for the traces of the previous day. The day that is measured starts
        /// with the same number of partitions.
        partitions: u32,
    },
}

impl Load {
    /// Returns the kinds of searches that users make while the jobs run: one for the latest
    /// entities, and one with a condition or an order.
    #[must_use]
    pub fn searches(self) -> [CallKind; 2] {
        match self {
            Self::Long { .. } | Self::Short { .. } => [CallKind::Latest, CallKind::ByMetric],
            Self::Traces { .. } => [CallKind::LatestTraces, CallKind::TracesByTag],
        }
    }

    /// Returns the name of the function that serves the load.
    #[must_use]
    pub fn function(self) -> &'static str {
        match self {
            Self::Long { .. } | Self::Short { .. } => "tracking",
            Self::Traces { .. } => "traces",
        }
    }
}
