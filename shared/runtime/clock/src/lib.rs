//! What time it is, how long ago something was, waiting, and computing that takes long.
//!
//! A model of a load has a clock of its own for its thread: [`Simulation`]. All other code has the
//! clocks of the machine.

mod simulation;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use simulation::Simulation;
use tokio::task::JoinError;

/// Milliseconds since 1970, as MLflow keeps times.
#[must_use]
pub fn now_ms() -> i64 {
    let elapsed = Moment::now().time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}

/// Waits for so long.
pub async fn sleep(duration: Duration) {
    match simulation::sleep(duration) {
        Some(sleep) => sleep.await,
        None => tokio::time::sleep(duration).await,
    }
}

/// Runs a long computation on a thread for that, as an async worker has others to serve. In a
/// simulation it runs at once, and takes none of the simulated time.
///
/// # Errors
/// If it panicked.
pub async fn aside<T: Send + 'static>(compute: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    if simulation::now().is_some() {
        return Ok(compute());
    }
    tokio::task::spawn_blocking(compute).await
}

/// Bytes from which on computing with them takes milliseconds.
const LONG: usize = 64 << 10;

/// Computes something of so many bytes: [`aside`], where that takes long.
///
/// # Errors
/// If it panicked there.
pub async fn aside_from<T: Send + 'static>(
    bytes: usize,
    compute: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if bytes < LONG { Ok(compute()) } else { aside(compute).await }
}

/// A moment of this process, to say later how long ago it was.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    // Both clocks: a frozen sandbox may stop one of them.
    instant: Instant,
    time: SystemTime,
}

impl Moment {
    /// This moment.
    #[must_use]
    pub fn now() -> Self {
        simulation::now().unwrap_or_else(Self::of_the_machine)
    }

    /// How long ago it was, by whichever clock says more; for ever, where the wall clock was set back.
    #[must_use]
    pub fn age(&self) -> Duration {
        let now = Self::now();
        let by_time = now.time.duration_since(self.time).unwrap_or(Duration::MAX);
        now.instant.saturating_duration_since(self.instant).max(by_time)
    }

    fn of_the_machine() -> Self {
        Self { instant: Instant::now(), time: SystemTime::now() }
    }

    /// So much later.
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
