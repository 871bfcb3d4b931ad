//! Candidates, which are runs that may be in the response, and their order.

use std::cmp::Ordering;
use std::sync::Arc;

use entities::RunLocation;
use table::Item;

use crate::lists::ListEntry;

/// A run that may be in the response. Whether it matches the filter is checked when it is read.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Location of the run.
    pub at: RunLocation,
    /// Start time of the run in ms.
    pub started: i64,
    /// The run's copy, if the list contains copies.
    pub item: Option<Arc<Item>>,
    rank: CandidateRank,
    /// Whether the run has no value for the first term of the order, so that it comes after all
    /// runs that have one.
    pub is_without_value: bool,
}

/// Position of a candidate in the order of all partitions' candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CandidateRank {
    /// Position, in the search's walk, of the list that the candidate comes from.
    pub(crate) segment: usize,
    /// First value of the candidate in the order of the search, encoded as in keys. The candidates
    /// of a group have the same first value, and are adjacent.
    pub(crate) group: String,
    /// Whether newest first, the order in which the runs of a group are read, is also their order
    /// in the search.
    pub(crate) is_exact: bool,
    /// Position within the group.
    pub(crate) place: String,
}

impl Candidate {
    /// Creates the candidate of an entry.
    pub(crate) fn new(entry: ListEntry, segment: usize, group: String, is_exact: bool) -> Self {
        let rank = CandidateRank { segment, group, is_exact, place: entry.newest_first };
        Self { at: entry.at, started: entry.started, item: entry.item, rank, is_without_value: false }
    }

    /// Creates a candidate from lists that were read completely. All candidates form a single
    /// group. `is_exact` is whether newest first is the order of the search.
    #[must_use]
    pub fn gathered(entry: ListEntry, is_exact: bool) -> Self {
        Self::new(entry, 0, String::new(), is_exact)
    }

    /// Marks the candidate as having no value for the first term of the order, so that it comes
    /// after all runs that have one.
    pub(crate) fn without_value(self) -> Self {
        Self { is_without_value: true, ..self }
    }

    /// Returns the candidate's position in a list that is sorted newest first.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.rank.place
    }

    /// Checks whether a page may end between `last` and this candidate.
    #[must_use]
    pub fn may_end_before(&self, last: &Self) -> bool {
        let (a, b) = (&self.rank, &last.rank);
        (a.segment, &a.group) != (b.segment, &b.group) || (a.is_exact && b.is_exact)
    }

    /// Compares candidates. If the lists are read backwards, groups are in descending order of
    /// their keys.
    #[must_use]
    pub fn order(&self, other: &Self, backwards: bool) -> Ordering {
        let groups = self.rank.group.cmp(&other.rank.group);
        let groups = if backwards { groups.reverse() } else { groups };
        self.rank.segment.cmp(&other.rank.segment).then(groups).then_with(|| self.rank.place.cmp(&other.rank.place))
    }
}
