//! Times, in ms since 1970, as MLflow keeps them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
#[must_use]
pub fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}
