//! Translation of the filters and orders of runs into conditions on the columns by which runs are
//! indexed.

use std::collections::BTreeSet;

use crate::fields::{USER_ID, of_datasets};
use crate::filter::{Comparator, KeyTest, RUN_NAME_TAG, RunFilter, RunNumber, RunPredicate, RunText, TextTest};
use crate::literals::FilterNumber;
use crate::order_by::{RunOrder, RunSortBy, SortDirection};
use crate::plan::{MetricColumn, PlanCondition, PlanOrder, PlanSortBy, RunColumn, range_of};
use crate::range::{NumberRange, TextRange, TimeRange};

impl RunFilter {
    /// Returns the condition that each predicate imposes on the columns, in the order of the
    /// filter.
    #[must_use]
    pub fn asks(&self) -> Vec<PlanCondition<'_>> {
        self.predicates.iter().map(ask).collect()
    }
}

fn ask(predicate: &RunPredicate) -> PlanCondition<'_> {
    match predicate {
        RunPredicate::Metric { key, comparator, value } => {
            PlanCondition::Number { column: MetricColumn(key.clone()), range: numbers(*comparator, *value) }
        }
        RunPredicate::Param { key, test } => of_key(RunColumn::Param(key.clone()), test),
        RunPredicate::Tag { key, test } => of_key(of_tag(key), test),
        RunPredicate::Text { attribute: RunText::Status, test } => of_text(RunColumn::Status, test),
        RunPredicate::Text { attribute: RunText::UserId, test } => of_text(RunColumn::Field(USER_ID.to_owned()), test),
        RunPredicate::Text { attribute: RunText::RunId, test } => match (test, range_of(test)) {
            (TextTest::In(ids), _) => PlanCondition::Ids(ids.clone()),
            (_, TextRange::Equal(id)) => PlanCondition::Ids(BTreeSet::from([id])),
            _ => PlanCondition::Other,
        },
        RunPredicate::Dataset { field, test } => of_text(RunColumn::Field(of_datasets(*field)), test),
        RunPredicate::Number { attribute: RunNumber::StartTime, comparator, value } => {
            PlanCondition::Time(times(*comparator, *value))
        }
        RunPredicate::Number { attribute: RunNumber::EndTime, .. }
        | RunPredicate::Text { attribute: RunText::RunName | RunText::ArtifactUri, .. } => PlanCondition::Other,
    }
}

fn of_text(column: RunColumn, test: &TextTest) -> PlanCondition<'_> {
    PlanCondition::Text { column, test: Some(test) }
}

fn of_key(column: RunColumn, test: &KeyTest) -> PlanCondition<'_> {
    match test {
        KeyTest::Absent => PlanCondition::Other,
        KeyTest::Present => PlanCondition::Text { column, test: None },
        KeyTest::Value(test) => of_text(column, test),
    }
}

/// Returns the column of a tag. The tag `mlflow.runName` has the column of the run name, because
/// MLflow keeps both in sync.
fn of_tag(key: &str) -> RunColumn {
    if key == RUN_NAME_TAG { RunColumn::Name } else { RunColumn::Field(format!("tags.{key}")) }
}

impl RunOrder {
    /// Returns the first term of the order, and whether the remaining terms are MLflow's default.
    #[must_use]
    pub fn sorting(&self) -> PlanOrder {
        let default = Self::default().terms;
        let Some((first, rest)) = self.terms.split_first() else {
            return PlanOrder {
                by: PlanSortBy::Other,
                direction: SortDirection::Ascending,
                ties_are_newest_first: false,
            };
        };
        let by = match &first.by {
            RunSortBy::Number(RunNumber::StartTime) => PlanSortBy::Time,
            RunSortBy::Metric(key) => PlanSortBy::Number(MetricColumn(key.clone())),
            RunSortBy::Text(RunText::Status) => PlanSortBy::Text(RunColumn::Status),
            RunSortBy::Text(RunText::RunName) => PlanSortBy::Text(RunColumn::Name),
            RunSortBy::Param(key) => PlanSortBy::Text(RunColumn::Param(key.clone())),
            RunSortBy::Tag(key) => PlanSortBy::Text(RunColumn::Field(format!("tags.{key}"))),
            RunSortBy::Number(RunNumber::EndTime) => PlanSortBy::Text(RunColumn::EndTime),
            RunSortBy::Text(RunText::RunId | RunText::UserId | RunText::ArtifactUri) => PlanSortBy::Other,
        };
        // Runs with equal first terms are sorted by MLflow's default order, without the start time
        // if that is the first term.
        let ties = if by == PlanSortBy::Time { &default[1..] } else { &default };
        PlanOrder { direction: first.direction, ties_are_newest_first: rest == ties, by }
    }
}

/// Returns the range of metric values that may pass a comparison with `value`. A metric that is NaN
/// passes only `!=`.
fn numbers(comparator: Comparator, value: f64) -> NumberRange {
    let numbers = NumberRange { with_nan: false, ..NumberRange::ANY };
    // The grammar cannot produce NaN.
    if value.is_nan() {
        return NumberRange { with_nan: comparator == Comparator::NotEqual, ..numbers };
    }
    // Zero and negative zero are equal in filters, but have different keys.
    let (least, greatest) = if value == 0.0 { (-0.0, 0.0) } else { (value, value) };
    match comparator {
        Comparator::Equal => NumberRange { minimum: Some(least), maximum: Some(greatest), ..numbers },
        Comparator::NotEqual => NumberRange::ANY,
        Comparator::Less | Comparator::LessOrEqual => NumberRange { maximum: Some(greatest), ..numbers },
        Comparator::Greater | Comparator::GreaterOrEqual => NumberRange { minimum: Some(least), ..numbers },
    }
}

/// Returns the times that may pass a comparison with `value`. Near the limits of 64-bit integers,
/// the range may be too wide, but never too narrow.
#[allow(clippy::cast_possible_truncation, reason = "the cast goes to the nearest integer there is")]
fn times(comparator: Comparator, value: FilterNumber) -> TimeRange {
    // The nearest integers below and above the value. If the value is an integer, both are equal to
    // it.
    let (below, above) = match value {
        FilterNumber::Integer(value) => (value, value),
        FilterNumber::Float(value) if value.is_nan() => return TimeRange::default(),
        FilterNumber::Float(value) => (value.floor() as i64, value.ceil() as i64),
    };
    let (from, until) = match (comparator, value) {
        (Comparator::Equal, _) => (Some(above), Some(below)),
        (Comparator::NotEqual, _) => (None, None),
        (Comparator::Less, FilterNumber::Integer(value)) => (None, Some(value.saturating_sub(1))),
        (Comparator::Less | Comparator::LessOrEqual, _) => (None, Some(below)),
        (Comparator::Greater, FilterNumber::Integer(value)) => (Some(value.saturating_add(1)), None),
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

    fn numbers() -> impl Strategy<Value = FilterNumber> {
        let edges =
            [0.5, -0.5, 2.0, 1e300, -1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 9.223_372_036_854_776e18];
        prop_oneof![
            (-4_i64..4).prop_map(FilterNumber::Integer),
            any::<i64>().prop_map(FilterNumber::Integer),
            prop::sample::select(vec![i64::MIN, i64::MAX]).prop_map(FilterNumber::Integer),
            prop::sample::select(edges.to_vec()).prop_map(FilterNumber::Float),
            any::<f64>().prop_map(FilterNumber::Float),
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
        assert_eq!(shown(Comparator::Greater, FilterNumber::Integer(5)), "in [6, ..]");
        assert_eq!(shown(Comparator::Less, FilterNumber::Float(5.5)), "in [.., 5]");
        assert_eq!(shown(Comparator::GreaterOrEqual, FilterNumber::Float(5.5)), "in [6, ..]");
        assert!(times(Comparator::Equal, FilterNumber::Float(5.5)).is_empty());
    }
}
