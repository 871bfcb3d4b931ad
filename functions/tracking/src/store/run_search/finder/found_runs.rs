//! Runs that a search found.

use mlflow_api::tracking;
use search::SortKey;

/// The runs that a search found for its page, in order.
pub(crate) struct FoundRuns {
    pub(crate) runs: Vec<FoundRun>,
    /// Whether more runs follow after these.
    pub(crate) has_more: bool,
}

/// A run that a search found.
pub(crate) struct FoundRun {
    pub(crate) key: SortKey,
    pub(crate) run: tracking::Run,
}
