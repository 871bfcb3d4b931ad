//! A search in terms of columns, which is the planner's view of a filter and an order.

use std::collections::BTreeSet;

use super::column::{Metric, RunColumn};
use crate::filter::TextTest;
use crate::order_by::Direction;
use crate::range::{NumberRange, TimeRange};

/// A condition of a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask<'a> {
    /// A text value that must be present, and pass the test if there is one.
    Text {
        /// The column.
        column: RunColumn,
        /// The test of its value.
        test: Option<&'a TextTest>,
    },
    /// A number that must be present, and in a range.
    Number {
        /// The column.
        column: Metric,
        /// The range of possible values. It may be too wide, but not too narrow.
        range: NumberRange,
    },
    /// A range for the start time of the run.
    Time(TimeRange),
    /// A set of ids that must contain the id of the run.
    Ids(BTreeSet<String>),
    /// A condition that no list, time or id can answer.
    Other,
}

/// The first term of an order.
#[derive(Clone, Debug, PartialEq)]
pub enum SortBy {
    /// The start time of the run.
    Time,
    /// A text column. Runs without a value come last.
    Text(RunColumn),
    /// A number column. NaN comes after all numbers, and runs without a value come last.
    Number(Metric),
    /// A field that no list is sorted by.
    Other,
}

/// An order, to the extent that lists can be in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sorting {
    /// The first term.
    pub by: SortBy,
    /// The direction of the first term.
    pub direction: Direction,
    /// Whether runs that are equal in the first term are sorted newest first, and then by id.
    pub ties_are_newest_first: bool,
}

impl Sorting {
    /// Checks whether this is the order of the list of all runs.
    #[must_use]
    pub fn is_newest_first(&self) -> bool {
        self.by == SortBy::Time && self.direction == Direction::Descending && self.ties_are_newest_first
    }
}

/// Returns the range of a column's numbers that pass all conditions, or `None` if runs without a
/// value may pass.
pub(super) fn number_range(asks: &[Ask<'_>], of: &Metric) -> Option<NumberRange> {
    let ranges = asks.iter().filter_map(|ask| match ask {
        Ask::Number { column, range } if column == of => Some(*range),
        _ => None,
    });
    ranges.reduce(NumberRange::and)
}

/// Returns the range of start times that pass all conditions.
pub(super) fn times(asks: &[Ask<'_>]) -> TimeRange {
    let ranges = asks.iter().filter_map(|ask| match ask {
        Ask::Time(range) => Some(*range),
        _ => None,
    });
    ranges.fold(TimeRange::default(), TimeRange::and)
}
