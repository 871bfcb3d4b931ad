//! Cost estimates of access paths. A wrong estimate makes a search more expensive, but does not
//! change its result.

use std::fmt;

pub(super) use super::list_heads::float;
use super::list_heads::{ListHead, ListHeads};
use super::options::RunOptions;
use super::run_list::RunList;

/// Read units for reading a run by key. A run is read as a single item, its copy.
const UNITS_PER_READ: f64 = 1.0;
/// Read units per run when many runs are read by time in one range. Adjacent copies share read
/// units.
const UNITS_PER_RANGE_READ: f64 = 0.3;
/// Read units per entry of a list.
const UNITS_PER_ENTRY: f64 = 0.025;
/// Number of read units that are considered as expensive as the latency of one request.
const UNITS_PER_REQUEST: f64 = 2.0;
/// Number of runs that are read by key in one request.
const READ_BATCH: f64 = 100.0;
/// Read units of one request for a range, which returns up to 1 MB.
const RANGE_BATCH: f64 = 256.0;
/// Assumed number of runs if only a lower bound is known. With fewer runs, any path would be cheap.
/// With more, gathering would still be cheap, but reading the whole experiment would not.
const UNKNOWN_TOTAL: f64 = 10_000.0;
/// Assumed share of runs that pass an unknown condition.
const UNKNOWN_SHARE: f64 = 0.5;
/// Lower bound of all estimated shares.
const MIN_SHARE: f64 = 0.001;

/// The estimated reads of a search, not counting the probes of list heads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlanCost {
    /// Read units.
    pub units: f64,
    /// Number of requests, both sequential and concurrent.
    pub requests: f64,
    /// The number of runs that was assumed, if the cost depends on a guess.
    pub guessed_total: Option<f64>,
}

impl PlanCost {
    /// Returns the value by which paths are compared.
    pub(super) fn weight(&self) -> f64 {
        self.units + UNITS_PER_REQUEST * self.requests
    }
}

impl fmt::Display for PlanCost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = if (0.5..1.5).contains(&self.requests) { "request" } else { "requests" };
        write!(formatter, "about {:.0} read units in {:.0} {requests}", self.units, self.requests)
    }
}

/// The estimates that the plan of a search is based on.
pub(super) struct Estimates<'a> {
    options: &'a RunOptions,
    heads: &'a ListHeads,
    page_size: f64,
    /// The estimated number of runs that start per ms, counting all runs.
    rate: Option<f64>,
}

impl<'a> Estimates<'a> {
    pub(super) fn new(options: &'a RunOptions, heads: &'a ListHeads, page_size: usize) -> Self {
        // If the head of the list of all runs was not read, the rate is extrapolated from the list
        // with the highest rate.
        let rates = heads.lists().filter_map(|list| Some((list, heads.rate(list)?)));
        let fastest = rates.max_by(|(_, left), (_, right)| left.total_cmp(right));
        let rate = heads.rate(&RunList::All).or_else(|| fastest.map(|(list, rate)| rate / list.guessed_share()));
        Self { options, heads, page_size: float(page_size), rate }
    }

    /// Returns the number of runs, if it is known. It is unknown if the filter limits the start
    /// time, because the list of all runs is then only read within that range.
    pub(super) fn known_total(&self) -> Option<f64> {
        if self.options.started.is_bounded() {
            return None;
        }
        self.heads.length(&RunList::All).map(float)
    }

    fn total(&self) -> f64 {
        self.known_total().unwrap_or(UNKNOWN_TOTAL)
    }

    /// Returns the estimated share of runs that a list contains.
    pub(super) fn share(&self, list: &RunList) -> f64 {
        let share = match (self.heads.length(list), self.heads.rate(list), self.rate) {
            (Some(length), _, _) => float(length) / self.total().max(1.0),
            (None, Some(rate), Some(all)) => rate / all,
            _ => list.guessed_share(),
        };
        let known = self.heads.of(list).map_or(0.0, |head| float(head.entries) / self.total().max(1.0));
        share.max(known).clamp(MIN_SHARE, 1.0)
    }

    /// Returns the estimated number of entries of a list.
    fn length(&self, list: &RunList) -> f64 {
        let is_longer = self.heads.of(list).is_some_and(|head| !head.complete);
        let least = if is_longer { float(ListHead::MAX_ENTRIES + 1) } else { 0.0 };
        self.heads.length(list).map_or_else(|| (self.share(list) * self.total()).max(least), float)
    }

    /// Returns the estimated share of runs that are in all of the lists. Because the conditions of
    /// a filter are rarely independent, each list after the first is assumed to exclude at most
    /// half of the runs.
    fn joint_share(&self, lists: &[RunList]) -> f64 {
        let mut shares: Vec<_> = lists.iter().map(|list| self.share(list)).collect();
        shares.sort_by(f64::total_cmp);
        let joint = |(place, share): (usize, &f64)| if place == 0 { *share } else { share.max(0.5) };
        shares.iter().enumerate().map(joint).product()
    }

    /// Returns the estimated number of runs that are in all of the lists.
    fn joint_length(&self, lists: &[RunList]) -> f64 {
        let shortest = lists.iter().map(|list| self.length(list)).fold(f64::INFINITY, f64::min);
        (self.joint_share(lists) * self.total()).min(shortest)
    }

    /// Returns the estimated number of runs in these lists that are examined for each run that
    /// passes the filter.
    pub(super) fn per_run(&self, lists: &[RunList]) -> f64 {
        let others = self.options.lists.iter().filter(|list| !lists.contains(list));
        let all: Vec<_> = lists.iter().chain(others).cloned().collect();
        let unlisted = (0..self.options.unanswered).fold(1.0, |share, _| share * UNKNOWN_SHARE);
        let passing = self.joint_share(&all) * unlisted / self.joint_share(lists);
        1.0 / passing.clamp(MIN_SHARE, 1.0)
    }

    /// Returns the estimated number of runs in these lists that are examined to fill a page.
    fn candidates(&self, lists: &[RunList]) -> f64 {
        (self.page_size * self.per_run(lists)).min(self.joint_length(lists))
    }

    pub(super) fn whole(&self) -> PlanCost {
        let cost = entries(self.total() * UNITS_PER_RANGE_READ / UNITS_PER_ENTRY);
        PlanCost { guessed_total: self.known_total().is_none().then_some(UNKNOWN_TOTAL), ..cost }
    }

    /// Returns the cost of reading these lists side by side until a page is full. A run is only
    /// read if it is in all of these lists and in all lists of `narrowed_by`.
    pub(super) fn in_order(&self, lists: &[RunList], narrowed_by: &[RunList]) -> PlanCost {
        let joint = self.joint_share(lists);
        let candidates = self.candidates(lists);
        let part = |list: &RunList| entries((candidates * self.share(list) / joint).min(self.length(list)));
        let whole = narrowed_by.iter().map(|list| entries(self.length(list)));
        let read = self.candidates(&[lists, narrowed_by].concat()).min(candidates);
        lists.iter().map(part).chain(whole).fold(reads(read), plus)
    }

    /// Returns the cost of reading runs by time until a page is full.
    pub(super) fn by_time(&self) -> PlanCost {
        entries(self.candidates(&[RunList::All]) * UNITS_PER_RANGE_READ / UNITS_PER_ENTRY)
    }

    pub(super) fn gather(&self, lists: &[RunList]) -> PlanCost {
        let read = if self.options.newest_first { self.candidates(lists) } else { self.joint_length(lists) };
        let cost = lists.iter().map(|list| entries(self.length(list))).fold(reads(read), plus);
        let is_guess = self.known_total().is_none() && lists.iter().any(|list| self.heads.length(list).is_none());
        PlanCost { guessed_total: is_guess.then_some(UNKNOWN_TOTAL), ..cost }
    }
}

/// Returns the number of list entries that cost as much as reading `candidates` runs that fail the
/// filter.
pub(super) fn entries_for(candidates: f64) -> f64 {
    candidates * (UNITS_PER_ENTRY + UNITS_PER_READ) / UNITS_PER_ENTRY
}

/// Returns the cost of reading `count` runs by key.
pub(super) fn reads_of(count: usize) -> PlanCost {
    reads(float(count))
}

fn reads(count: f64) -> PlanCost {
    PlanCost { units: count * UNITS_PER_READ, requests: (count / READ_BATCH).ceil(), guessed_total: None }
}

fn entries(count: f64) -> PlanCost {
    let units = count * UNITS_PER_ENTRY;
    PlanCost { units, requests: (units / RANGE_BATCH).ceil().max(1.0), guessed_total: None }
}

fn plus(left: PlanCost, right: PlanCost) -> PlanCost {
    PlanCost { units: left.units + right.units, requests: left.requests + right.requests, guessed_total: None }
}
