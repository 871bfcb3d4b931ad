//! Reads a list page by page.

use std::collections::VecDeque;
use std::sync::Arc;

use entities::{RunCopy, RunLocation, unreadable};
use key_schema::{KeyRange, list_positions};
use mlflow_api::{ExperimentId, Result};
use search::ListHead;
use table::{Item, Query, Table};

use crate::lists::{ListEntry, RunLists};

/// Number of entries on the first page of a list, which is read for planning. Each further page is
/// four times as large, or twice as large if the list contains copies of runs.
pub const HEAD_ENTRIES: usize = ListHead::MAX_ENTRIES;
/// Maximum number of entries on a page. More would exceed 1 MB, the limit of a DynamoDB response.
pub(crate) const MAX_PAGE_ENTRIES: usize = 8_192;

/// A page of a list that was read.
#[derive(Debug)]
pub(crate) struct EntriesPage {
    pub(crate) entries: Vec<ListEntry>,
    pub(crate) is_last: bool,
}

/// Reads a page of a range of an experiment's list. Sends one request, which costs 25 read units
/// per 1,000 entries.
///
/// # Errors
/// Returns failures of the request, and an internal error if a key cannot be read, because the
/// response would be incomplete without that entry.
pub(crate) async fn read_page(
    table: &Table,
    experiment: ExperimentId,
    range: &KeyRange,
    limit: usize,
    backwards: bool,
) -> Result<EntriesPage> {
    if range.is_empty() {
        return Ok(EntriesPage { entries: Vec::new(), is_last: true });
    }
    let query = Query::of(range.clone()).limit(limit);
    let page = table.query_page(&if backwards { query.backwards() } else { query }).await?;
    let mut entries = Vec::with_capacity(page.items.len());
    for item in page.items {
        let mut entry = entry(experiment, range, &item).ok_or_else(|| unreadable(&item, "an entry of a list"))?;
        entry.item = RunCopy::is_one(&item).then(|| Arc::new(item));
        entries.push(entry);
    }
    Ok(EntriesPage { entries, is_last: page.next.is_none() })
}

fn entry(experiment: ExperimentId, range: &KeyRange, item: &Item) -> Option<ListEntry> {
    let key = item.sort_key(range)?;
    let (started, run) = list_positions::started_and_run(key)?;
    let newest_first = list_positions::newest_first(started, run.as_str());
    let at = RunLocation { experiment, run };
    Some(ListEntry { at, started, place: range.place(key)?.to_owned(), newest_first, item: None })
}

impl EntriesPage {
    /// Returns the factor by which the page size grows from one page to the next. It is large for
    /// lists of entries, because reading unneeded entries costs less than another request. It is
    /// small for lists with copies of runs, because reading unneeded copies costs more.
    pub(crate) fn growth(&self) -> usize {
        if self.entries.iter().any(|entry| entry.item.is_some()) { 2 } else { 4 }
    }
}

/// A reader that reads a list page by page, starting at a given position.
#[derive(Debug)]
pub struct ListCursor {
    experiment: ExperimentId,
    range: KeyRange,
    buffer: VecDeque<ListEntry>,
    /// Whether the end of the list has been read into the buffer.
    is_done: bool,
    next_page: usize,
    /// Number of entries that were taken or skipped.
    taken: usize,
}

impl ListCursor {
    /// Creates a cursor at the beginning of a range of a list. `first_page` is the number of
    /// entries on the first page.
    #[must_use]
    pub fn new(lists: &RunLists, range: KeyRange, first_page: usize) -> Self {
        let next_page = first_page.min(MAX_PAGE_ENTRIES);
        let experiment = lists.experiment;
        Self { experiment, range, buffer: VecDeque::new(), is_done: false, next_page, taken: 0 }
    }

    /// Sets the size of the next page to the estimated number of entries that are still needed.
    /// `times` is the estimate divided by the number of entries that have been taken.
    pub(crate) fn foresee(&mut self, times: f64) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an estimate that is clamped to the possible page sizes"
        )]
        let entries = (self.taken as f64 * times) as usize;
        self.next_page = entries.saturating_sub(self.buffer.len()).clamp(HEAD_ENTRIES / 8, MAX_PAGE_ENTRIES);
    }

    /// Returns the entries that have been read and not taken yet.
    #[must_use]
    pub fn buffer(&self) -> &VecDeque<ListEntry> {
        &self.buffer
    }

    /// Takes all entries that have been read.
    pub(crate) fn take_buffer(&mut self) -> VecDeque<ListEntry> {
        std::mem::take(&mut self.buffer)
    }

    /// Checks whether the end of the list has been read into the buffer.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Limits the number of entries on the next page.
    pub(crate) fn limit_page(&mut self, entries: usize) {
        self.next_page = self.next_page.min(entries);
    }

    /// Returns the next entry without taking it, or `None` at the end. Sends one request if the
    /// buffer is empty.
    pub(crate) async fn peek(&mut self, table: &Table) -> Result<Option<&ListEntry>> {
        while self.buffer.is_empty() && !self.is_done {
            self.read_more(table).await?;
        }
        Ok(self.buffer.front())
    }

    /// Takes the next entry, or returns `None` at the end. Sends one request if the buffer is
    /// empty.
    pub async fn next(&mut self, table: &Table) -> Result<Option<ListEntry>> {
        self.peek(table).await?;
        let next = self.buffer.pop_front();
        self.taken += usize::from(next.is_some());
        Ok(next)
    }

    /// Skips the entries before a position.
    pub(crate) fn skip_to(&mut self, place: &str) {
        while self.buffer.front().is_some_and(|entry| entry.place.as_str() < place) {
            self.buffer.pop_front();
            self.taken += 1;
        }
        if self.buffer.is_empty() && !self.is_done {
            self.range = self.range.clone().starting(place);
        }
    }

    /// Reads the next page. Sends one request.
    pub async fn read_more(&mut self, table: &Table) -> Result<()> {
        let page = read_page(table, self.experiment, &self.range, self.next_page, false).await?;
        self.next_page = (self.next_page * page.growth()).min(MAX_PAGE_ENTRIES);
        self.is_done = page.is_last;
        if let Some(last) = page.entries.last() {
            self.range = self.range.clone().after(&last.place);
        }
        self.buffer.extend(page.entries);
        Ok(())
    }
}
