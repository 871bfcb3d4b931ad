//! Time: the current time, elapsed time, sleeping, and long computations.
//!
//! For a simulation, such as a load model, a thread has a simulated clock: [`SimulatedClock`]. All
//! other threads use the clocks of the machine.

mod simulation;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use simulation::SimulatedClock;
use tokio::task::JoinError;

/// Returns the current time in milliseconds since 1970, the unit of MLflow's times.
#[must_use]
pub fn now_ms() -> i64 {
    let elapsed = Moment::now().time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}

/// Sleeps for a duration.
pub async fn sleep(duration: Duration) {
    match simulation::sleep(duration) {
        Some(sleep) => sleep.await,
        None => tokio::time::sleep(duration).await,
    }
}

/// Runs a long computation on a blocking thread, so that it does not hold up other tasks. In a
/// simulation, it runs immediately and takes no simulated time.
///
/// # Errors
/// The computation panicked.
pub async fn aside<T: Send + 'static>(compute: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    if simulation::now().is_some() {
        return Ok(compute());
    }
    tokio::task::spawn_blocking(compute).await
}

/// Size in bytes from which a computation takes milliseconds.
const LONG_COMPUTATION_BYTES: usize = 64 << 10;

/// Runs a computation over this number of bytes. Uses [`aside`] if the number is large enough for
/// the computation to take long.
///
/// # Errors
/// The computation panicked in [`aside`].
pub async fn aside_from<T: Send + 'static>(
    bytes: usize,
    compute: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if bytes < LONG_COMPUTATION_BYTES { Ok(compute()) } else { aside(compute).await }
}

/// A point in time of this process, from which elapsed time is measured.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    // Both clocks are needed, because freezing a sandbox may stop one of them.
    instant: Instant,
    time: SystemTime,
}

impl Moment {
    /// Returns the current time.
    #[must_use]
    pub fn now() -> Self {
        simulation::now().unwrap_or_else(Self::of_the_machine)
    }

    /// Returns the time that has elapsed since this moment: the longer of the times that the two
    /// clocks have measured. If the wall clock was set back, returns [`Duration::MAX`].
    #[must_use]
    pub fn age(&self) -> Duration {
        let now = Self::now();
        let by_time = now.time.duration_since(self.time).unwrap_or(Duration::MAX);
        now.instant.saturating_duration_since(self.instant).max(by_time)
    }

    fn of_the_machine() -> Self {
        Self { instant: Instant::now(), time: SystemTime::now() }
    }

    /// Returns the moment that is later by a duration.
    fn after(self, duration: Duration) -> Self {
        Self { instant: self.instant + duration, time: self.time + duration }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_stood_still_makes_nothing_younger() {
        let second = Duration::from_secs(1);
        let slept = Moment { instant: Instant::now(), time: SystemTime::now() - second };
        assert!(slept.age() >= second);
        let set_back = Moment { instant: Instant::now(), time: SystemTime::now() + second };
        assert_eq!(set_back.age(), Duration::MAX);
    }
}
