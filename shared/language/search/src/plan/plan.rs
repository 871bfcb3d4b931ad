//! The plan of a search.

use std::fmt;

use super::cost::{self, PlanCost};
use super::run_list::RunList;
use super::run_walk::RunWalk;
use crate::range::TimeRange;

/// The way in which the candidates of a search are found. On every path, runs with changes that
/// have not been indexed yet are candidates as well.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessPath {
    /// Reads the runs with these ids. The list may be empty.
    Ids(Vec<String>),
    /// Reads all runs in one range, and sorts those that pass.
    AllRuns,
    /// Reads the runs that are in all of these lists until the page is full. The lists are sorted
    /// newest first, and so are the runs. If there are no lists, the list of all runs is read.
    Newest {
        /// Lists that are newest first, in ascending order of their share of the runs.
        lists: Vec<RunList>,
    },
    /// Reads the runs in the order of these lists until the page is full.
    Walk(RunWalk),
    /// Reads the keys of these lists completely, and intersects them. In the default order, the
    /// resulting runs are sorted by their keys and read until the page is full. In any other order,
    /// all of them are read and then sorted.
    Gather {
        /// The lists.
        lists: Vec<RunList>,
    },
}

impl AccessPath {
    /// Checks whether the candidates are all runs, in the order of their start times.
    pub(super) fn is_by_time(&self) -> bool {
        match self {
            Self::Newest { lists } => lists.is_empty(),
            Self::Walk(walk) => walk.segments == [RunList::All],
            Self::Ids(_) | Self::AllRuns | Self::Gather { .. } => false,
        }
    }

    /// Checks whether the path begins without narrowing and may be narrowed later. If too few
    /// candidates pass, the search continues with the runs in the narrowing lists, sorted by time.
    /// This is not possible for a walk in another order, which has to continue through all runs.
    pub(super) fn may_be_narrowed_later(&self, per_run: f64) -> bool {
        matches!(self, Self::Newest { .. }) && !is_rare(per_run)
    }
}

impl fmt::Display for AccessPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ids(ids) if ids.is_empty() => formatter.write_str("nothing can pass"),
            Self::Ids(ids) => write!(formatter, "runs {}", ids.join(", ")),
            Self::AllRuns => formatter.write_str("the whole experiment"),
            Self::Newest { lists } if lists.is_empty() => formatter.write_str("newest first"),
            Self::Newest { lists } => write!(formatter, "newest first of {}", named(lists, " and ")),
            Self::Walk(walk) => write!(formatter, "{walk}"),
            Self::Gather { lists } => write!(formatter, "gather {}", named(lists, " and ")),
        }
    }
}

impl fmt::Display for RunWalk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "walk {}", named(&self.segments, ", then "))?;
        formatter.write_str(if self.backwards { ", backwards" } else { "" })?;
        formatter.write_str(if self.exact { "" } else { ", equal ones sorted" })?;
        formatter.write_str(if self.missing_follow { ", then runs without" } else { "" })
    }
}

fn named(lists: &[RunList], between: &str) -> String {
    lists.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

/// The plan of a search. Regardless of the path, the search finds exactly the runs that pass the
/// filter, in the requested order.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// The access path.
    pub path: AccessPath,
    /// The range of start times of runs that pass. Lists that are sorted newest first are only read
    /// within this range. Keys outside of it are skipped in other lists.
    pub started: TimeRange,
    /// Lists that narrow a path in list order ([`AccessPath::Newest`] or [`AccessPath::Walk`]) when
    /// few of its candidates pass. When this happens, which [`RunPlan::narrow_limit`] determines,
    /// the keys of these lists are read completely, and from then on only candidates in all of the
    /// lists are read. Empty if the path already uses all suitable lists.
    pub narrow_by: Vec<RunList>,
    /// The expected number of candidates for each run that passes.
    pub(super) per_run: f64,
    /// The estimated cost of the path.
    pub cost: PlanCost,
}

/// Checks whether so many candidates are examined for each run that passes that it is too expensive
/// to read all of them.
pub(super) fn is_rare(per_run: f64) -> bool {
    per_run > 3.0
}

impl RunPlan {
    /// Maximum number of entries to read for narrowing, even if very few runs pass. The keys of the
    /// entries have to fit in memory.
    const MAX_ENTRIES: usize = 100_000;

    /// Returns the maximum number of entries to read in total from the lists of
    /// [`RunPlan::narrow_by`]. `read` candidates have been read so far, `passed` of them have
    /// passed, and `wanted` more runs are required.
    ///
    /// The limit is 0 while the path is good enough, which means that more than one in three
    /// candidates pass. If the lists have no more entries than the limit, narrowing the path by
    /// them is cheaper than continuing. Otherwise the path continues unchanged, and the caller may
    /// call this method again later.
    ///
    /// Before the first candidate is read, the limit corresponds to the estimated cost of a page of
    /// candidates, which may be wrong. Later, it corresponds to the cost of continuing, based on
    /// the share of candidates that have passed so far. A search therefore costs at most twice as
    /// much as without narrowing, plus one page of candidates.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and what is beyond is cut")]
    pub fn narrow_limit(&self, read: usize, passed: usize, wanted: usize) -> usize {
        // If no candidate has passed yet, the share that passes is estimated as one in twice the
        // number of candidates read so far.
        let seen = cost::float(read) / cost::float(passed).max(0.5);
        let (per_run, candidates) = if read == 0 { (self.per_run, 1.0) } else { (seen, seen) };
        if self.narrow_by.is_empty() || !is_rare(per_run) {
            return 0;
        }
        let entries = cost::entries_for(candidates * cost::float(wanted));
        (entries.round() as usize).min(Self::MAX_ENTRIES)
    }

    /// Checks whether the search examines all runs in the order of their start times, either
    /// without narrowing or with narrowing that only begins if few runs pass. If so, adjacent
    /// copies are read in ranges instead of by key.
    #[must_use]
    pub fn reads_by_time(&self) -> bool {
        self.path.is_by_time() && (self.narrow_by.is_empty() || self.path.may_be_narrowed_later(self.per_run))
    }

    /// Checks whether the plan reads lists that the indexer maintains.
    #[must_use]
    pub fn reads_index(&self) -> bool {
        let any = |lists: &[RunList]| lists.iter().any(RunList::is_indexed);
        match &self.path {
            AccessPath::Ids(_) | AccessPath::AllRuns => false,
            AccessPath::Newest { lists } | AccessPath::Gather { lists } => any(lists) || any(&self.narrow_by),
            AccessPath::Walk(walk) => any(&walk.segments) || any(&self.narrow_by),
        }
    }
}

impl fmt::Display for RunPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path)?;
        if self.started.is_bounded() {
            write!(formatter, "\n  started {}", self.started)?;
        }
        if !self.narrow_by.is_empty() {
            let condition = if is_rare(self.per_run) { "" } else { "if few pass, " };
            write!(formatter, "\n  {condition}narrow by {}", named(&self.narrow_by, " and "))?;
        }
        write!(formatter, "\n  {}", self.cost)?;
        let Some(total) = self.cost.guessed_total else { return Ok(()) };
        write!(formatter, ", if there are {total:.0} runs")
    }
}
