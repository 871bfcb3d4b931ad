//! What the index offers a search, whatever is in it.

use std::collections::BTreeSet;

use super::column::{Column, range};
use super::cost::guessed_share;
use super::list::{MetricRange, RunList, TextRange, TimeRange};
use super::numbers::{metric_range, start_times};
use super::walk::Walk;
use crate::fields::IndexedFields;
use crate::filter::{RunFilter, RunNumber, RunPredicate, RunText, TextTest};
use crate::order_by::RunOrder;

/// How many lists a search may use.
const LISTS: usize = 6;
/// How many lists are looked at before a path is chosen. Each is a request and three read units.
const PROBES: usize = 3;

/// The ways to the runs of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The runs that may pass, if the filter names them; none of them if it contradicts itself.
    pub ids: Option<Vec<String>>,
    /// Lists in each of which every run stands that passes and that the indexer is through with; the most promising first.
    pub lists: Vec<RunList>,
    /// When the runs that pass started. Lists that are newest first are read only so far.
    pub started: TimeRange,
    /// Lists in the order of the search.
    pub walk: Option<Walk>,
    /// How many predicates no list, time or id answers.
    pub(super) unlisted: usize,
    /// Whether the order is the default one.
    pub(super) newest_first: bool,
}

impl Options {
    /// What the index offers.
    #[must_use]
    pub fn of(filter: &RunFilter, order: &RunOrder, fields: &IndexedFields) -> Self {
        let (mut lists, mut unlisted) = (Vec::new(), 0);
        for predicate in &filter.predicates {
            let found = lists_of(filter, predicate, fields);
            let is_listed = !found.is_empty() || is_start_time(predicate) || ids_of(predicate).is_some();
            unlisted += usize::from(!is_listed);
            for list in found {
                if !lists.contains(&list) {
                    lists.push(list);
                }
            }
        }
        let started = start_times(filter);
        if started.is_bounded() && !lists.iter().any(RunList::is_newest_first) {
            lists.push(RunList::Runs);
        }
        lists.sort_by(|left, right| guessed_share(left).total_cmp(&guessed_share(right)));
        lists.truncate(LISTS);
        let ids = if contradicts_itself(&lists, started) { Some(Vec::new()) } else { ids(filter) };
        let newest_first = *order == RunOrder::default();
        Self { ids, lists, started, walk: Walk::of(filter, order, fields), unlisted, newest_first }
    }

    /// The lists whose first entries, up to [`Head::ENTRIES`](super::Head::ENTRIES) of them, are to be read before a path is
    /// chosen. The path may begin with what was read.
    #[must_use]
    pub fn probes(&self) -> Vec<RunList> {
        let has_filter = !self.lists.is_empty() || self.unlisted > 0;
        let nothing_to_choose = match &self.walk {
            _ if self.ids.is_some() => true,
            Some(_) => self.newest_first && !has_filter,
            None => self.lists.is_empty(),
        };
        if nothing_to_choose {
            return Vec::new();
        }
        let mut probes: Vec<_> = self.lists.iter().take(PROBES).cloned().collect();
        // Lists say by themselves whether they are short. Without one, the experiment has to; and without a walk, what
        // counts is how much of the experiment a list leaves out.
        if (probes.is_empty() || self.walk.is_none()) && !probes.contains(&RunList::Runs) {
            probes.push(RunList::Runs);
        }
        probes
    }
}

fn lists_of(filter: &RunFilter, predicate: &RunPredicate, fields: &IndexedFields) -> Vec<RunList> {
    if let RunPredicate::Metric { key, .. } = predicate {
        let range = metric_range(filter, key).unwrap_or(MetricRange::ANY);
        return vec![RunList::ByMetric { key: key.clone(), range }];
    }
    Column::of_predicate(predicate).map_or_else(Vec::new, |(column, asked)| column.lists(asked, fields))
}

fn is_start_time(predicate: &RunPredicate) -> bool {
    matches!(predicate, RunPredicate::Number { attribute: RunNumber::StartTime, .. })
}

/// The ids that pass every predicate that names some.
fn ids(filter: &RunFilter) -> Option<Vec<String>> {
    let ids = filter.predicates.iter().filter_map(ids_of).reduce(|mut left, right| {
        left.retain(|id| right.contains(id));
        left
    });
    ids.map(|ids| ids.into_iter().collect())
}

fn ids_of(predicate: &RunPredicate) -> Option<BTreeSet<String>> {
    let RunPredicate::Text { attribute: RunText::RunId, test } = predicate else { return None };
    match (test, range(test)) {
        (TextTest::In(ids), _) => Some(ids.clone()),
        (_, TextRange::Equal(id)) => Some(BTreeSet::from([id])),
        _ => None,
    }
}

fn contradicts_itself(lists: &[RunList], started: TimeRange) -> bool {
    let is_empty = |list: &RunList| matches!(list, RunList::ByMetric { range, .. } if range.is_empty());
    started.is_empty() || lists.iter().any(is_empty)
}
