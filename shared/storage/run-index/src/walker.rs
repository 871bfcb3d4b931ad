//! A walk through the lists that are in the order of a search, one after another.

use std::collections::{HashSet, VecDeque};

use entities::RunLocation;
use key_schema::{Ascending, KeyRange, Segment, place};
use mlflow_api::Result;
use search::{FirstValue, RunList, RunWalk, SortBy, SortKey, Sorting};
use table::Table;

use crate::candidate::Candidate;
use crate::cursor::{Cursor, HEAD, LARGEST_PAGE, read_page};
use crate::lists::{Entry, RunLists, number};

/// Runs with a value that are remembered where those without come: their keys fit into memory.
const MOST_LISTED: usize = 100_000;

/// A walk through the lists of one partition.
pub struct Walker {
    lists: RunLists,
    walk: RunWalk,
    /// The first term of the order is the time: its groups are the runs of one moment.
    by_time: bool,
    /// Whether runs of one first value are in the order of the search when they are newest first.
    ties_are_exact: bool,
    stage: Stage,
    buffer: VecDeque<Candidate>,
    /// Entries of the next page.
    page: usize,
}

/// How far a walk has come.
enum Stage {
    /// It reads the rest of a segment.
    Segment { segment: usize, rest: KeyRange },
    /// It reads a group of more than a page by itself, forwards, and then the rest of the segment.
    Group { segment: usize, group: Cursor, rest: KeyRange },
    /// Next come the runs without a value that the search is ordered by, from this place on.
    BeforeWithoutValue { after: Option<String> },
    /// It reads the list of all runs, and passes over those that have a value: they had their place
    /// in the lists.
    WithoutValue { all: Cursor, listed: HashSet<RunLocation> },
    /// Nothing is left.
    End,
}

impl Walker {
    /// A walk in an order. It begins after a page's last run, or at the beginning of the group of
    /// that run.
    #[must_use]
    pub fn new(lists: RunLists, walk: RunWalk, sorting: &Sorting, after: Option<&SortKey>) -> Self {
        let mut walker = Self {
            lists,
            walk,
            by_time: sorting.by == SortBy::Time,
            ties_are_exact: sorting.ties_are_newest_first,
            stage: Stage::End,
            buffer: VecDeque::new(),
            page: HEAD,
        };
        walker.stage = match after {
            Some(after) => walker.stage_after(after),
            None => walker.stage_of(0),
        };
        walker
    }

    /// The same walk, with a first page of so many entries.
    #[must_use]
    pub fn with_first_page(mut self, entries: usize) -> Self {
        self.page = entries.clamp(1, LARGEST_PAGE);
        self
    }

    /// The beginning of a segment, or the stage after the last one.
    fn stage_of(&self, segment: usize) -> Stage {
        match self.walk.segments.get(segment) {
            Some(list) => Stage::Segment { segment, rest: self.lists.range(list) },
            None => self.before_without_value(None),
        }
    }

    fn before_without_value(&self, after: Option<String>) -> Stage {
        if self.walk.missing_follow { Stage::BeforeWithoutValue { after } } else { Stage::End }
    }

    /// Where a page goes on that begins after this key.
    fn stage_after(&self, after: &SortKey) -> Stage {
        let place = after.started_and_id().filter(|_| self.ties_are_exact && !self.by_time);
        let place = place.map(|(started, id)| place::newest_first(started, id));
        let value = after.first_value();
        let segment = value.and_then(|value| Some((self.walk.segment_of(value)?, value)));
        let Some((segment, value)) = segment else { return self.before_without_value(place) };
        let Some(list) = self.walk.segments.get(segment) else { return Stage::End };
        let range = self.lists.range(list);
        let group = if self.by_time { time_group(value) } else { value_group(list, value) };
        let Some(group) = group else {
            // The list is one group.
            return Stage::Segment { segment, rest: behind(range, place.as_deref()) };
        };
        let is_whole = self.is_whole_text(list, &group);
        let of_group = if is_whole { place::of_value(&group) } else { group };
        let rest_of_group = range.clone().beginning(&of_group);
        let rest_of_group = match place.filter(|_| is_whole) {
            Some(place) => rest_of_group.after(&(of_group.clone() + &place)),
            None => rest_of_group,
        };
        let rest = if self.walk.backwards { range.until(&of_group) } else { range.after_beginning(&of_group) };
        Stage::Group { segment, group: Cursor::new(&self.lists, rest_of_group, HEAD), rest }
    }

    /// The next run of the walk. One request for each page of a list; and where the runs without a
    /// value begin, the keys of the lists, 25 read units per 1,000.
    pub(crate) async fn next(&mut self, table: &Table) -> Result<Option<Candidate>> {
        loop {
            if let Some(candidate) = self.buffer.pop_front() {
                return Ok(Some(candidate));
            }
            match &mut self.stage {
                Stage::Segment { segment, rest } => {
                    let (segment, rest) = (*segment, rest.clone());
                    self.read_page(table, segment, rest).await?;
                }
                Stage::Group { segment, group, rest } => {
                    let segment = *segment;
                    match group.next(table).await? {
                        Some(entry) => return Ok(Some(self.candidate(segment, entry))),
                        None => self.stage = Stage::Segment { segment, rest: rest.clone() },
                    }
                }
                Stage::BeforeWithoutValue { after } => {
                    let range = behind(self.lists.range(&RunList::All), after.as_deref());
                    let listed = self.listed(table).await?;
                    self.stage = Stage::WithoutValue { all: Cursor::new(&self.lists, range, HEAD), listed };
                }
                Stage::WithoutValue { all, listed } => match all.next(table).await? {
                    Some(entry) if listed.contains(&entry.at) => {}
                    Some(entry) => {
                        // All are one group.
                        let segment = self.walk.segments.len();
                        let candidate = Candidate::new(entry, segment, String::new(), self.ties_are_exact);
                        return Ok(Some(candidate.without_value()));
                    }
                    None => self.stage = Stage::End,
                },
                Stage::End => return Ok(None),
            }
        }
    }

    /// The runs in the lists of the walk, as many as are worth knowing: each saves reading a run.
    async fn listed(&self, table: &Table) -> Result<HashSet<RunLocation>> {
        let mut listed = HashSet::new();
        for list in &self.walk.segments {
            let mut cursor = Cursor::new(&self.lists, self.lists.range(list), LARGEST_PAGE);
            while let Some(entry) = cursor.next(table).await? {
                listed.insert(entry.at);
                if listed.len() >= MOST_LISTED {
                    return Ok(listed);
                }
            }
        }
        Ok(listed)
    }

    /// Reads a page of the rest of a segment into the buffer.
    async fn read_page(&mut self, table: &Table, segment: usize, rest: KeyRange) -> Result<()> {
        let Some(list) = self.walk.segments.get(segment) else {
            self.stage = Stage::End;
            return Ok(());
        };
        // A list that is one group is never read from its end: its order is the same for either direction of the first term.
        let backwards = self.walk.backwards && self.has_groups(list);
        let page = read_page(table, self.lists.experiment, &rest, self.page, backwards).await?;
        self.page = (self.page * page.growth()).min(LARGEST_PAGE);
        let mut entries = page.entries;
        let end = entries.last().map(|entry| entry.place.clone()).filter(|_| !page.is_last);
        let stage = match end {
            None => self.stage_of(segment + 1),
            Some(end) if !backwards => Stage::Segment { segment, rest: rest.after(&end) },
            Some(end) => {
                // The group at the end of the page goes on before it, and its first entries come first.
                let unfinished = self.group_of(list, &end);
                let of_group = place::of_value(unfinished);
                if entries.first().is_some_and(|first| self.group_of(list, &first.place) == unfinished) {
                    entries.clear();
                    let group = Cursor::new(&self.lists, rest.clone().beginning(&of_group), self.page);
                    Stage::Group { segment, group, rest: rest.until(&of_group) }
                } else {
                    entries.retain(|entry| self.group_of(list, &entry.place) != unfinished);
                    Stage::Segment { segment, rest: rest.until_beginning(&of_group) }
                }
            }
        };
        if backwards {
            // Groups come in the right order, but each of them from its end.
            let is_one_group = |a: &Entry, b: &Entry| self.group_of(list, &a.place) == self.group_of(list, &b.place);
            let groups = entries.chunk_by(is_one_group);
            entries = groups.flat_map(|group| group.iter().rev().cloned()).collect();
        }
        let candidates: VecDeque<_> = entries.into_iter().map(|entry| self.candidate(segment, entry)).collect();
        self.buffer = candidates;
        self.stage = stage;
        Ok(())
    }

    fn candidate(&self, segment: usize, entry: Entry) -> Candidate {
        let list = self.walk.segments.get(segment);
        let group = list.map_or("", |list| self.group_of(list, &entry.place));
        let is_whole = list.is_none_or(|list| self.is_whole_text(list, group));
        let limit = list.map_or(usize::MAX, uncut);
        let group = if is_whole { group } else { &group[..group.ceil_char_boundary(limit)] };
        let group = group.to_owned();
        Candidate::new(entry, segment, group, self.ties_are_exact && is_whole)
    }

    /// Whether the runs of a list have more than one first value.
    fn has_groups(&self, list: &RunList) -> bool {
        self.by_time || !list.is_newest_first()
    }

    /// The first value in a place of a list.
    fn group_of<'a>(&self, list: &RunList, place: &'a str) -> &'a str {
        if self.has_groups(list) { place::value(place) } else { "" }
    }

    /// Whether a group's text is all of it, and not one of those that may have been cut.
    fn is_whole_text(&self, list: &RunList, group: &str) -> bool {
        self.by_time || group.len() < uncut(list)
    }
}

/// From this length on, the text in a place of a list may have been cut.
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

/// A time as a group.
fn time_group(value: FirstValue<'_>) -> Option<String> {
    let FirstValue::Integer(time) = value else { return None };
    Some(place::time(time))
}

/// A value as a group of a list by it; `None` if the list has one only.
fn value_group(list: &RunList, value: FirstValue<'_>) -> Option<String> {
    match (list, value) {
        (list, _) if list.is_newest_first() => None,
        (_, FirstValue::Float(value)) => Some(number(value)),
        (_, FirstValue::NotANumber) => Some(number(f64::NAN)),
        (RunList::ByText { column, .. }, FirstValue::Text(text)) => Some(RunLists::text(column, text)),
        // A time of runs other than that of their beginning.
        (RunList::ByText { .. }, FirstValue::Integer(time)) => Some(Ascending(time).text()),
        _ => None,
    }
}
