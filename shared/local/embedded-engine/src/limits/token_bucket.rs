//! A token bucket.

use std::time::Duration;

/// A bucket of remaining units. They are refilled at a constant rate, up to the size of a burst.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenBucket {
    left: f64,
    /// Time of the last refill. `None` if the bucket has not been used yet.
    counted: Option<Duration>,
}

impl TokenBucket {
    /// Refills the bucket and returns whether a request is admitted, which is the case if any units
    /// are left. The consumption of a request is only known, and [taken](Self::take), afterwards.
    /// The last admitted request may therefore consume more than was left. Later requests are then
    /// rejected until the deficit has been refilled.
    pub(super) fn admits(&mut self, now: Duration, rate: f64, burst: Duration) -> bool {
        let most = rate * burst.as_secs_f64().max(1.0);
        self.left = match self.counted {
            // A bucket that has not been used yet is full.
            None => most,
            Some(counted) => (self.left + rate * now.saturating_sub(counted).as_secs_f64()).min(most),
        };
        self.counted = Some(now);
        self.left > 0.0
    }

    /// Takes the units that a request has consumed.
    pub(super) fn take(&mut self, units: f64) {
        self.left -= units;
    }
}
