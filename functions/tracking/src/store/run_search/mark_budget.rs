//! The number of marks that a search may read.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of marks that a search reads, which takes eight requests and 1,700 read units. A
/// mark records that a run has changed since it was indexed. The limit may be exceeded slightly,
/// because experiments are read concurrently. An experiment whose marks, or whose individually
/// deleted runs, exceed the remaining budget is read as if it had no index.
pub(super) const MAX_MARKS: usize = 64_000;

/// The remaining number of marks that a search may read, over all its experiments.
#[derive(Debug)]
pub(super) struct MarkBudget(AtomicUsize);

impl Default for MarkBudget {
    fn default() -> Self {
        Self::of(MAX_MARKS)
    }
}

impl MarkBudget {
    /// Creates a budget of this many marks.
    pub(super) fn of(marks: usize) -> Self {
        Self(AtomicUsize::new(marks))
    }

    /// Returns the number of marks that may still be read.
    pub(super) fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Subtracts marks that were read from the budget.
    pub(super) fn take(&self, marks: usize) {
        // The result is ignored because `fetch_update` fails only if the closure returns `None`.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(marks)));
    }
}
