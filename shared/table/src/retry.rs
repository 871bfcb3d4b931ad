//! Trying again, in one place.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::SdkError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use rand::RngExt;

use crate::failure::{Failure, OperationError, Outcome, Result, classify};

/// Time limits of a single attempt. Without them, a connection that was dropped while the sandbox slept is waited for until the
/// function ends, and nothing is tried again.
#[must_use]
pub fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(1))
        .operation_attempt_timeout(Duration::from_secs(4))
        .build()
}

/// How often and how patiently a request is tried again.
///
/// Every request of this crate may be repeated: updates are conditional or say the same thing twice, transactions carry a
/// token, batches only put and delete.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Attempts in all.
    pub attempts: u32,
    /// Bound of the first pause; it doubles with every attempt.
    pub first_pause: Duration,
    /// Bound of any pause.
    pub longest_pause: Duration,
    /// No attempt begins later than this after the first.
    pub patience: Duration,
    /// How often a change is planned because somebody else was faster: as many clients as may change one entity at the same moment.
    pub changes: u32,
}

impl Default for Retry {
    /// Ten attempts, within six seconds where each is answered at once; within 20 at the most, while a function has 29.
    fn default() -> Self {
        Self {
            attempts: 10,
            first_pause: Duration::from_millis(20),
            longest_pause: Duration::from_millis(1_500),
            patience: Duration::from_secs(15),
            changes: 24,
        }
    }
}

impl Retry {
    /// Waits before attempt `next` (the first is 0, and waits for nothing): a random part of the bound, so that those who
    /// collided spread out.
    pub async fn pause(&self, next: u32) {
        if next == 0 {
            return;
        }
        let bound = self.first_pause.saturating_mul(1 << (next - 1).min(16)).min(self.longest_pause);
        let part: f64 = rand::rng().random();
        tokio::time::sleep(bound.mul_f64(part)).await;
    }

    /// Sends what `request` makes until the outcome is final or the attempts are used up.
    pub(crate) async fn run<T, E, F>(&self, request: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, SdkError<E, HttpResponse>>>,
        E: OperationError,
    {
        self.run_noting(&mut false, request).await
    }

    /// The same. Sets `lost` if the answer to an attempt was lost: then a failure does not mean that nothing happened.
    pub(crate) async fn run_noting<T, E, F>(&self, lost: &mut bool, mut request: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, SdkError<E, HttpResponse>>>,
        E: OperationError,
    {
        let mut last_cause = String::new();
        let begin = Instant::now();
        for attempt in 0..self.attempts {
            if attempt > 0 {
                self.pause(attempt).await;
            }
            if begin.elapsed() > self.patience {
                break;
            }
            let error = match request().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match classify(&error) {
                Outcome::Final(Failure::Refused { item, .. }) => {
                    return Err(Failure::Refused { item, after_lost_answer: *lost });
                }
                Outcome::Final(failure) => return Err(failure),
                Outcome::Busy(cause) => last_cause = cause,
                Outcome::Lost(cause) => {
                    *lost = true;
                    last_cause = cause;
                }
            }
            tracing::debug!(attempt, cause = last_cause, "table request is tried again");
        }
        Err(Failure::Unavailable(last_cause))
    }
}
