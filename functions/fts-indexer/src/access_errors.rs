//! Logs that the table cannot be accessed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use entities::Moment;

/// Minimum time between two log lines about an inaccessible table. Failed batches are delivered
/// again several times per second.
const INTERVAL: Duration = Duration::from_mins(1);

/// A logger that writes at most one line per minute about an inaccessible table. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessErrors(Arc<Mutex<Option<Moment>>>);

impl AccessErrors {
    /// Logs why the table cannot be accessed, unless that was logged less than a minute ago.
    pub(crate) fn log(&self, cause: &str) {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_some_and(|logged| logged.age() < INTERVAL) {
            return;
        }
        *logged = Some(Moment::now());
        tracing::error!(cause, "the table cannot be used, and indexing waits");
    }
}
