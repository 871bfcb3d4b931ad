//! When a failed delivery is attempted again.

use std::time::Duration;

const MINUTE: Duration = Duration::from_mins(1);
/// Longest delay between two attempts, including delays that a receiver requests.
const MAX_DELAY: Duration = Duration::from_hours(1);
/// How long after it became pending a delivery is still attempted. A delivery that fails after this
/// time is given up.
pub(crate) const MAX_AGE: Duration = Duration::from_hours(24);

/// Returns the delay after a number of failed attempts: 1, 2, 4, 8, 16, 32 and 60 minutes, or the
/// delay that the receiver has requested, if it is longer, but at most an hour.
pub(crate) fn delay(failed_attempts: u32, retry_after: Option<Duration>) -> Duration {
    let doubled = MINUTE * 2_u32.saturating_pow(failed_attempts.saturating_sub(1).min(6));
    doubled.max(retry_after.unwrap_or_default()).min(MAX_DELAY)
}

/// Converts a duration to ms.
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_an_hour() {
        let minutes: Vec<_> = (1..=9).map(|attempts| delay(attempts, None).as_secs() / 60).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(delay(u32::MAX, None), MAX_DELAY);
    }

    #[test]
    fn a_receiver_can_request_a_longer_delay_of_up_to_an_hour() {
        let after = |seconds| delay(1, Some(Duration::from_secs(seconds))).as_secs();
        assert_eq!([after(0), after(90), after(86_400)], [60, 90, 3_600]);
    }
}
