//! The options that the index offers for a search, regardless of its contents.

use super::conditions::{PlanCondition, PlanOrder, number_range, times};
use super::run_list::RunList;
use super::run_walk::RunWalk;
use super::text_lists;
use crate::fields::CommonFields;
use crate::range::{NumberRange, TimeRange};

/// Maximum number of lists that a search uses.
const MAX_LISTS: usize = 6;
/// Maximum number of lists that are probed before a path is chosen. Each takes a request and three
/// read units.
const MAX_PROBED_LISTS: usize = 3;

/// The possible access paths of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOptions {
    /// The ids of runs that may pass, if the filter names ids. Empty if the conditions of the
    /// filter contradict each other, so that no run can pass.
    pub ids: Option<Vec<String>>,
    /// Lists that each contain every run that passes the filter, except for runs with changes that
    /// have not been indexed yet. The most selective lists come first.
    pub lists: Vec<RunList>,
    /// The range of start times of runs that pass. Lists that are sorted newest first are only read
    /// within this range.
    pub started: TimeRange,
    /// The lists in the order of the search. `None` if no lists have this order.
    pub walk: Option<RunWalk>,
    /// The number of conditions that cannot be checked with a list, the start time or the id.
    pub(super) unanswered: usize,
    /// Whether the order is that of the list of all runs.
    pub(super) newest_first: bool,
}

impl RunOptions {
    /// Determines the options for the conditions of a filter and for an order.
    #[must_use]
    pub fn of(asks: &[PlanCondition<'_>], sorting: &PlanOrder, fields: &CommonFields) -> Self {
        let (mut lists, mut unanswered) = (Vec::new(), 0);
        for ask in asks {
            let found = lists_of(asks, ask, fields);
            let is_answered = !found.is_empty() || matches!(ask, PlanCondition::Time(_) | PlanCondition::Ids(_));
            unanswered += usize::from(!is_answered);
            for list in found {
                if !lists.contains(&list) {
                    lists.push(list);
                }
            }
        }
        let started = times(asks);
        if started.is_bounded() && !lists.iter().any(RunList::is_newest_first) {
            lists.push(RunList::All);
        }
        lists.sort_by(|left, right| left.guessed_share().total_cmp(&right.guessed_share()));
        lists.truncate(MAX_LISTS);
        let ids = if contradicts_itself(&lists, started) { Some(Vec::new()) } else { ids(asks) };
        let walk = RunWalk::of(asks, sorting, fields);
        Self { ids, lists, started, walk, unanswered, newest_first: sorting.is_newest_first() }
    }

    /// Returns the lists to probe before a path is chosen. Up to
    /// [`ListHead::MAX_ENTRIES`](super::ListHead::MAX_ENTRIES) entries are read from each, and the
    /// search can reuse them.
    #[must_use]
    pub fn probes(&self) -> Vec<RunList> {
        let nothing_to_choose = match &self.walk {
            _ if self.ids.is_some() => true,
            // The walk through the list of all runs needs no probe if no indexed list can narrow
            // it. The runs are then read by time until the page is full.
            Some(walk) => walk.segments == [RunList::All] && !self.lists.iter().any(RunList::is_indexed),
            None => self.lists.is_empty(),
        };
        if nothing_to_choose {
            return Vec::new();
        }
        let mut probes: Vec<_> = self.lists.iter().take(MAX_PROBED_LISTS).cloned().collect();
        // The head of a list shows whether the list is short. If there is no such list, the list of
        // all runs is probed. It is also probed if there is no walk, to estimate the share of runs
        // that a list excludes.
        if (probes.is_empty() || self.walk.is_none()) && !probes.contains(&RunList::All) {
            probes.push(RunList::All);
        }
        probes
    }
}

fn lists_of(asks: &[PlanCondition<'_>], ask: &PlanCondition<'_>, fields: &CommonFields) -> Vec<RunList> {
    match ask {
        PlanCondition::Text { column, test } => text_lists::lists(column, *test, fields),
        PlanCondition::Number { column, .. } => {
            let range = number_range(asks, column).unwrap_or(NumberRange::ANY);
            vec![RunList::ByNumber { column: column.clone(), range }]
        }
        PlanCondition::Time(_) | PlanCondition::Ids(_) | PlanCondition::Other => Vec::new(),
    }
}

/// Returns the ids that pass every condition on ids, or `None` if there is no such condition.
fn ids(asks: &[PlanCondition<'_>]) -> Option<Vec<String>> {
    let named = asks.iter().filter_map(|ask| if let PlanCondition::Ids(ids) = ask { Some(ids) } else { None });
    let ids = named.cloned().reduce(|mut left, right| {
        left.retain(|id| right.contains(id));
        left
    });
    ids.map(|ids| ids.into_iter().collect())
}

fn contradicts_itself(lists: &[RunList], started: TimeRange) -> bool {
    let is_empty = |list: &RunList| matches!(list, RunList::ByNumber { range, .. } if range.is_empty());
    started.is_empty() || lists.iter().any(is_empty)
}
