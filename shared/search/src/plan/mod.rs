//! How a search of runs is carried out.
//!
//! Planning takes two steps, and both are functions of their arguments. [`Options::of`] says what the index offers; the store
//! then reads the beginnings of the lists that [`Options::probes`] names, and [`choose`] takes the cheapest path. Every path
//! brings candidates, which are checked against the whole filter: lists may hold too much, and estimates may be wrong, but
//! not the answer.

mod choose;
mod column;
mod cost;
mod heads;
mod list;
mod numbers;
mod options;
#[cfg(test)]
mod tests;
mod walk;

use std::fmt;

use mlflow_api::tracking::ViewType;

use crate::filter::RunFilter;
use crate::fingerprint::view_name;
use crate::order_by::RunOrder;

pub use choose::choose;
pub use cost::Cost;
pub use heads::{Head, Heads};
pub use list::{Level, MetricRange, RunList, TextRange, TimeRange};
pub use options::Options;
pub use walk::Walk;

/// How the candidates of a search are found. Those that the indexer is not through with are candidates on every path.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessPath {
    /// Read these runs; there may be none.
    Ids(Vec<String>),
    /// Read all runs of the experiment in one range, and sort those that pass.
    Whole,
    /// Read the runs that stand in all of these lists, newest first as the lists are, until the page is full. Without a
    /// list, the list of all runs.
    Newest {
        /// Lists that are newest first, those of the fewest runs first.
        lists: Vec<RunList>,
    },
    /// Read the runs in the order of these lists until the page is full.
    Walk(Walk),
    /// Read the keys of these lists whole and keep the runs that stand in all. If the order is the default one, sort the keys
    /// and read runs until the page is full; if not, read all and sort them.
    Gather {
        /// The lists.
        lists: Vec<RunList>,
    },
}

impl fmt::Display for AccessPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ids(ids) if ids.is_empty() => formatter.write_str("no run can pass"),
            Self::Ids(ids) => write!(formatter, "runs {}", ids.join(", ")),
            Self::Whole => formatter.write_str("the whole experiment"),
            Self::Newest { lists } if lists.is_empty() => formatter.write_str("newest first"),
            Self::Newest { lists } => write!(formatter, "newest first of {}", named(lists, " and ")),
            Self::Walk(walk) => write!(formatter, "{walk}"),
            Self::Gather { lists } => write!(formatter, "gather {}", named(lists, " and ")),
        }
    }
}

impl fmt::Display for Walk {
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

/// A search of runs, ready to be carried out. Whatever the path, the runs found are those that pass the filter and the
/// view, in the order.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// Where to look.
    pub path: AccessPath,
    /// When the runs started that pass. Lists that are newest first need not be read beyond it, and keys outside of it need
    /// not be followed.
    pub started: TimeRange,
    /// Lists that a path in list order, [`AccessPath::Newest`] or [`AccessPath::Walk`], is narrowed by when few of its
    /// candidates pass: their keys are read whole, and from then on only those candidates are read that stand in all of
    /// them. [`RunPlan::narrow_limit`] says when. Empty if the path uses all there is.
    pub narrow_by: Vec<RunList>,
    /// How many candidates are expected for each run that passes.
    per_run: f64,
    /// What the path costs, estimated.
    pub cost: Cost,
    /// What is checked on each candidate.
    pub filter: RunFilter,
    /// The order of the answer.
    pub order: RunOrder,
    /// Whether deleted runs are seen.
    pub view: ViewType,
}

/// Whether so many candidates for each run that passes are too many to read them all.
fn is_rare(per_run: f64) -> bool {
    per_run > 3.0
}

impl RunPlan {
    /// More entries are not read, however few runs pass: their keys have to fit into memory.
    const MOST_ENTRIES: usize = 100_000;

    /// How many entries of the lists of [`RunPlan::narrow_by`] may be read, all together, after `read` candidates of which
    /// `passed` passed, while `wanted` more have to. 0 while the path is good enough: more than one in three passes. If the
    /// lists end within the limit, the path is narrowed by them, and that is cheaper. If not, it goes on as it is, and this
    /// may be asked again.
    ///
    /// Before the first candidate, what is expected counts, which may be wrong: the limit is what a page of candidates
    /// costs. After that, what was seen counts, and the limit is what going on would cost. So a search costs at most twice of
    /// what it would have, and a page.
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
        if !self.filter.predicates.is_empty() {
            write!(formatter, "\n  keep {}", self.filter)?;
        }
        write!(formatter, "\n  view {}\n  order {}", view_name(self.view), self.order)
    }
}
