//! A search in terms of columns: the planner's view of a filter and of an order.

use std::collections::BTreeSet;

use super::column::{Metric, RunColumn};
use crate::filter::TextTest;
use crate::order_by::Direction;
use crate::range::{NumberRange, TimeRange};

/// One condition of a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask<'a> {
    /// A text that has to be there, and pass the test if there is one.
    Text {
        /// Which text.
        column: RunColumn,
        /// The test of it.
        test: Option<&'a TextTest>,
    },
    /// A number that has to be there, and in this range.
    Number {
        /// Which number.
        column: Metric,
        /// Its possible values; too many of them at most.
        range: NumberRange,
    },
    /// That the run began then.
    Time(TimeRange),
    /// That its id is one of these.
    Ids(BTreeSet<String>),
    /// Something that no list, time or id answers.
    Other,
}

/// The first term of an order.
#[derive(Clone, Debug, PartialEq)]
pub enum SortBy {
    /// When the run began.
    Time,
    /// A text; runs without it come last.
    Text(RunColumn),
    /// A number; NaN comes after the numbers, and runs without it last.
    Number(Metric),
    /// Something that no list is sorted by.
    Other,
}

/// An order, as far as lists can be in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sorting {
    /// The first term.
    pub by: SortBy,
    /// Which way it sorts.
    pub direction: Direction,
    /// Whether runs that are equal in the first term follow each other newest first, and by id.
    pub ties_are_newest_first: bool,
}

impl Sorting {
    /// Whether it is the order of the list of all runs.
    #[must_use]
    pub fn is_newest_first(&self) -> bool {
        self.by == SortBy::Time && self.direction == Direction::Descending && self.ties_are_newest_first
    }
}

/// The numbers of a column that the conditions leave; `None` if they let runs pass that have none.
pub(super) fn number_range(asks: &[Ask<'_>], of: &Metric) -> Option<NumberRange> {
    let ranges = asks.iter().filter_map(|ask| match ask {
        Ask::Number { column, range } if column == of => Some(*range),
        _ => None,
    });
    ranges.reduce(NumberRange::and)
}

/// The times that the conditions leave.
pub(super) fn times(asks: &[Ask<'_>]) -> TimeRange {
    let ranges = asks.iter().filter_map(|ask| match ask {
        Ask::Time(range) => Some(*range),
        _ => None,
    });
    ranges.fold(TimeRange::default(), TimeRange::and)
}
