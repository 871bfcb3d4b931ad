//! Times in the unit of expirations.

/// Returns the current time in seconds since 1970.
pub(super) fn now_seconds() -> i64 {
    runtime::clock::now_ms() / 1_000
}
