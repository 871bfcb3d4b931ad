//! Retries with exponential backoff.

use std::time::{Duration, Instant};

/// Maximum number of attempts.
const MAX_ATTEMPTS: u32 = 6;
/// No attempt starts later than this after the first. The function's timeout is 29 s.
const MAX_RETRY_DURATION: Duration = Duration::from_secs(12);
/// Upper bound of the first pause. Doubles with every attempt.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// The attempts of one request.
pub(crate) struct RetryAttempts {
    made: u32,
    begin: Instant,
}

impl RetryAttempts {
    pub(crate) fn new() -> Self {
        Self { made: 0, begin: Instant::now() }
    }

    /// Waits before the next attempt, for a random part of the bound, so that clients that were
    /// throttled together spread out. Returns whether there is another attempt.
    pub(crate) async fn next(&mut self) -> bool {
        if self.made > 0 {
            let bound = INITIAL_BACKOFF.saturating_mul(1 << (self.made - 1).min(16));
            tokio::time::sleep(bound.mul_f64(rand::random::<f64>())).await;
        }
        self.made += 1;
        self.made <= MAX_ATTEMPTS && self.begin.elapsed() <= MAX_RETRY_DURATION
    }
}
