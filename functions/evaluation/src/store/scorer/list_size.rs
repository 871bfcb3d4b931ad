//! How long a list of scorers gets. MLflow's lists of them have no pages.

use documents::content;
use std::sync::atomic::{AtomicUsize, Ordering};

use mlflow_api::Result;
use mlflow_api::answer_size::{LONGEST, too_long};
use table::Item;

/// Adds up the contents in a list, before they are read.
#[derive(Default)]
pub(super) struct ListSize(AtomicUsize);

impl ListSize {
    /// Counts the scorer of a row.
    ///
    /// # Errors
    /// With it, the list is longer than any answer may be.
    pub(super) fn add(&self, row: &Item) -> Result<()> {
        let bytes = content::size(row) + row.size();
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > LONGEST { Err(too_long("The list of scorers", LONGEST)) } else { Ok(()) }
    }
}
