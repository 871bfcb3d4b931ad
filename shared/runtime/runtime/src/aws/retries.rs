//! Retries with exponential backoff.

use std::time::{Duration, Instant};

/// Maximum number of attempts.
const MAX_ATTEMPTS: u32 = 6;
/// Time after the first attempt from which no further attempt starts. It leaves time before the
/// function's timeout of 29 s.
const MAX_RETRY_DURATION: Duration = Duration::from_secs(12);
/// Upper bound of the first pause. The bound doubles with every attempt.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// The attempts of one request.
#[derive(Debug)]
pub struct RetryAttempts {
    made: u32,
    begin: Instant,
}

impl RetryAttempts {
    /// Returns the attempts of a request that starts now.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it starts a clock")]
    pub fn new() -> Self {
        Self { made: 0, begin: Instant::now() }
    }

    /// Waits before the next attempt, and returns whether there is another attempt. The pause is a
    /// random part of the current bound, so that clients that were throttled at the same time do
    /// not retry at the same time.
    pub async fn next(&mut self) -> bool {
        if self.made > 0 {
            let bound = INITIAL_BACKOFF.saturating_mul(1 << (self.made - 1).min(16));
            tokio::time::sleep(bound.mul_f64(rand::random::<f64>())).await;
        }
        self.made += 1;
        self.made <= MAX_ATTEMPTS && self.begin.elapsed() <= MAX_RETRY_DURATION
    }
}
