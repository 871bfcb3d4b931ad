//! Times at which sessions, tokens and confirmations expire.

/// Checks whether a time, in seconds since 1970, has passed.
pub(crate) fn is_over(seconds: i64) -> bool {
    runtime::clock::now_ms() >= seconds.saturating_mul(1_000)
}
