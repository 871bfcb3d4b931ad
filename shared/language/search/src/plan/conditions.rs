//! A search in terms of columns, which is the planner's view of a filter and an order.

use std::collections::BTreeSet;

use super::column::{MetricColumn, RunColumn};
use crate::filter::TextTest;
use crate::order_by::SortDirection;
use crate::range::{NumberRange, TimeRange};

/// A condition of a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanCondition<'a> {
    /// The run has a text value that passes the test, or any text value if there is no test.
    Text {
        /// The column.
        column: RunColumn,
        /// The test of its value.
        test: Option<&'a TextTest>,
    },
    /// The run has a number in a range.
    Number {
        /// The column.
        column: MetricColumn,
        /// The range of possible values. It may be too wide, but not too narrow.
        range: NumberRange,
    },
    /// A range for the start time of the run.
    Time(TimeRange),
    /// A set of ids that must contain the id of the run.
    Ids(BTreeSet<String>),
    /// A condition that cannot be checked with a list, the start time or the id.
    Other,
}

/// The first term of an order.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanSortBy {
    /// The start time of the run.
    Time,
    /// A text column. Runs without a value come last.
    Text(RunColumn),
    /// A number column. NaN comes after all numbers, and runs without a value come last.
    Number(MetricColumn),
    /// A field that no list is sorted by.
    Other,
}

/// An order, reduced to the properties that determine which lists are in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOrder {
    /// The first term.
    pub by: PlanSortBy,
    /// The direction of the first term.
    pub direction: SortDirection,
    /// Whether runs that are equal in the first term are sorted newest first, and then by id.
    pub ties_are_newest_first: bool,
}

impl PlanOrder {
    /// Checks whether this is the order of the list of all runs.
    #[must_use]
    pub fn is_newest_first(&self) -> bool {
        self.by == PlanSortBy::Time && self.direction == SortDirection::Descending && self.ties_are_newest_first
    }
}

/// Returns the range of a column's numbers that pass all conditions, or `None` if runs without a
/// value may pass as well.
pub(super) fn number_range(asks: &[PlanCondition<'_>], of: &MetricColumn) -> Option<NumberRange> {
    let ranges = asks.iter().filter_map(|ask| match ask {
        PlanCondition::Number { column, range } if column == of => Some(*range),
        _ => None,
    });
    ranges.reduce(NumberRange::and)
}

/// Returns the range of start times that pass all conditions.
pub(super) fn times(asks: &[PlanCondition<'_>]) -> TimeRange {
    let ranges = asks.iter().filter_map(|ask| match ask {
        PlanCondition::Time(range) => Some(*range),
        _ => None,
    });
    ranges.fold(TimeRange::default(), TimeRange::and)
}
