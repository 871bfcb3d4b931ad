//! Counts how often records failed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of retries of a record that cannot be parsed, or that fails for a reason other than the
/// table being throttled, unavailable or inaccessible.
const MAX_RETRIES: u32 = 10;
/// Maximum number of records whose failures are counted. When it is exceeded, all counters are
/// reset.
const MAX_RECORDS: usize = 10_000;

/// Counters of failures, by sequence number of the record, kept for the lifetime of the process.
/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordFailures(Arc<Mutex<HashMap<String, u32>>>);

impl RecordFailures {
    /// Counts a failure of a record, and returns whether the record is to be retried. When a record
    /// has exhausted its retries, this is logged.
    pub(crate) fn should_retry(&self, record: &str) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= MAX_RECORDS {
            failures.clear();
        }
        let failed = failures.entry(record.to_owned()).or_default();
        *failed = failed.saturating_add(1);
        if *failed == MAX_RETRIES + 1 {
            // A metric filter in `template.yaml` matches this message.
            tracing::error!(record, "a record is left behind");
        }
        *failed <= MAX_RETRIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_comes_again_ten_times() {
        let attempts = RecordFailures::default();
        for record in ["1", "2"] {
            assert_eq!((0..20).filter(|_| attempts.should_retry(record)).count(), 10);
        }
        for record in 0..3 * MAX_RECORDS {
            assert!(attempts.should_retry(&format!("other {record}")));
        }
        assert!(attempts.0.lock().unwrap().len() <= MAX_RECORDS);
    }
}
