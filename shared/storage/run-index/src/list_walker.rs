//! A walk that reads, one after another, the lists that provide the order of a search.

use std::collections::{HashSet, VecDeque};

use entities::RunLocation;
use key_schema::{Ascending, KeyRange, Segment, list_positions};
use mlflow_api::Result;
use search::{FirstValue, PlanOrder, PlanSortBy, RunList, RunWalk, SortKey};
use table::Table;

use crate::candidate::Candidate;
use crate::cursor::{HEAD_ENTRIES, ListCursor, MAX_PAGE_ENTRIES, read_page};
use crate::lists::{ListEntry, RunLists, number};

/// Maximum number of runs with a value that are remembered while runs without a value are read. The
/// keys of this many runs fit into memory.
const MAX_LISTED_RUNS: usize = 100_000;

/// A walk through the lists of one partition.
pub struct ListWalker {
    lists: RunLists,
    walk: RunWalk,
    /// Whether the first term of the order is the start time. The groups are then the runs with the
    /// same start time.
    by_time: bool,
    /// Whether runs with the same first value are in the order of the search if they are sorted
    /// newest first.
    ties_are_exact: bool,
    stage: WalkStage,
    buffer: VecDeque<Candidate>,
    /// Number of entries on the next page.
    page: usize,
}

/// Progress of a walk.
enum WalkStage {
    /// Reads the rest of a segment.
    Segment { segment: usize, rest: KeyRange },
    /// Reads a group that is larger than a page, separately and forwards, and then the rest of the
    /// segment.
    Group { segment: usize, group: ListCursor, rest: KeyRange },
    /// Continues with the runs that have no value for the first term of the order, after this
    /// position.
    BeforeWithoutValue { after: Option<String> },
    /// Reads the list of all runs to find those without a value, and skips the runs in `listed`,
    /// which have one and were already returned.
    WithoutValue { all: ListCursor, listed: HashSet<RunLocation> },
    /// Nothing is left.
    End,
}

impl ListWalker {
    /// Creates a walk in an order. It begins after the last run of the previous page, or at the
    /// beginning of the group of that run.
    #[must_use]
    pub fn new(lists: RunLists, walk: RunWalk, sorting: &PlanOrder, after: Option<&SortKey>) -> Self {
        let mut walker = Self {
            lists,
            walk,
            by_time: sorting.by == PlanSortBy::Time,
            ties_are_exact: sorting.ties_are_newest_first,
            stage: WalkStage::End,
            buffer: VecDeque::new(),
            page: HEAD_ENTRIES,
        };
        walker.stage = match after {
            Some(after) => walker.stage_after(after),
            None => walker.stage_of(0),
        };
        walker
    }

    /// Sets the number of entries on the first page.
    #[must_use]
    pub fn with_first_page(mut self, entries: usize) -> Self {
        self.page = entries.clamp(1, MAX_PAGE_ENTRIES);
        self
    }

    /// Returns the stage at the beginning of a segment, or after the last segment.
    fn stage_of(&self, segment: usize) -> WalkStage {
        match self.walk.segments.get(segment) {
            Some(list) => WalkStage::Segment { segment, rest: self.lists.range(list) },
            None => self.before_without_value(None),
        }
    }

    fn before_without_value(&self, after: Option<String>) -> WalkStage {
        if self.walk.missing_follow { WalkStage::BeforeWithoutValue { after } } else { WalkStage::End }
    }

    /// Returns the stage at which a page begins, given the sort key of the last run of the previous
    /// page.
    fn stage_after(&self, after: &SortKey) -> WalkStage {
        let place = after.started_and_id().filter(|_| self.ties_are_exact && !self.by_time);
        let place = place.map(|(started, id)| list_positions::newest_first(started, id));
        let value = after.first_value();
        let segment = value.and_then(|value| Some((self.walk.segment_of(value)?, value)));
        let Some((segment, value)) = segment else { return self.before_without_value(place) };
        let Some(list) = self.walk.segments.get(segment) else { return WalkStage::End };
        let range = self.lists.range(list);
        let group = if self.by_time { time_group(value) } else { value_group(list, value) };
        let Some(group) = group else {
            // The whole list is a single group.
            return WalkStage::Segment { segment, rest: behind(range, place.as_deref()) };
        };
        let is_whole = self.is_whole_text(list, &group);
        let of_group = if is_whole { list_positions::of_value(&group) } else { group };
        let rest_of_group = range.clone().beginning(&of_group);
        let rest_of_group = match place.filter(|_| is_whole) {
            Some(place) => rest_of_group.after(&(of_group.clone() + &place)),
            None => rest_of_group,
        };
        let rest = if self.walk.backwards { range.until(&of_group) } else { range.after_beginning(&of_group) };
        WalkStage::Group { segment, group: ListCursor::new(&self.lists, rest_of_group, HEAD_ENTRIES), rest }
    }

    /// Returns the next run of the walk. Sends one request for each page of a list. Before it
    /// returns the first run without a value, it reads the keys of all lists of the walk, at 25
    /// read units per 1,000 keys.
    pub(crate) async fn next(&mut self, table: &Table) -> Result<Option<Candidate>> {
        loop {
            if let Some(candidate) = self.buffer.pop_front() {
                return Ok(Some(candidate));
            }
            match &mut self.stage {
                WalkStage::Segment { segment, rest } => {
                    let (segment, rest) = (*segment, rest.clone());
                    self.read_page(table, segment, rest).await?;
                }
                WalkStage::Group { segment, group, rest } => {
                    let segment = *segment;
                    match group.next(table).await? {
                        Some(entry) => return Ok(Some(self.candidate(segment, entry))),
                        None => self.stage = WalkStage::Segment { segment, rest: rest.clone() },
                    }
                }
                WalkStage::BeforeWithoutValue { after } => {
                    let range = behind(self.lists.range(&RunList::All), after.as_deref());
                    let listed = self.listed(table).await?;
                    self.stage =
                        WalkStage::WithoutValue { all: ListCursor::new(&self.lists, range, HEAD_ENTRIES), listed };
                }
                WalkStage::WithoutValue { all, listed } => match all.next(table).await? {
                    Some(entry) if listed.contains(&entry.at) => {}
                    Some(entry) => {
                        // All runs without a value form a single group.
                        let segment = self.walk.segments.len();
                        let candidate = Candidate::new(entry, segment, String::new(), self.ties_are_exact);
                        return Ok(Some(candidate.without_value()));
                    }
                    None => self.stage = WalkStage::End,
                },
                WalkStage::End => return Ok(None),
            }
        }
    }

    /// Returns the runs in the lists of the walk, up to [`MAX_LISTED_RUNS`]. The runs in the result
    /// are known to have a value, so they need not be read to find this out.
    async fn listed(&self, table: &Table) -> Result<HashSet<RunLocation>> {
        let mut listed = HashSet::new();
        for list in &self.walk.segments {
            let mut cursor = ListCursor::new(&self.lists, self.lists.range(list), MAX_PAGE_ENTRIES);
            while let Some(entry) = cursor.next(table).await? {
                listed.insert(entry.at);
                if listed.len() >= MAX_LISTED_RUNS {
                    return Ok(listed);
                }
            }
        }
        Ok(listed)
    }

    /// Reads a page of the unread part of a segment into the buffer.
    async fn read_page(&mut self, table: &Table, segment: usize, rest: KeyRange) -> Result<()> {
        let Some(list) = self.walk.segments.get(segment) else {
            self.stage = WalkStage::End;
            return Ok(());
        };
        // A list that is a single group is always read forwards, because the order within a group
        // does not depend on the direction of the first term.
        let backwards = self.walk.backwards && self.has_groups(list);
        let page = read_page(table, self.lists.experiment, &rest, self.page, backwards).await?;
        self.page = (self.page * page.growth()).min(MAX_PAGE_ENTRIES);
        let mut entries = page.entries;
        let end = entries.last().map(|entry| entry.place.clone()).filter(|_| !page.is_last);
        let stage = match end {
            None => self.stage_of(segment + 1),
            Some(end) if !backwards => WalkStage::Segment { segment, rest: rest.after(&end) },
            Some(end) => {
                // The group at the end of this page continues on the next page. Because the list is
                // read backwards, the entries on the next page come before the ones on this page.
                let unfinished = self.group_of(list, &end);
                let of_group = list_positions::of_value(unfinished);
                if entries.first().is_some_and(|first| self.group_of(list, &first.place) == unfinished) {
                    entries.clear();
                    let group = ListCursor::new(&self.lists, rest.clone().beginning(&of_group), self.page);
                    WalkStage::Group { segment, group, rest: rest.until(&of_group) }
                } else {
                    entries.retain(|entry| self.group_of(list, &entry.place) != unfinished);
                    WalkStage::Segment { segment, rest: rest.until_beginning(&of_group) }
                }
            }
        };
        if backwards {
            // The page was read backwards, so the groups are in the right order, but the entries of
            // each group are reversed.
            let is_one_group =
                |a: &ListEntry, b: &ListEntry| self.group_of(list, &a.place) == self.group_of(list, &b.place);
            let groups = entries.chunk_by(is_one_group);
            entries = groups.flat_map(|group| group.iter().rev().cloned()).collect();
        }
        let candidates: VecDeque<_> = entries.into_iter().map(|entry| self.candidate(segment, entry)).collect();
        self.buffer = candidates;
        self.stage = stage;
        Ok(())
    }

    fn candidate(&self, segment: usize, entry: ListEntry) -> Candidate {
        let list = self.walk.segments.get(segment);
        let group = list.map_or("", |list| self.group_of(list, &entry.place));
        let is_whole = list.is_none_or(|list| self.is_whole_text(list, group));
        let limit = list.map_or(usize::MAX, uncut);
        let group = if is_whole { group } else { &group[..group.ceil_char_boundary(limit)] };
        let group = group.to_owned();
        Candidate::new(entry, segment, group, self.ties_are_exact && is_whole)
    }

    /// Checks whether the runs of a list have more than one first value.
    fn has_groups(&self, list: &RunList) -> bool {
        self.by_time || !list.is_newest_first()
    }

    /// Returns the first value in a position of a list.
    fn group_of<'a>(&self, list: &RunList, place: &'a str) -> &'a str {
        if self.has_groups(list) { list_positions::value(place) } else { "" }
    }

    /// Checks whether the text of a group is complete. Otherwise, it may have been truncated.
    fn is_whole_text(&self, list: &RunList, group: &str) -> bool {
        self.by_time || group.len() < uncut(list)
    }
}

/// Returns the length, in bytes, from which the text in a position of a list may have been
/// truncated.
fn uncut(list: &RunList) -> usize {
    match list {
        RunList::ByText { column, .. } => RunLists::uncut(column),
        RunList::All | RunList::ByNumber { .. } | RunList::NotANumber { .. } | RunList::ByToken { .. } => usize::MAX,
    }
}

fn behind(range: KeyRange, place: Option<&str>) -> KeyRange {
    match place {
        Some(place) => range.after(place),
        None => range,
    }
}

/// Encodes a time as a group.
fn time_group(value: FirstValue<'_>) -> Option<String> {
    let FirstValue::Integer(time) = value else { return None };
    Some(list_positions::time(time))
}

/// Encodes a value as a group in the list that is sorted by this value. Returns `None` if the whole
/// list is a single group.
fn value_group(list: &RunList, value: FirstValue<'_>) -> Option<String> {
    match (list, value) {
        (list, _) if list.is_newest_first() => None,
        (_, FirstValue::Float(value)) => Some(number(value)),
        (_, FirstValue::NotANumber) => Some(number(f64::NAN)),
        (RunList::ByText { column, .. }, FirstValue::Text(text)) => Some(RunLists::text(column, text)),
        // The end time of runs. `time_group` handles the start time.
        (RunList::ByText { .. }, FirstValue::Integer(time)) => Some(Ascending(time).text()),
        _ => None,
    }
}
