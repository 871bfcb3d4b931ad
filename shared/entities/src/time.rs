//! Times, in ms since 1970, as MLflow keeps them; and how long ago something was read.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
#[must_use]
pub fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
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
        Self { instant: Instant::now(), time: SystemTime::now() }
    }

    /// How long ago it was, by whichever clock says more; for ever, where the wall clock was set back.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.instant.elapsed().max(self.time.elapsed().unwrap_or(Duration::MAX))
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
