//! What a filter leaves of the values of a metric and of start times.

use super::list::{MetricRange, TimeRange};
use crate::filter::{Comparator, RunFilter, RunNumber, RunPredicate};
use crate::value::Number;

/// The values of the metric that the filter leaves; `None` if it lets runs pass that have none.
pub(super) fn metric_range(filter: &RunFilter, metric: &str) -> Option<MetricRange> {
    let ranges = filter.predicates.iter().filter_map(|predicate| match predicate {
        RunPredicate::Metric { key, comparator, value } if key == metric => Some(values(*comparator, *value)),
        _ => None,
    });
    ranges.reduce(|left, right| MetricRange {
        least: greater(left.least, right.least),
        greatest: greater(left.greatest.map(|end| -end), right.greatest.map(|end| -end)).map(|end| -end),
        with_nan: left.with_nan && right.with_nan,
    })
}

/// The values of which a comparison with `value` may be true. NaN differs from every value and compares with none.
fn values(comparator: Comparator, value: f64) -> MetricRange {
    let numbers = MetricRange { with_nan: false, ..MetricRange::ANY };
    // The grammar makes no NaN.
    if value.is_nan() {
        return MetricRange { with_nan: comparator == Comparator::NotEqual, ..numbers };
    }
    // The two zeros are one number here and two in a key.
    let (least, greatest) = if value == 0.0 { (-0.0, 0.0) } else { (value, value) };
    match comparator {
        Comparator::Equal => MetricRange { least: Some(least), greatest: Some(greatest), ..numbers },
        Comparator::NotEqual => MetricRange::ANY,
        Comparator::Less | Comparator::LessOrEqual => MetricRange { greatest: Some(greatest), ..numbers },
        Comparator::Greater | Comparator::GreaterOrEqual => MetricRange { least: Some(least), ..numbers },
    }
}

fn greater(left: Option<f64>, right: Option<f64>) -> Option<f64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(if left >= right { left } else { right }),
        (end, None) | (None, end) => end,
    }
}

/// The start times that the filter leaves.
pub(super) fn start_times(filter: &RunFilter) -> TimeRange {
    let mut started = TimeRange::default();
    for predicate in &filter.predicates {
        if let RunPredicate::Number { attribute: RunNumber::StartTime, comparator, value } = predicate {
            let TimeRange { from, until } = times(*comparator, *value);
            started.from = started.from.max(from);
            started.until = started.until.into_iter().chain(until).min();
        }
    }
    started
}

/// The times of which a comparison with `value` may be true. At the ends of 64 bits they are too many, never too few.
#[allow(clippy::cast_possible_truncation, reason = "the cast goes to the nearest integer there is")]
fn times(comparator: Comparator, value: Number) -> TimeRange {
    // The integers next to the value; the same one twice if it is an integer itself.
    let (below, above) = match value {
        Number::Integer(value) => (value, value),
        Number::Float(value) if value.is_nan() => return TimeRange::default(),
        Number::Float(value) => (value.floor() as i64, value.ceil() as i64),
    };
    let (from, until) = match (comparator, value) {
        (Comparator::Equal, _) => (Some(above), Some(below)),
        (Comparator::NotEqual, _) => (None, None),
        (Comparator::Less, Number::Integer(value)) => (None, Some(value.saturating_sub(1))),
        (Comparator::Less | Comparator::LessOrEqual, _) => (None, Some(below)),
        (Comparator::Greater, Number::Integer(value)) => (Some(value.saturating_add(1)), None),
        (Comparator::Greater | Comparator::GreaterOrEqual, _) => (Some(above), None),
    };
    TimeRange { from, until }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COMPARATORS: [Comparator; 6] = [
        Comparator::Equal,
        Comparator::NotEqual,
        Comparator::Less,
        Comparator::LessOrEqual,
        Comparator::Greater,
        Comparator::GreaterOrEqual,
    ];

    fn numbers() -> impl Strategy<Value = Number> {
        let edges =
            [0.5, -0.5, 2.0, 1e300, -1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 9.223_372_036_854_776e18];
        prop_oneof![
            (-4_i64..4).prop_map(Number::Integer),
            any::<i64>().prop_map(Number::Integer),
            prop::sample::select(vec![i64::MIN, i64::MAX]).prop_map(Number::Integer),
            prop::sample::select(edges.to_vec()).prop_map(Number::Float),
            any::<f64>().prop_map(Number::Float),
        ]
    }

    fn stored() -> impl Strategy<Value = i64> {
        prop_oneof![-5_i64..5, any::<i64>(), prop::sample::select(vec![i64::MIN, i64::MAX])]
    }

    proptest! {
        #[test]
        fn no_time_that_passes_is_left_out(number in numbers(), stored in stored()) {
            for comparator in COMPARATORS {
                if comparator.holds(number.compare_stored(stored)) {
                    prop_assert!(times(comparator, number).contains(stored), "{} {}", comparator.symbol(), number);
                }
            }
        }
    }

    #[test]
    fn times_are_narrow() {
        let shown = |comparator, number| times(comparator, number).to_string();
        assert_eq!(shown(Comparator::Greater, Number::Integer(5)), "in [6, ..]");
        assert_eq!(shown(Comparator::Less, Number::Float(5.5)), "in [.., 5]");
        assert_eq!(shown(Comparator::GreaterOrEqual, Number::Float(5.5)), "in [6, ..]");
        assert!(times(Comparator::Equal, Number::Float(5.5)).is_empty());
    }
}
