//! The range of times to which a filter restricts a search, so that the traces of other days do not
//! have to be read.

use super::filter::TraceFilter;
use super::predicate::{TraceNumber, TracePredicate};
use super::value_tests::NumberTest;
use crate::filter::Comparator;
use crate::literals::FilterNumber;
use crate::range::TimeRange;

impl TraceFilter {
    /// Returns the range of request times of traces that may pass, inclusive at both ends. If the
    /// range is empty, no trace passes.
    #[must_use]
    pub fn request_times(&self) -> TimeRange {
        let ranges = self.predicates.iter().filter_map(|predicate| match predicate {
            TracePredicate::Number { attribute: TraceNumber::RequestTime, test } => Some(test.range()),
            _ => None,
        });
        ranges.fold(TimeRange::default(), TimeRange::and)
    }
}

impl NumberTest {
    fn range(&self) -> TimeRange {
        let Some(value) = self.value else {
            let none = TimeRange { from: Some(i64::MAX), until: Some(i64::MIN) };
            return if self.passes(0) { TimeRange::default() } else { none };
        };
        let (below, above) = around(value);
        let exact = below == above;
        match self.comparator {
            Comparator::NotEqual => TimeRange::default(),
            Comparator::Equal => TimeRange { from: Some(above), until: Some(below) },
            Comparator::GreaterOrEqual => TimeRange { from: Some(above), until: None },
            Comparator::Greater => TimeRange { from: Some(above.saturating_add(i64::from(exact))), until: None },
            Comparator::LessOrEqual => TimeRange { from: None, until: Some(below) },
            Comparator::Less => TimeRange { from: None, until: Some(below.saturating_sub(i64::from(exact))) },
        }
    }
}

/// Returns the nearest integers below and above a number, which are equal if it is an integer.
#[allow(clippy::cast_possible_truncation, reason = "it saturates")]
fn around(value: FilterNumber) -> (i64, i64) {
    match value {
        FilterNumber::Integer(value) => (value, value),
        FilterNumber::Float(value) => (value.floor() as i64, value.ceil() as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_trace_filter;
    use super::*;

    #[test]
    fn conditions_on_the_time_limit_a_search() {
        for (filter, from, until) in [
            ("", None, None),
            ("timestamp > 5 AND timestamp <= 9", Some(6), Some(9)),
            ("timestamp_ms >= 5 AND trace.timestamp < 9", Some(5), Some(8)),
            ("timestamp_ms > 5.5 AND timestamp_ms < 9.5", Some(6), Some(9)),
            ("timestamp = 7", Some(7), Some(7)),
            ("timestamp_ms = 7.5", Some(8), Some(7)),
            ("timestamp != 7 AND execution_time > 3 AND end_time < 5", None, None),
            ("timestamp_ms < 'x'", None, None),
            ("timestamp_ms > 'x'", Some(i64::MAX), Some(i64::MIN)),
        ] {
            let range = parse_trace_filter(filter).unwrap().request_times();
            assert_eq!(range, TimeRange { from, until }, "{filter}");
        }
    }
}
