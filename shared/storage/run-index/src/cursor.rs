//! Reading a list page by page.

use std::collections::VecDeque;
use std::sync::Arc;

use entities::{RunCopy, RunLocation, unreadable};
use key_schema::{KeyRange, place};
use mlflow_api::{ExperimentId, Result};
use search::Head;
use table::{Item, Query, Table};

use crate::lists::{Entry, RunLists};

/// Entries of the first page of a list, those that a plan looks at. Each further page has four
/// times as many, or twice as many where the list holds copies of runs.
pub const HEAD: usize = Head::ENTRIES;
/// Entries of the largest page. More would be more than 1 MB, which DynamoDB cuts off.
pub(crate) const LARGEST_PAGE: usize = 8_192;

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    pub(crate) is_last: bool,
}

/// Reads a page of a range of an experiment's list: one request, and 25 read units per 1,000
/// entries.
///
/// # Errors
/// As for any request; and if a key cannot be read, since the answer would be shorter without it.
pub(crate) async fn read_page(
    table: &Table,
    experiment: ExperimentId,
    range: &KeyRange,
    limit: usize,
    backwards: bool,
) -> Result<Page> {
    if range.is_empty() {
        return Ok(Page { entries: Vec::new(), is_last: true });
    }
    let query = Query::of(range.clone()).limit(limit);
    let page = table.query_page(&if backwards { query.backwards() } else { query }).await?;
    let mut entries = Vec::with_capacity(page.items.len());
    for item in page.items {
        let mut entry = entry(experiment, range, &item).ok_or_else(|| unreadable(&item, "an entry of a list"))?;
        entry.item = RunCopy::is_one(&item).then(|| Arc::new(item));
        entries.push(entry);
    }
    Ok(Page { entries, is_last: page.next.is_none() })
}

fn entry(experiment: ExperimentId, range: &KeyRange, item: &Item) -> Option<Entry> {
    let key = item.sort_key(range)?;
    let (started, run) = place::started_and_run(key)?;
    let newest_first = place::newest_first(started, run.as_str());
    let at = RunLocation { experiment, run };
    Some(Entry { at, started, place: range.place(key)?.to_owned(), newest_first, item: None })
}

impl Page {
    /// How many times as many the next page has: entries cost little, and a request more. Copies of
    /// runs cost more than a request.
    pub(crate) fn growth(&self) -> usize {
        if self.entries.iter().any(|entry| entry.item.is_some()) { 2 } else { 4 }
    }
}

/// Reads a list from a place on, a page at a time.
#[derive(Debug)]
pub struct Cursor {
    experiment: ExperimentId,
    range: KeyRange,
    buffer: VecDeque<Entry>,
    /// The buffer has the last entries.
    is_done: bool,
    next_page: usize,
    /// Entries that were taken or passed over.
    taken: usize,
}

impl Cursor {
    /// A cursor at the beginning of a range of a list, whose first page has so many entries.
    #[must_use]
    pub fn new(lists: &RunLists, range: KeyRange, first_page: usize) -> Self {
        let next_page = first_page.min(LARGEST_PAGE);
        let experiment = lists.experiment;
        Self { experiment, range, buffer: VecDeque::new(), is_done: false, next_page, taken: 0 }
    }

    /// Says how many more entries will be taken for each that was, so that the next page is neither too long nor too short.
    pub(crate) fn foresee(&mut self, times: f64) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an estimate that is cut to what a page may be"
        )]
        let entries = (self.taken as f64 * times) as usize;
        self.next_page = entries.saturating_sub(self.buffer.len()).clamp(HEAD / 8, LARGEST_PAGE);
    }

    /// Entries that were read and not yet taken.
    #[must_use]
    pub fn buffer(&self) -> &VecDeque<Entry> {
        &self.buffer
    }

    /// Takes all that was read.
    pub(crate) fn take_buffer(&mut self) -> VecDeque<Entry> {
        std::mem::take(&mut self.buffer)
    }

    /// Whether the buffer has the last entries.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// No more than so many entries on the next page.
    pub(crate) fn limit_page(&mut self, entries: usize) {
        self.next_page = self.next_page.min(entries);
    }

    /// The next entry, left where it is; `None` at the end. One request where the buffer is empty.
    pub(crate) async fn peek(&mut self, table: &Table) -> Result<Option<&Entry>> {
        while self.buffer.is_empty() && !self.is_done {
            self.read_more(table).await?;
        }
        Ok(self.buffer.front())
    }

    /// Takes the next entry; `None` at the end. One request where the buffer is empty.
    pub async fn next(&mut self, table: &Table) -> Result<Option<Entry>> {
        self.peek(table).await?;
        let next = self.buffer.pop_front();
        self.taken += usize::from(next.is_some());
        Ok(next)
    }

    /// Passes over the entries before a place.
    pub(crate) fn skip_to(&mut self, place: &str) {
        while self.buffer.front().is_some_and(|entry| entry.place.as_str() < place) {
            self.buffer.pop_front();
            self.taken += 1;
        }
        if self.buffer.is_empty() && !self.is_done {
            self.range = self.range.clone().starting(place);
        }
    }

    /// Reads a page: one request.
    pub async fn read_more(&mut self, table: &Table) -> Result<()> {
        let page = read_page(table, self.experiment, &self.range, self.next_page, false).await?;
        self.next_page = (self.next_page * page.growth()).min(LARGEST_PAGE);
        self.is_done = page.is_last;
        if let Some(last) = page.entries.last() {
            self.range = self.range.clone().after(&last.place);
        }
        self.buffer.extend(page.entries);
        Ok(())
    }
}
