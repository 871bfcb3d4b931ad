//! Runs that a search found.

use mlflow_api::tracking;
use search::SortKey;

/// The runs that a search found for its page, in order.
pub(super) struct FoundRuns {
    pub(super) runs: Vec<FoundRun>,
    /// Whether there are more runs after them.
    pub(super) has_more: bool,
}

/// A run that was found.
pub(super) struct FoundRun {
    pub(super) key: SortKey,
    pub(super) run: tracking::Run,
}
