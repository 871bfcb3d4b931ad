//! The retry policy of all requests.

use std::time::Duration;

use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::SdkError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use rand::RngExt;
use runtime::clock::Moment;

use crate::failure::{Failure, OperationError, Outcome, Result, classify};

/// Returns the timeouts of a single attempt. Without them, a request on a connection that was
/// dropped while the sandbox was frozen would hang until the function times out, and would never be
/// retried.
#[must_use]
pub fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(1))
        .operation_attempt_timeout(Duration::from_secs(4))
        .build()
}

/// Limits on the number of attempts and the pauses between them.
///
/// Every request of this crate is safe to repeat: updates are conditional or idempotent,
/// transactions carry a token, and batches contain only puts and deletes.
///
/// Lost connections, lost responses and transaction conflicts are rare or short, so it is worth
/// waiting until they are over. Throttling is different: it means that the table is overloaded, and
/// a caller that waits occupies a sandbox (`docs/adr/0025-throttling.md`).
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Maximum number of attempts.
    pub attempts: u32,
    /// Upper bound of the first pause. It doubles with every attempt.
    pub first_pause: Duration,
    /// Upper bound of all pauses.
    pub longest_pause: Duration,
    /// Maximum number of throttled attempts. `attempts` applies as well if it is lower.
    pub throttled_attempts: u32,
    /// Upper bound of the pause after the first throttled attempt. It doubles with each further
    /// throttled attempt, up to `longest_pause`.
    pub first_throttled_pause: Duration,
    /// Time limit for starting another attempt, counted from the first one.
    pub patience: Duration,
    /// Maximum number of times that a change is planned when writes conflict. It limits how many
    /// clients can change one entity concurrently.
    pub changes: u32,
}

impl Default for RetryPolicy {
    /// Returns the limits for requests that a client is waiting for. With ten attempts, a call
    /// gives up within 6 s if every attempt fails immediately, and after 20 s in the worst case,
    /// well before a function's timeout of 29 s. With three throttled attempts, it gives up within
    /// 0.3 s if each fails immediately.
    fn default() -> Self {
        Self {
            attempts: 10,
            first_pause: Duration::from_millis(20),
            longest_pause: Duration::from_millis(1_500),
            throttled_attempts: 3,
            first_throttled_pause: Duration::from_millis(100),
            patience: Duration::from_secs(15),
            changes: 24,
        }
    }
}

impl RetryPolicy {
    /// Returns the limits for background work. They allow as many throttled attempts as attempts
    /// that fail for other reasons.
    #[must_use]
    pub fn in_background(self) -> Self {
        Self { throttled_attempts: self.attempts, ..self }
    }

    /// Waits before attempt `next`, counted from 0. The first attempt does not wait. The pause is a
    /// random part of its upper bound, so that colliding callers spread out.
    pub async fn pause(&self, next: u32) {
        self.wait(self.first_pause, next).await;
    }

    /// Returns whether to give up after this number of throttled attempts.
    pub(crate) fn gives_up_throttled(&self, throttled: u32) -> bool {
        throttled >= self.throttled_attempts.min(self.attempts)
    }

    /// Waits before the next attempt, after this number of throttled attempts.
    pub(crate) async fn pause_throttled(&self, throttled: u32) {
        self.wait(self.first_throttled_pause, throttled).await;
    }

    async fn wait(&self, first: Duration, next: u32) {
        if next == 0 {
            return;
        }
        let bound = first.saturating_mul(1 << (next - 1).min(16)).min(self.longest_pause);
        let part: f64 = rand::rng().random();
        runtime::clock::sleep(bound.mul_f64(part)).await;
    }

    /// Sends `request` until the outcome is final or the attempts are exhausted.
    pub(crate) async fn run<T, E, F>(&self, request: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, SdkError<E, HttpResponse>>>,
        E: OperationError,
    {
        self.run_noting(&mut false, request).await
    }

    /// Sends `request` until the outcome is final or the attempts are exhausted. Sets `lost` if the
    /// response to an attempt was lost, because a failure then does not mean that nothing was
    /// written.
    pub(crate) async fn run_noting<T, E, F>(&self, lost: &mut bool, mut request: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, SdkError<E, HttpResponse>>>,
        E: OperationError,
    {
        let begin = Moment::now();
        let (mut attempts, mut throttled) = (0, 0);
        loop {
            let error = match request().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            attempts += 1;
            let failure = match classify(&error) {
                Outcome::Final(Failure::Refused { item, .. }) => {
                    return Err(Failure::Refused { item, after_lost_answer: *lost });
                }
                Outcome::Final(failure) => return Err(failure),
                Outcome::Throttled(cause) => {
                    throttled += 1;
                    Failure::Throttled(cause)
                }
                Outcome::Busy(cause) => Failure::Unavailable(cause),
                Outcome::Lost(cause) => {
                    *lost = true;
                    Failure::Unavailable(cause)
                }
            };
            tracing::debug!(attempts, ?failure, "a request to the table failed");
            if attempts >= self.attempts || self.gives_up_throttled(throttled) {
                return Err(failure);
            }
            match failure {
                Failure::Throttled(_) => self.pause_throttled(throttled).await,
                _ => self.pause(attempts).await,
            }
            if begin.age() > self.patience {
                return Err(failure);
            }
        }
    }
}
