//! Limits the size of a list of scorers. The limit is needed because MLflow's lists of scorers have
//! no pages.

use entities::documents::content;
use std::sync::atomic::{AtomicUsize, Ordering};

use mlflow_api::Result;
use mlflow_api::response_size::{MAX_JSON_BYTES, too_long};
use table::Item;

/// Total size of the contents in a list, computed before the contents are read.
#[derive(Default)]
pub(super) struct ListSize(AtomicUsize);

impl ListSize {
    /// Adds the size of the scorer that a row describes.
    ///
    /// # Errors
    /// Returns an error if the list would exceed the maximum size of a response.
    pub(super) fn add(&self, row: &Item) -> Result<()> {
        let bytes = content::size(row) + row.size();
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > MAX_JSON_BYTES {
            Err(too_long("The list of scorers", MAX_JSON_BYTES))
        } else {
            Ok(())
        }
    }
}
