//! What jobs do.

use std::time::Duration;

use crate::tally::Call;

/// The time between two searches of a kind: ten a minute.
pub(crate) const SEARCHES: Duration = Duration::from_secs(6);

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
    /// So many processes export traces, each once a second what it has gathered.
    Traces {
        /// Traces a second, of all together.
        per_second: u32,
        /// Processes.
        exporters: u32,
        /// Spans of a trace.
        spans: usize,
        /// Partitions of the day before: a day begins with as many.
        partitions: u32,
    },
}

impl Load {
    /// What users search for meanwhile: the latest, and something that has to be looked for.
    #[must_use]
    pub fn searches(self) -> [Call; 2] {
        match self {
            Self::Long { .. } | Self::Short { .. } => [Call::Latest, Call::ByMetric],
            Self::Traces { .. } => [Call::LatestTraces, Call::TracesByTag],
        }
    }

    /// The function that answers.
    #[must_use]
    pub fn function(self) -> &'static str {
        match self {
            Self::Long { .. } | Self::Short { .. } => "tracking",
            Self::Traces { .. } => "traces",
        }
    }
}
