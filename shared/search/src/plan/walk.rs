//! Lists that are in the order of a search.

use super::column::Column;
use super::list::{MetricRange, RunList, TextRange};
use super::numbers::metric_range;
use crate::fields::IndexedFields;
use crate::filter::{RunFilter, RunNumber, RunPredicate, RunText};
use crate::order_by::{Direction, RunOrder, RunSortBy};
use crate::sort_key::FirstValue;
use mlflow_api::tracking::RunStatus;

/// Statuses in the order of their names.
const STATUSES: [RunStatus; 5] =
    [RunStatus::Failed, RunStatus::Finished, RunStatus::Killed, RunStatus::Running, RunStatus::Scheduled];

/// Lists that, read one after another, yield the runs in the order of the search's first term.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    /// The lists. A run stands in one of them at most.
    pub segments: Vec<RunList>,
    /// Whether each list is read from its end.
    pub backwards: bool,
    /// Whether the runs come in the order of the search. If not, they come in the order of its first term only: those equal
    /// in it are read all, and sorted. Texts cut in keys count as equal if their beginnings are.
    pub exact: bool,
    /// Whether the runs that stand in none of the lists come at the end. If not, none of those passes.
    pub missing_follow: bool,
}

impl Walk {
    /// The walk of an order; `None` if no list is in that order.
    pub(super) fn of(filter: &RunFilter, order: &RunOrder, fields: &IndexedFields) -> Option<Self> {
        let (first, rest) = order.terms.split_first()?;
        let backwards = first.direction == Direction::Ascending;
        let ties_are_newest_first = rest == RunOrder::default().terms;
        match &first.by {
            RunSortBy::Number(RunNumber::StartTime) => {
                let exact = *order == RunOrder::default();
                Some(Self { segments: vec![RunList::Runs], backwards, exact, missing_follow: false })
            }
            RunSortBy::Metric(key) => {
                let found = metric_range(filter, key);
                let segments = metric_segments(key, found.unwrap_or(MetricRange::ANY), backwards);
                let exact = !backwards && ties_are_newest_first;
                Some(Self { segments, backwards, exact, missing_follow: found.is_none() })
            }
            RunSortBy::Text(RunText::Status) => {
                let segments = status_segments(filter, first.direction);
                Some(Self { segments, backwards: false, exact: ties_are_newest_first, missing_follow: false })
            }
            RunSortBy::Text(RunText::RunName) => of_column(&Column::Name, filter, first.direction, fields),
            RunSortBy::Param(key) => of_column(&Column::Param(key.clone()), filter, first.direction, fields),
            RunSortBy::Tag(key) => of_column(&Column::of_tag(key), filter, first.direction, fields),
            RunSortBy::Number(RunNumber::EndTime)
            | RunSortBy::Text(RunText::RunId | RunText::UserId | RunText::ArtifactUri) => None,
        }
    }

    /// In which of the segments a run with this first value stands: where a page goes on that begins after it. `None` if in
    /// none, as one without the value.
    #[must_use]
    pub fn segment_of(&self, value: FirstValue<'_>) -> Option<usize> {
        self.segments.iter().position(|list| list.holds(value))
    }
}

/// NaN comes after the values in either direction, so that read backwards it is a list of its own.
fn metric_segments(key: &str, range: MetricRange, backwards: bool) -> Vec<RunList> {
    let key = key.to_owned();
    if !backwards || !range.with_nan {
        return vec![RunList::ByMetric { key, range }];
    }
    let values = RunList::ByMetric { key: key.clone(), range: MetricRange { with_nan: false, ..range } };
    vec![values, RunList::NotANumber { key }]
}

/// One list per status, since those of one status are many: each is newest first, whichever way the statuses are sorted.
fn status_segments(filter: &RunFilter, direction: Direction) -> Vec<RunList> {
    let passes = |status: &&str| {
        filter.predicates.iter().all(|predicate| match predicate {
            RunPredicate::Text { attribute: RunText::Status, test } => test.passes(status),
            _ => true,
        })
    };
    let names = STATUSES.iter().map(|status| status.name()).filter(passes);
    let mut segments: Vec<_> = names.map(|name| RunList::ByStatus(TextRange::Equal(name.to_owned()))).collect();
    if direction == Direction::Descending {
        segments.reverse();
    }
    segments
}

fn of_column(column: &Column, filter: &RunFilter, direction: Direction, fields: &IndexedFields) -> Option<Walk> {
    let range = column.range(filter);
    let missing_follow = column.may_be_missing() && range.is_none();
    let list = column.list(range.unwrap_or(TextRange::ANY), fields)?;
    Some(Walk { segments: vec![list], backwards: direction == Direction::Descending, exact: false, missing_follow })
}
