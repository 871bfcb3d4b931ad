//! A token bucket.

use std::time::Duration;

/// Units that are left. They come back at a rate, up to the amount of a burst.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    left: f64,
    /// When that was counted; nothing for a bucket that was not used yet.
    counted: Option<Duration>,
}

impl Bucket {
    /// Whether a request is admitted, which it is while any unit is left. Its consumption is known,
    /// and [taken](Self::take), afterwards. So the last request may take more than was left, and
    /// the next ones wait for that.
    pub(super) fn admits(&mut self, now: Duration, rate: f64, burst: Duration) -> bool {
        let most = rate * burst.as_secs_f64().max(1.0);
        self.left = match self.counted {
            // It was idle.
            None => most,
            Some(counted) => (self.left + rate * now.saturating_sub(counted).as_secs_f64()).min(most),
        };
        self.counted = Some(now);
        self.left > 0.0
    }

    /// Takes the units that a request consumed.
    pub(super) fn take(&mut self, units: f64) {
        self.left -= units;
    }
}
