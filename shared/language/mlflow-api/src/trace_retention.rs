//! The retention of the traces of an experiment, which is configured by a tag of the experiment or
//! by a setting of the server.

use crate::{Error, Result};

/// The experiment tag that configures the retention of traces. MLflow has no tag with this name.
/// Its own tag, for archival, is `mlflow.trace.archivalRetention`.
pub const TRACE_RETENTION_TAG: &str = "mlflow.trace.retention";

/// The value for keeping traces forever, regardless of the setting of the server.
const OFF: &str = "off";
/// The units, and their lengths in ms.
const UNITS: [(char, i64); 3] = [('d', 86_400_000), ('h', 3_600_000), ('m', 60_000)];
/// Maximum number of digits of a duration, which is MLflow's limit for archival durations.
const MAX_DIGITS: usize = 31;

/// The time for which traces are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceRetention {
    /// Traces are kept forever.
    Forever,
    /// Traces are kept for this many ms after they began.
    Ms(i64),
}

impl TraceRetention {
    /// Parses `30d`, `12h` or `90m`, or `off`, which means forever.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text == OFF {
            return Ok(Self::Forever);
        }
        ms_of(text).map(Self::Ms).ok_or_else(|| {
            Error::invalid(
                "Trace retention must be 'off', or in the form `<int><unit>`, where unit is one of 'm', 'h', or 'd'.",
            )
        })
    }

    /// Returns the earliest start time of traces that are kept at the time `now`, or `None` if all
    /// traces are kept.
    #[must_use]
    pub fn since(self, now: i64) -> Option<i64> {
        match self {
            Self::Forever => None,
            Self::Ms(ms) => Some(now.saturating_sub(ms)),
        }
    }
}

fn ms_of(text: &str) -> Option<i64> {
    let (unit, ms) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit))?;
    let digits = text.strip_suffix(unit)?;
    let is_number = !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || digits.len() > MAX_DIGITS {
        return None;
    }
    // A duration that overflows is equivalent to keeping traces forever.
    Some(digits.parse::<i64>().unwrap_or(i64::MAX).saturating_mul(ms))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_as_mlflow_reads_those_of_archival() {
        for (text, ms) in [("30d", 2_592_000_000), ("12h", 43_200_000), (" 90m ", 5_400_000), ("1m", 60_000)] {
            assert_eq!(TraceRetention::parse(text).unwrap(), TraceRetention::Ms(ms), "{text}");
        }
        assert_eq!(TraceRetention::parse("off").unwrap(), TraceRetention::Forever);
        let long = format!("{}d", "9".repeat(32));
        for text in ["", "d", "30", "0d", "030d", "-1d", "1.5d", "30 d", "1d2h", "30s", "30D", "forever", &long] {
            let message = TraceRetention::parse(text).unwrap_err().message;
            assert!(message.starts_with("Trace retention must be"), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn a_trace_is_kept_for_that_long_and_no_longer(days in 1_i64..10_000, began in 0_i64..4_000_000_000_000) {
            let retention = TraceRetention::parse(&format!("{days}d")).unwrap();
            let end = began + days * 86_400_000;
            let is_kept = |now: i64| retention.since(now).is_none_or(|since| began >= since);
            prop_assert!(is_kept(began) && is_kept(end) && !is_kept(end + 1));
            prop_assert_eq!(TraceRetention::Forever.since(end), None);
        }

        #[test]
        fn no_text_does_harm(text: String) {
            if let Ok(retention) = TraceRetention::parse(&text) {
                prop_assert!(retention.since(i64::MIN).is_none_or(|since| since <= 0));
            }
        }
    }
}
