//! Lists that are in the order of a search.

use super::column::{Metric, RunColumn};
use super::list::RunList;
use super::question::{Ask, SortBy, Sorting, number_range};
use super::text;
use crate::fields::CommonFields;
use crate::order_by::Direction;
use crate::range::{NumberRange, TextRange};
use crate::sort_key::FirstValue;

/// Lists that, read one after another, yield the runs in the order of the search's first term.
#[derive(Clone, Debug, PartialEq)]
pub struct RunWalk {
    /// The lists. A run is in one of them at most.
    pub segments: Vec<RunList>,
    /// Whether each list is read from its end.
    pub backwards: bool,
    /// Whether the runs come in the order of the search. If not, they come in the order of its first
    /// term only: those equal in it are read all, and sorted. Texts cut in keys count as equal if
    /// their beginnings are.
    pub exact: bool,
    /// Whether the runs that are in none of the lists come at the end. If not, none of those passes.
    pub missing_follow: bool,
}

impl RunWalk {
    /// The walk of an order; `None` if no list is in that order.
    pub(super) fn of(asks: &[Ask<'_>], sorting: &Sorting, fields: &CommonFields) -> Option<Self> {
        let backwards = sorting.direction == Direction::Ascending;
        match &sorting.by {
            SortBy::Time => {
                let exact = sorting.is_newest_first();
                Some(Self { segments: vec![RunList::All], backwards, exact, missing_follow: false })
            }
            SortBy::Number(column) => {
                let found = number_range(asks, column);
                let segments = by_number(column, found.unwrap_or(NumberRange::ANY), backwards);
                let exact = !backwards && sorting.ties_are_newest_first;
                Some(Self { segments, backwards, exact, missing_follow: found.is_none() })
            }
            SortBy::Text(column) if !column.values().is_empty() => {
                let segments = by_each_value(column, asks, sorting.direction);
                let exact = sorting.ties_are_newest_first;
                Some(Self { segments, backwards: false, exact, missing_follow: false })
            }
            SortBy::Text(column) if column.is_listed(fields) => {
                let range = text::range(asks, column);
                let missing_follow = column.may_be_missing() && range.is_none();
                let list = RunList::ByText { column: column.clone(), range: range.unwrap_or(TextRange::ANY) };
                let backwards = sorting.direction == Direction::Descending;
                Some(Self { segments: vec![list], backwards, exact: false, missing_follow })
            }
            SortBy::Text(_) | SortBy::Other => None,
        }
    }

    /// The segment that has the runs with this first value: the next page goes on there. `None`
    /// if no segment has them, as for a run without the value.
    #[must_use]
    pub fn segment_of(&self, value: FirstValue<'_>) -> Option<usize> {
        self.segments.iter().position(|list| list.holds(value))
    }
}

/// NaN comes after the numbers in either direction, so that read backwards it is a list of its own.
fn by_number(column: &Metric, range: NumberRange, backwards: bool) -> Vec<RunList> {
    let column = column.clone();
    if !backwards || !range.with_nan {
        return vec![RunList::ByNumber { column, range }];
    }
    let numbers = RunList::ByNumber { column: column.clone(), range: NumberRange { with_nan: false, ..range } };
    vec![numbers, RunList::NotANumber { column }]
}

/// One list per value, where they are few and those of one value many: each is newest first, whichever way the values are
/// sorted.
fn by_each_value(column: &RunColumn, asks: &[Ask<'_>], direction: Direction) -> Vec<RunList> {
    let passes = |value: &&str| {
        asks.iter().all(|ask| match ask {
            Ask::Text { column: asked, test: Some(test) } if asked == column => test.passes(value),
            _ => true,
        })
    };
    let list = |value: &str| RunList::ByText { column: column.clone(), range: TextRange::Equal(value.to_owned()) };
    let mut segments: Vec<_> = column.values().iter().copied().filter(passes).map(list).collect();
    if direction == Direction::Descending {
        segments.reverse();
    }
    segments
}
