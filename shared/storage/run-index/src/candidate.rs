//! Runs that may be in the answer, and their order.

use std::cmp::Ordering;
use std::sync::Arc;

use entities::RunLocation;
use table::Item;

use crate::lists::Entry;

/// A run that may be in the answer.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Where it is.
    pub at: RunLocation,
    /// When it began, in ms.
    pub started: i64,
    /// The run's copy, where the list holds copies.
    pub item: Option<Arc<Item>>,
    rank: Rank,
    /// It comes after all runs that have the value that the search is ordered by.
    pub is_without_value: bool,
}

/// The rank of a candidate among those of all partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Which list.
    pub(crate) segment: usize,
    /// Its first value, in the form of keys. Candidates of one group are next to each other.
    pub(crate) group: String,
    /// Whether the order within the group, newest first, is the order of the search.
    pub(crate) is_exact: bool,
    /// Its place within the group.
    pub(crate) place: String,
}

impl Candidate {
    /// The candidate of an entry with this rank.
    pub(crate) fn new(entry: Entry, segment: usize, group: String, is_exact: bool) -> Self {
        let rank = Rank { segment, group, is_exact, place: entry.newest_first };
        Self { at: entry.at, started: entry.started, item: entry.item, rank, is_without_value: false }
    }

    /// A candidate among those of lists that were read whole: all are one group, in the order of
    /// the search or not.
    #[must_use]
    pub fn gathered(entry: Entry, is_exact: bool) -> Self {
        Self::new(entry, 0, String::new(), is_exact)
    }

    /// The same, after all runs that have the value that the search is ordered by.
    pub(crate) fn without_value(self) -> Self {
        Self { is_without_value: true, ..self }
    }

    /// Its place by start time.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.rank.place
    }

    /// Whether a page may end before this candidate and after the other.
    #[must_use]
    pub fn may_end_before(&self, last: &Self) -> bool {
        let (a, b) = (&self.rank, &last.rank);
        (a.segment, &a.group) != (b.segment, &b.group) || (a.is_exact && b.is_exact)
    }

    /// The order of candidates; groups in descending order of their keys if the lists are read
    /// backwards.
    #[must_use]
    pub fn order(&self, other: &Self, backwards: bool) -> Ordering {
        let groups = self.rank.group.cmp(&other.rank.group);
        let groups = if backwards { groups.reverse() } else { groups };
        self.rank.segment.cmp(&other.rank.segment).then(groups).then_with(|| self.rank.place.cmp(&other.rank.place))
    }
}
