//! Lists that are in the order of a search.

use super::column::{MetricColumn, RunColumn};
use super::conditions::{PlanCondition, PlanOrder, PlanSortBy, number_range};
use super::run_list::RunList;
use super::text_lists;
use crate::fields::CommonFields;
use crate::order_by::SortDirection;
use crate::range::{NumberRange, TextRange};
use crate::sort_key::FirstValue;

/// Lists that are read one after another, and then yield the runs in the order of the search's
/// first term.
#[derive(Clone, Debug, PartialEq)]
pub struct RunWalk {
    /// The lists. Each run is in at most one of them.
    pub segments: Vec<RunList>,
    /// Whether the lists of the walk are read backwards, from their ends.
    pub backwards: bool,
    /// Whether the walk yields runs in the exact order of the search. Otherwise it yields them in
    /// the order of the first term only, and all runs that share a first value have to be
    /// read before they can be sorted. Texts that are truncated in keys are treated as equal if their
    /// prefixes are equal.
    pub exact: bool,
    /// Whether runs that are in none of the lists follow at the end of the walk. Otherwise none of
    /// these runs passes the filter.
    pub missing_follow: bool,
}

impl RunWalk {
    /// Creates the walk for an order. Returns `None` if no list is in that order.
    pub(super) fn of(asks: &[PlanCondition<'_>], sorting: &PlanOrder, fields: &CommonFields) -> Option<Self> {
        let backwards = sorting.direction == SortDirection::Ascending;
        match &sorting.by {
            PlanSortBy::Time => {
                let exact = sorting.is_newest_first();
                Some(Self { segments: vec![RunList::All], backwards, exact, missing_follow: false })
            }
            PlanSortBy::Number(column) => {
                let found = number_range(asks, column);
                let segments = by_number(column, found.unwrap_or(NumberRange::ANY), backwards);
                let exact = !backwards && sorting.ties_are_newest_first;
                Some(Self { segments, backwards, exact, missing_follow: found.is_none() })
            }
            PlanSortBy::Text(column) if !column.values().is_empty() => {
                let segments = by_each_value(column, asks, sorting.direction);
                let exact = sorting.ties_are_newest_first;
                Some(Self { segments, backwards: false, exact, missing_follow: false })
            }
            PlanSortBy::Text(column) if column.is_listed(fields) => {
                let range = text_lists::range(asks, column);
                let missing_follow = column.may_be_missing() && range.is_none();
                let list = RunList::ByText { column: column.clone(), range: range.unwrap_or(TextRange::ANY) };
                let backwards = sorting.direction == SortDirection::Descending;
                Some(Self { segments: vec![list], backwards, exact: false, missing_follow })
            }
            PlanSortBy::Text(_) | PlanSortBy::Other => None,
        }
    }

    /// Returns the segment that contains the runs with this first value, so that the next page can
    /// continue there. Returns `None` if no segment contains them, for example because they have no
    /// value.
    #[must_use]
    pub fn segment_of(&self, value: FirstValue<'_>) -> Option<usize> {
        self.segments.iter().position(|list| list.holds(value))
    }
}

/// Returns the segments for a number column. NaN comes after all numbers in either direction. If
/// the numbers are read backwards, it is therefore a separate segment.
fn by_number(column: &MetricColumn, range: NumberRange, backwards: bool) -> Vec<RunList> {
    let column = column.clone();
    if !backwards || !range.with_nan {
        return vec![RunList::ByNumber { column, range }];
    }
    let numbers = RunList::ByNumber { column: column.clone(), range: NumberRange { with_nan: false, ..range } };
    vec![numbers, RunList::NotANumber { column }]
}

/// Returns one segment per value, for columns with few values that many runs share. The runs of a
/// segment are newest first, regardless of the direction in which the values are sorted.
fn by_each_value(column: &RunColumn, asks: &[PlanCondition<'_>], direction: SortDirection) -> Vec<RunList> {
    let passes = |value: &&str| {
        asks.iter().all(|ask| match ask {
            PlanCondition::Text { column: asked, test: Some(test) } if asked == column => test.passes(value),
            _ => true,
        })
    };
    let list = |value: &str| RunList::ByText { column: column.clone(), range: TextRange::Equal(value.to_owned()) };
    let mut segments: Vec<_> = column.values().iter().copied().filter(passes).map(list).collect();
    if direction == SortDirection::Descending {
        segments.reverse();
    }
    segments
}
