//! Trying again, in one place.

use std::time::Duration;

use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::SdkError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use clock::Moment;
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
///
/// Lost connections, lost answers and conflicts of transactions are rare or soon over, so that waiting for their end is worth it. A
/// throttled request is different: the table has too much to do, and a caller that waits here keeps a sandbox waiting
/// (`docs/adr/0025-throttling.md`).
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Attempts in all.
    pub attempts: u32,
    /// Bound of the first pause; it doubles with every attempt.
    pub first_pause: Duration,
    /// Bound of any pause.
    pub longest_pause: Duration,
    /// Attempts that may be throttled; `attempts`, if that is less.
    pub throttled_attempts: u32,
    /// Bound of the pause after the first attempt that was throttled; it doubles with every further one, up to `longest_pause`.
    pub first_throttled_pause: Duration,
    /// No attempt begins later than this after the first.
    pub patience: Duration,
    /// How often a change is planned because somebody else was faster: as many clients as may change one entity at the same moment.
    pub changes: u32,
}

impl Default for Retry {
    /// For a caller that somebody waits for. Ten attempts, within six seconds where each is answered at once; within 20 at the most, while
    /// a function has 29. Three of them may be throttled, within 0.3 seconds where each is answered at once.
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

impl Retry {
    /// The same for work that nobody waits for: all attempts may be throttled.
    #[must_use]
    pub fn in_background(self) -> Self {
        Self { throttled_attempts: self.attempts, ..self }
    }

    /// Waits before attempt `next` (the first is 0, and waits for nothing): a random part of the bound, so that those who
    /// collided spread out.
    pub async fn pause(&self, next: u32) {
        self.wait(self.first_pause, next).await;
    }

    /// Whether this many throttled attempts are enough.
    pub(crate) fn gives_up_throttled(&self, throttled: u32) -> bool {
        throttled >= self.throttled_attempts.min(self.attempts)
    }

    /// Waits after this many throttled attempts.
    pub(crate) async fn pause_throttled(&self, throttled: u32) {
        self.wait(self.first_throttled_pause, throttled).await;
    }

    async fn wait(&self, first: Duration, next: u32) {
        if next == 0 {
            return;
        }
        let bound = first.saturating_mul(1 << (next - 1).min(16)).min(self.longest_pause);
        let part: f64 = rand::rng().random();
        clock::sleep(bound.mul_f64(part)).await;
    }

    /// Sends `request` until the outcome is final or the attempts are used up.
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
