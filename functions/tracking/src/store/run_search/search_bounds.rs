//! Bounds that decide how a search treats long experiments.

/// Limits of a search in long experiments with many unindexed runs. Tests use smaller values.
#[derive(Clone, Copy, Debug)]
pub struct SearchBounds {
    /// Number of marks above which an experiment is considered long. Reading the marked runs of a
    /// long experiment would cost at least one read unit per run.
    pub marks: usize,
    /// Number of the newest runs that a search of a long experiment reads first, if its order is
    /// newest first. Each run costs at most three read units. If fewer than one in four pass the
    /// filter and the page is not full, the search starts over and uses the lists of the index.
    pub newest: usize,
}

impl Default for SearchBounds {
    fn default() -> Self {
        Self { marks: 5_000, newest: 1_000 }
    }
}
