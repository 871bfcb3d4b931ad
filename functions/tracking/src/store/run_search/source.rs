//! Where candidates come from: the lists of one experiment, in the order of the search.

use std::cmp::Ordering;
use std::collections::{HashSet, VecDeque};

use entities::RunLocation;
use futures::future::try_join_all;
use key_schema::place;
use mlflow_api::{Result, RunId};
use search::{FirstValue, RunList, RunNumber, RunOrder, RunSortBy, SortKey, Term, Walk};
use table::Table;

use super::list::{Cursor, Entry, HEAD, Keys, LARGEST_PAGE, metric_key, text_key, uncut};
use super::scope::ListsOf;

/// Runs with a value that are remembered where those without come: their keys fit into memory.
const MOST_LISTED: usize = 100_000;

/// A run that may be in the answer.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) at: RunLocation,
    /// When the run began, in ms.
    pub(super) started: i64,
    rank: Rank,
    /// It stands behind all runs that have what the search is ordered by.
    pub(super) is_in_tail: bool,
}

/// Where a candidate stands among those of all experiments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rank {
    /// Which list.
    segment: usize,
    /// Its first value, in the form of keys. Candidates of one group are next to each other.
    group: String,
    /// Within its group: newest first.
    place: String,
    /// Whether places in the group are the order of the search.
    is_exact: bool,
}

impl Candidate {
    /// A candidate among those of lists that were read whole: all are one group, in the order of the search or not.
    pub(super) fn gathered(entry: Entry, is_exact: bool) -> Self {
        let rank = Rank { segment: 0, group: String::new(), place: entry.place(), is_exact };
        Self { at: entry.at, started: entry.started, rank, is_in_tail: false }
    }

    /// Where it stands by start time.
    pub(super) fn place(&self) -> &str {
        &self.rank.place
    }

    /// Whether a page may end before this candidate and after the other.
    pub(super) fn may_end_before(&self, last: &Self) -> bool {
        let (a, b) = (&self.rank, &last.rank);
        (a.segment, &a.group) != (b.segment, &b.group) || (a.is_exact && b.is_exact)
    }

    /// The order of candidates; groups in descending order of their keys if the lists are read backwards.
    pub(super) fn order(&self, other: &Self, backwards: bool) -> Ordering {
        let groups = self.rank.group.cmp(&other.rank.group);
        let groups = if backwards { groups.reverse() } else { groups };
        self.rank.segment.cmp(&other.rank.segment).then(groups).then_with(|| self.rank.place.cmp(&other.rank.place))
    }
}

/// The candidates of one experiment.
pub(super) enum Source {
    /// Runs that stand in all of some lists, newest first.
    Joined(Join),
    /// Runs in the order of a list.
    Walked(Box<Walker>),
    /// Runs that are known already.
    Gathered(VecDeque<Candidate>),
}

impl Source {
    /// The next candidate.
    pub(super) async fn next(&mut self, table: &Table) -> Result<Option<Candidate>> {
        match self {
            Self::Joined(join) => join.next(table).await,
            Self::Walked(walker) => walker.next(table).await,
            Self::Gathered(candidates) => Ok(candidates.pop_front()),
        }
    }
}

/// Lists that are newest first, joined.
pub(super) struct Join {
    cursors: Vec<Cursor>,
    segment: usize,
    /// Whether newest first is the order of the search, and not only the first term of it.
    is_exact: bool,
    is_tail: bool,
    /// How many runs will be taken, as far as is known, and how many were.
    wanted: usize,
    taken: usize,
}

impl Join {
    /// A join of lists that were perhaps read from already, from which about so many runs will be taken.
    pub(super) fn new(cursors: Vec<Cursor>, is_exact: bool, wanted: usize) -> Self {
        Self { cursors, segment: 0, is_exact, is_tail: false, wanted, taken: 0 }
    }

    /// The next run that stands in all lists. A list that is behind the others goes on where they are.
    async fn next(&mut self, table: &Table) -> Result<Option<Candidate>> {
        loop {
            self.foresee();
            try_join_all(self.cursors.iter_mut().map(|cursor| async move { cursor.peek(table).await.map(|_| ()) }))
                .await?;
            let fronts: Vec<_> = self.cursors.iter().map(|cursor| cursor.buffer().front()).collect();
            if fronts.iter().any(Option::is_none) {
                return Ok(None);
            }
            let keys = || fronts.iter().copied().flatten().map(|entry| entry.key.as_str());
            let Some(farthest) = keys().max().map(str::to_owned) else { return Ok(None) };
            if keys().all(|key| key == farthest) {
                let mut taken = None;
                for cursor in &mut self.cursors {
                    taken = cursor.next(table).await?;
                }
                self.taken += 1;
                return Ok(taken.map(|entry| self.candidate(entry)));
            }
            self.cursors.iter_mut().for_each(|cursor| cursor.skip_to(&farthest));
        }
    }

    /// Tells the lists how much longer they will be read: as many entries for a run as up to here. While few runs were taken,
    /// that is not known well, and the next page is made to end before the last.
    fn foresee(&mut self) {
        if self.cursors.len() > 1 && (1..self.wanted).contains(&self.taken) {
            let margin = if self.taken * 3 < self.wanted { 0.7 } else { 1.03 };
            #[allow(clippy::cast_precision_loss, reason = "an estimate")]
            let times = margin * (self.wanted - self.taken) as f64 / self.taken as f64;
            self.cursors.iter_mut().for_each(|cursor| cursor.foresee(times));
        }
    }

    fn candidate(&self, entry: Entry) -> Candidate {
        // Behind all others, runs are one group; else those of one start time are, where further terms order them.
        let group = if self.is_exact || self.is_tail { "" } else { place::value(&entry.key) };
        let group = group.to_owned();
        let rank = Rank { segment: self.segment, group, place: entry.place(), is_exact: self.is_exact };
        Candidate { at: entry.at, started: entry.started, rank, is_in_tail: self.is_tail }
    }
}

/// A walk through the lists that are in the order of a search, one after another.
pub(super) struct Walker {
    lists: ListsOf,
    walk: Walk,
    /// The first term of the order is the start time: its groups are the runs of one moment.
    by_start: bool,
    /// Whether runs of one first value are in the order of the search when they are newest first.
    ties_are_exact: bool,
    segment: usize,
    /// What is left of the present segment; `None` before it was begun.
    keys: Option<Keys>,
    /// A group of more than a page, which is read by itself, forwards.
    group: Option<Cursor>,
    buffer: VecDeque<Candidate>,
    page: usize,
    tail: Option<Join>,
    /// Runs that have a value, and so no place in the tail; read when the tail begins.
    listed: Option<HashSet<RunId>>,
}

impl Walker {
    /// A walk through an experiment's lists. It begins after a page's last run, or at the beginning of the group of that run.
    pub(super) fn new(lists: ListsOf, walk: Walk, order: &RunOrder, after: Option<&SortKey>) -> Self {
        let by_start = matches!(order.terms.first(), Some(Term { by: RunSortBy::Number(RunNumber::StartTime), .. }));
        let default = RunOrder::default();
        let ties = order.terms.get(1..).unwrap_or_default();
        let ties_are_exact = if by_start { ties == &default.terms[1..] } else { ties == default.terms };
        let mut walker = Self {
            lists,
            walk,
            by_start,
            ties_are_exact,
            segment: 0,
            keys: None,
            group: None,
            buffer: VecDeque::new(),
            page: HEAD,
            tail: None,
            listed: None,
        };
        if let Some(after) = after {
            walker.resume(after);
        }
        walker
    }

    fn resume(&mut self, after: &SortKey) {
        let place = after.started_and_run().filter(|_| self.ties_are_exact && !self.by_start);
        let place = place.map(|(started, run)| place::newest_first(started, run));
        let value = after.first_value();
        let segment = value.and_then(|value| self.walk.segment_of(value));
        let (Some(segment), Some(value)) = (segment, value) else {
            self.segment = self.walk.segments.len();
            self.tail = self.tail(place.as_deref());
            return;
        };
        self.segment = segment;
        let Some(list) = self.walk.segments.get(segment) else { return };
        let keys = self.keys_of(list);
        let group = if self.by_start { start_group(value) } else { value_group(list, value) };
        let Some(group) = group else {
            // The list is one group.
            self.keys = Some(match place {
                Some(place) => keys.after(&place),
                None => keys,
            });
            return;
        };
        let is_whole = self.is_whole_text(list, &group);
        let of_group = if is_whole { place::of_value(&group) } else { group.clone() };
        let rest_of_group = keys.clone().beginning(&of_group);
        self.group = Some(Cursor::new(
            match place.filter(|_| is_whole) {
                Some(place) => rest_of_group.after(&(of_group.clone() + &place)),
                None => rest_of_group,
            },
            HEAD,
        ));
        let backwards = self.walk.backwards;
        self.keys = Some(
            keys.narrowed(|range| if backwards { range.until(&of_group) } else { range.after_beginning(&of_group) }),
        );
    }

    /// The runs that have nothing of what the search is ordered by.
    fn tail(&self, place: Option<&str>) -> Option<Join> {
        let keys = self.keys_of(&RunList::Runs);
        let keys = match place {
            Some(place) => keys.after(place),
            None => keys,
        };
        let cursors = vec![Cursor::new(keys, HEAD)];
        let segment = self.walk.segments.len();
        let tail = Join { cursors, segment, is_exact: self.ties_are_exact, is_tail: true, wanted: 0, taken: 0 };
        self.walk.missing_follow.then_some(tail)
    }

    fn keys_of(&self, list: &RunList) -> Keys {
        self.lists.keys(list)
    }

    async fn next(&mut self, table: &Table) -> Result<Option<Candidate>> {
        loop {
            if let Some(candidate) = self.buffer.pop_front() {
                return Ok(Some(candidate));
            }
            if let Some(group) = &mut self.group {
                match group.next(table).await? {
                    Some(entry) => return Ok(Some(self.candidate(self.segment, entry))),
                    None => self.group = None,
                }
            }
            if self.tail.is_some() && self.listed.is_none() {
                self.listed = Some(self.listed_runs(table).await?);
            }
            if let (Some(tail), Some(listed)) = (&mut self.tail, &self.listed) {
                match tail.next(table).await? {
                    Some(candidate) if listed.contains(&candidate.at.run) => continue,
                    candidate => return Ok(candidate),
                }
            }
            if self.segment < self.walk.segments.len() {
                self.read_page(table).await?;
                continue;
            }
            self.tail = self.tail(None);
            if self.tail.is_none() {
                return Ok(None);
            }
        }
    }

    /// The runs in the lists of the walk, as many as are worth knowing: each saves reading a run.
    async fn listed_runs(&self, table: &Table) -> Result<HashSet<RunId>> {
        let mut runs = HashSet::new();
        for list in &self.walk.segments {
            let mut cursor = Cursor::new(self.keys_of(list), LARGEST_PAGE);
            while let Some(entry) = cursor.next(table).await? {
                runs.insert(entry.at.run);
                if runs.len() >= MOST_LISTED {
                    return Ok(runs);
                }
            }
        }
        Ok(runs)
    }

    /// Reads a page of the present segment into the buffer.
    async fn read_page(&mut self, table: &Table) -> Result<()> {
        let Some(list) = self.walk.segments.get(self.segment).cloned() else { return Ok(()) };
        let keys = self.keys.take().unwrap_or_else(|| self.keys_of(&list));
        let segment = self.segment;
        // A list that is one group is never read from its end: its order is the same for either direction of the first term.
        let backwards = self.walk.backwards && self.has_groups(&list);
        let page = keys.read(table, self.page, backwards).await?;
        self.page = (self.page * 4).min(LARGEST_PAGE);
        let mut entries = page.entries;
        match entries.last().map(|entry| entry.key.clone()).filter(|_| !page.is_last) {
            None => self.segment += 1,
            Some(end) if !backwards => self.keys = Some(keys.after(&end)),
            Some(end) => {
                let unfinished = self.group_of(&list, &end).to_owned();
                let of_group = place::of_value(&unfinished);
                if entries.first().is_some_and(|first| self.group_of(&list, &first.key) == unfinished) {
                    entries.clear();
                    self.group = Some(Cursor::new(keys.clone().beginning(&of_group), self.page));
                    self.keys = Some(keys.narrowed(|range| range.until(&of_group)));
                } else {
                    entries.retain(|entry| self.group_of(&list, &entry.key) != unfinished);
                    self.keys = Some(keys.narrowed(|range| range.until_beginning(&of_group)));
                }
            }
        }
        if backwards {
            // Groups come in the right order, but each of them from its end.
            let is_one_group = |a: &Entry, b: &Entry| self.group_of(&list, &a.key) == self.group_of(&list, &b.key);
            let groups = entries.chunk_by(is_one_group);
            entries = groups.flat_map(|group| group.iter().rev().cloned()).collect();
        }
        let candidates: Vec<_> = entries.into_iter().map(|entry| self.candidate(segment, entry)).collect();
        self.buffer.extend(candidates);
        Ok(())
    }

    fn candidate(&self, segment: usize, entry: Entry) -> Candidate {
        let group = self.walk.segments.get(segment).map_or("", |list| self.group_of(list, &entry.key));
        let is_whole = self.walk.segments.get(segment).is_none_or(|list| self.is_whole_text(list, group));
        let limit = self.walk.segments.get(segment).map_or(usize::MAX, uncut);
        let group = if is_whole { group } else { &group[..group.ceil_char_boundary(limit)] };
        let rank =
            Rank { segment, group: group.to_owned(), place: entry.place(), is_exact: self.ties_are_exact && is_whole };
        Candidate { at: entry.at, started: entry.started, rank, is_in_tail: false }
    }

    /// Whether the runs of a list have more than one first value.
    fn has_groups(&self, list: &RunList) -> bool {
        self.by_start || !list.is_newest_first()
    }

    /// The first value in a key of a list.
    fn group_of<'a>(&self, list: &RunList, key: &'a str) -> &'a str {
        if self.has_groups(list) { place::value(key) } else { "" }
    }

    /// Whether a group's text is all of it, and not one of those that may have been cut.
    fn is_whole_text(&self, list: &RunList, group: &str) -> bool {
        self.by_start || matches!(list, RunList::ByMetric { .. }) || group.len() < uncut(list)
    }
}

/// A start time as a group.
fn start_group(value: FirstValue<'_>) -> Option<String> {
    let FirstValue::Integer(started) = value else { return None };
    Some(place::time(started))
}

/// A value as a group of a list by it; `None` if the list has one only.
fn value_group(list: &RunList, value: FirstValue<'_>) -> Option<String> {
    match value {
        _ if list.is_newest_first() => None,
        FirstValue::Float(value) => Some(metric_key(value)),
        FirstValue::NotANumber => Some(metric_key(f64::NAN)),
        FirstValue::Text(text) => Some(text_key(list, text)),
        _ => None,
    }
}
