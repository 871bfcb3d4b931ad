//! How often records failed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How often a record comes again that cannot be read, or whose subject fails for another reason than a table that is busy or away.
const RETRIES: u32 = 10;
/// Records whose failures are counted, at most. Where there are more, the count starts again.
const MOST: usize = 10_000;

/// Counts the failures of records, by their numbers, as long as the process lives. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts(Arc<Mutex<HashMap<String, u32>>>);

impl Attempts {
    /// Counts a failure; whether the record is to come again. One that is not is in the log.
    pub(crate) fn goes_on(&self, record: &str) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= MOST {
            failures.clear();
        }
        let failed = failures.entry(record.to_owned()).or_default();
        *failed = failed.saturating_add(1);
        if *failed == RETRIES + 1 {
            // An alarm in `template.yaml` looks for these words.
            tracing::error!(record, "a record is left behind");
        }
        *failed <= RETRIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_comes_again_ten_times() {
        let attempts = Attempts::default();
        for record in ["1", "2"] {
            assert_eq!((0..20).filter(|_| attempts.goes_on(record)).count(), 10);
        }
        for record in 0..3 * MOST {
            assert!(attempts.goes_on(&format!("other {record}")));
        }
        assert!(attempts.0.lock().unwrap().len() <= MOST);
    }
}
