//! The plan of a search.

use std::fmt;

use super::cost::{self, Cost};
use super::list::RunList;
use super::walk::RunWalk;
use crate::range::TimeRange;

/// How the candidates of a search are found. Those with changes that are not indexed yet are candidates on every path.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessPath {
    /// Read these runs; there may be none.
    Ids(Vec<String>),
    /// Read all runs in one range, and sort those that pass.
    Whole,
    /// Read the runs that are in all of these lists, newest first as the lists are, until the page
    /// is full. Without a list, read the list of all.
    Newest {
        /// Lists that are newest first, those of the fewest runs first.
        lists: Vec<RunList>,
    },
    /// Read the runs in the order of these lists until the page is full.
    Walk(RunWalk),
    /// Read the keys of these lists whole and keep the runs that are in all. In the default order,
    /// sort the keys and read runs until the page is full. In any other order, read all and sort
    /// them.
    Gather {
        /// The lists.
        lists: Vec<RunList>,
    },
}

impl AccessPath {
    /// Whether its candidates are all runs, in the order of their times.
    pub(super) fn is_by_time(&self) -> bool {
        match self {
            Self::Newest { lists } => lists.is_empty(),
            Self::Walk(walk) => walk.segments == [RunList::All],
            Self::Ids(_) | Self::Whole | Self::Gather { .. } => false,
        }
    }

    /// Whether it begins as if no list narrowed it. If that turns out wrong, the narrowing lists
    /// are sorted by time. A walk in another order goes on through all.
    pub(super) fn may_be_narrowed_later(&self, per_run: f64) -> bool {
        matches!(self, Self::Newest { .. }) && !is_rare(per_run)
    }
}

impl fmt::Display for AccessPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ids(ids) if ids.is_empty() => formatter.write_str("nothing can pass"),
            Self::Ids(ids) => write!(formatter, "runs {}", ids.join(", ")),
            Self::Whole => formatter.write_str("the whole experiment"),
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

/// How a search is carried out. Whatever the path, the runs found are those that pass the filter,
/// in the order.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// Where to look.
    pub path: AccessPath,
    /// When the runs started that pass. Lists that are newest first need not be read beyond it, and
    /// keys outside of it need not be followed.
    pub started: TimeRange,
    /// Lists that narrow a path in list order, [`AccessPath::Newest`] or [`AccessPath::Walk`], when
    /// few of its candidates pass. Their keys are read whole. From then on, only candidates that
    /// are in all of them are read. [`RunPlan::narrow_limit`] says when. Empty if the path uses all
    /// there is.
    pub narrow_by: Vec<RunList>,
    /// How many candidates are expected for each run that passes.
    pub(super) per_run: f64,
    /// The estimated cost of the path.
    pub cost: Cost,
}

/// Whether so many candidates for each run that passes are too many to read them all.
pub(super) fn is_rare(per_run: f64) -> bool {
    per_run > 3.0
}

impl RunPlan {
    /// More entries are not read, however few runs pass: their keys have to fit into memory.
    const MOST_ENTRIES: usize = 100_000;

    /// How many entries of the lists of [`RunPlan::narrow_by`] may be read, all together. `passed`
    /// of the `read` candidates passed, and `wanted` more have to. The limit is 0 while the path is
    /// good enough, which means that more than one in three pass. If the lists end within the
    /// limit, narrowing the path by them is cheaper. If not, the path goes on as it is, and this
    /// may be asked again.
    ///
    /// Before the first candidate, the limit is the cost of a page of candidates, by an estimate
    /// that may be wrong. After that, it is the cost of going on, by the share that passed so far.
    /// So a search costs at most twice of what it would have, and a page.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and what is beyond is cut")]
    pub fn narrow_limit(&self, read: usize, passed: usize, wanted: usize) -> usize {
        // If none passed so far, one in twice as many may.
        let seen = cost::float(read) / cost::float(passed).max(0.5);
        let (per_run, candidates) = if read == 0 { (self.per_run, 1.0) } else { (seen, seen) };
        if self.narrow_by.is_empty() || !is_rare(per_run) {
            return 0;
        }
        let entries = cost::entries_for(candidates * cost::float(wanted));
        (entries.round() as usize).min(Self::MOST_ENTRIES)
    }

    /// Whether it looks at all runs in the order of their times, and nothing narrows them down, or
    /// not unless few pass. Then they are read as they come, next to each other, and not by their
    /// keys.
    #[must_use]
    pub fn reads_by_time(&self) -> bool {
        self.path.is_by_time() && (self.narrow_by.is_empty() || self.path.may_be_narrowed_later(self.per_run))
    }

    /// Whether it reads lists that the indexer keeps.
    #[must_use]
    pub fn reads_index(&self) -> bool {
        let any = |lists: &[RunList]| lists.iter().any(RunList::is_indexed);
        match &self.path {
            AccessPath::Ids(_) | AccessPath::Whole => false,
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
