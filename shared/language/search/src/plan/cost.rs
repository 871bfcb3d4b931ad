//! The cost of a path. All of it is estimated: a wrong estimate makes a search dearer, never its
//! answer wrong.

use std::fmt;

pub(super) use super::heads::float;
use super::heads::{Head, Heads};
use super::list::RunList;
use super::options::RunOptions;

/// Read units of a run that is read by its key: its copy is one item.
const READ: f64 = 1.0;
/// Read units of a run where many are read in one range, by time: copies next to each other share
/// their units.
const READ_IN_RANGE: f64 = 0.3;
/// Read units of an entry of a list.
const ENTRY: f64 = 0.025;
/// The read units that the time of a request is worth.
const REQUEST: f64 = 2.0;
/// How many runs are read by their keys in one request.
const READ_BATCH: f64 = 100.0;
/// How many read units a range brings per request: 1 MB.
const RANGE_BATCH: f64 = 256.0;
/// How many runs there are taken to be if all that is known is that they are more than were looked
/// at. With fewer, every path is cheap; with more, gathering is, and reading whole is not.
const UNKNOWN_TOTAL: f64 = 10_000.0;
/// The part of the runs that is taken to pass an unknown condition.
const UNKNOWN_SHARE: f64 = 0.5;
/// No estimate says that fewer pass.
const LEAST_SHARE: f64 = 0.001;

/// The estimated reads of a search, without the probed heads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Read units.
    pub units: f64,
    /// Requests, whether sent one after another or at once.
    pub requests: f64,
    /// How many runs there were taken to be, if that is a guess and the cost grows with it.
    pub guessed_total: Option<f64>,
}

impl Cost {
    /// The measure that paths are compared by.
    pub(super) fn weight(&self) -> f64 {
        self.units + REQUEST * self.requests
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = if (0.5..1.5).contains(&self.requests) { "request" } else { "requests" };
        write!(formatter, "about {:.0} read units in {:.0} {requests}", self.units, self.requests)
    }
}

/// Estimates for one search.
pub(super) struct Estimates<'a> {
    options: &'a RunOptions,
    heads: &'a Heads,
    page_size: f64,
    /// Runs per ms, of all.
    rate: Option<f64>,
}

impl<'a> Estimates<'a> {
    pub(super) fn new(options: &'a RunOptions, heads: &'a Heads, page_size: usize) -> Self {
        // Without the list of all, the rate is estimated from the list with the highest one.
        let rates = heads.lists().filter_map(|list| Some((list, heads.rate(list)?)));
        let fastest = rates.max_by(|(_, left), (_, right)| left.total_cmp(right));
        let rate = heads.rate(&RunList::All).or_else(|| fastest.map(|(list, rate)| rate / list.guessed_share()));
        Self { options, heads, page_size: float(page_size), rate }
    }

    /// How many runs there are, if that is known. The list of all may have been read from some time
    /// on only.
    pub(super) fn known_total(&self) -> Option<f64> {
        if self.options.started.is_bounded() {
            return None;
        }
        self.heads.length(&RunList::All).map(float)
    }

    fn total(&self) -> f64 {
        self.known_total().unwrap_or(UNKNOWN_TOTAL)
    }

    /// The part of the runs that a list holds.
    pub(super) fn share(&self, list: &RunList) -> f64 {
        let share = match (self.heads.length(list), self.heads.rate(list), self.rate) {
            (Some(length), _, _) => float(length) / self.total().max(1.0),
            (None, Some(rate), Some(all)) => rate / all,
            _ => list.guessed_share(),
        };
        let known = self.heads.of(list).map_or(0.0, |head| float(head.entries) / self.total().max(1.0));
        share.max(known).clamp(LEAST_SHARE, 1.0)
    }

    /// How many entries a list has.
    fn length(&self, list: &RunList) -> f64 {
        let is_longer = self.heads.of(list).is_some_and(|head| !head.complete);
        let least = if is_longer { float(Head::ENTRIES + 1) } else { 0.0 };
        self.heads.length(list).map_or_else(|| (self.share(list) * self.total()).max(least), float)
    }

    /// The part of the runs that are in all the lists. Conditions of a filter are seldom
    /// independent. So each further list is taken to leave out half at most.
    fn joint_share(&self, lists: &[RunList]) -> f64 {
        let mut shares: Vec<_> = lists.iter().map(|list| self.share(list)).collect();
        shares.sort_by(f64::total_cmp);
        let joint = |(place, share): (usize, &f64)| if place == 0 { *share } else { share.max(0.5) };
        shares.iter().enumerate().map(joint).product()
    }

    /// How many runs are in all the lists.
    fn joint_length(&self, lists: &[RunList]) -> f64 {
        let shortest = lists.iter().map(|list| self.length(list)).fold(f64::INFINITY, f64::min);
        (self.joint_share(lists) * self.total()).min(shortest)
    }

    /// How many of the runs in these lists are looked at for each one that passes.
    pub(super) fn per_run(&self, lists: &[RunList]) -> f64 {
        let others = self.options.lists.iter().filter(|list| !lists.contains(list));
        let all: Vec<_> = lists.iter().chain(others).cloned().collect();
        let unlisted = (0..self.options.unanswered).fold(1.0, |share, _| share * UNKNOWN_SHARE);
        let passing = self.joint_share(&all) * unlisted / self.joint_share(lists);
        1.0 / passing.clamp(LEAST_SHARE, 1.0)
    }

    /// How many of the runs in these lists are looked at until a page is full.
    fn candidates(&self, lists: &[RunList]) -> f64 {
        (self.page_size * self.per_run(lists)).min(self.joint_length(lists))
    }

    pub(super) fn whole(&self) -> Cost {
        let cost = entries(self.total() * READ_IN_RANGE / ENTRY);
        Cost { guessed_total: self.known_total().is_none().then_some(UNKNOWN_TOTAL), ..cost }
    }

    /// The cost of reading these lists at once until a page is full. Runs are read if they are
    /// in all of these lists, and in all that narrow them.
    pub(super) fn in_order(&self, lists: &[RunList], narrowed_by: &[RunList]) -> Cost {
        let joint = self.joint_share(lists);
        let candidates = self.candidates(lists);
        let part = |list: &RunList| entries((candidates * self.share(list) / joint).min(self.length(list)));
        let whole = narrowed_by.iter().map(|list| entries(self.length(list)));
        let read = self.candidates(&[lists, narrowed_by].concat()).min(candidates);
        lists.iter().map(part).chain(whole).fold(reads(read), plus)
    }

    /// The cost of reading runs by time, until a page is full.
    pub(super) fn by_time(&self) -> Cost {
        entries(self.candidates(&[RunList::All]) * READ_IN_RANGE / ENTRY)
    }

    pub(super) fn gather(&self, lists: &[RunList]) -> Cost {
        let read = if self.options.newest_first { self.candidates(lists) } else { self.joint_length(lists) };
        let cost = lists.iter().map(|list| entries(self.length(list))).fold(reads(read), plus);
        let is_guess = self.known_total().is_none() && lists.iter().any(|list| self.heads.length(list).is_none());
        Cost { guessed_total: is_guess.then_some(UNKNOWN_TOTAL), ..cost }
    }
}

/// How many entries of lists cost as much as so many candidates that do not pass.
pub(super) fn entries_for(candidates: f64) -> f64 {
    candidates * (ENTRY + READ) / ENTRY
}

/// The cost of reading so many runs by their keys.
pub(super) fn reads_of(count: usize) -> Cost {
    reads(float(count))
}

fn reads(count: f64) -> Cost {
    Cost { units: count * READ, requests: (count / READ_BATCH).ceil(), guessed_total: None }
}

fn entries(count: f64) -> Cost {
    let units = count * ENTRY;
    Cost { units, requests: (units / RANGE_BATCH).ceil().max(1.0), guessed_total: None }
}

fn plus(left: Cost, right: Cost) -> Cost {
    Cost { units: left.units + right.units, requests: left.requests + right.requests, guessed_total: None }
}
