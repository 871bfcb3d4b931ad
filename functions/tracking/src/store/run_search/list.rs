//! The lists of the index as queries, and reading them page by page.

use std::collections::VecDeque;

use entities::{RUN, RunLocation, read_all};
use key_schema::index::{RunsByName, RunsByStage, RunsByStatus, RunsByTime};
use key_schema::rows::{FullText, RankByMetric, RankByParam};
use key_schema::{DescendingDouble, Field, KeyRange, Level, Segment, Stage, TextSegment, Value, place};
use mlflow_api::{ExperimentId, Result};
use search::{Head, MetricRange, RunList, TextRange, TimeRange};
use table::{Item, Query, Table};

/// Entries of the first page of a list, those that a plan looks at; each further page has four times as many.
pub(super) const HEAD: usize = Head::ENTRIES;
/// Entries of the largest page. More would be more than 1 MB, which DynamoDB cuts off.
pub(super) const LARGEST_PAGE: usize = 8_192;

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) at: RunLocation,
    /// When it began, in ms.
    pub(super) started: i64,
    /// Its key in the list, after what all keys of the list begin with.
    pub(super) key: String,
}

impl Entry {
    /// The place in a list that is newest first: comparable across lists.
    pub(super) fn place(&self) -> String {
        place::newest_first(self.started, self.at.run.as_str())
    }
}

/// The keys of a list in the table or in an index of it.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    experiment: ExperimentId,
    range: KeyRange,
}

impl Keys {
    /// The keys of a list of an experiment. Of lists that are newest first only those of these start times.
    pub(super) fn of(experiment: ExperimentId, list: &RunList, started: TimeRange) -> Self {
        let (stage, of_runs) = (Stage::Active, RUN.into());
        // Of a list by text: those of one text, or those that begin so.
        let beginning = |all: KeyRange, text: &str| all.beginning(&text_key(list, text));
        let range = match list {
            RunList::Runs => RunsByStage::all(&experiment).stage(&stage).range(),
            RunList::ByStatus(range) => {
                let all = RunsByStatus::all(&experiment).stage(&stage);
                match range {
                    TextRange::Equal(status) => all.status(&status.as_str().into()).range(),
                    TextRange::Prefix(text) => beginning(all.range(), text),
                }
            }
            RunList::ByName(range) => {
                let all = RunsByName::all(&experiment).stage(&stage);
                match range {
                    TextRange::Equal(name) => all.name(&name.as_str().into()).range(),
                    TextRange::Prefix(text) => beginning(all.range(), text),
                }
            }
            RunList::ByParam { key, range } => {
                let all = RankByParam::all(&experiment).param(&key.as_str().into());
                match range {
                    TextRange::Equal(value) => all.value(&value.as_str().into()).range(),
                    TextRange::Prefix(text) => beginning(all.range(), text),
                }
            }
            RunList::ByToken { level, field, token } => {
                let all = FullText::all(&experiment).level(&level_of(*level)).entity_type(&of_runs);
                let all = all.field(&field.as_str().into());
                match token {
                    TextRange::Equal(token) => all.token(&token.as_str().into()).range(),
                    TextRange::Prefix(text) => beginning(all.range(), text),
                }
            }
            RunList::NotANumber { key } => {
                let all = RankByMetric::all(&experiment).metric(&key.as_str().into());
                all.value(&DescendingDouble(f64::NAN)).range()
            }
            RunList::ByMetric { key, range } => {
                within_metric(RankByMetric::all(&experiment).metric(&key.as_str().into()).range(), *range)
            }
        };
        let range = if list.is_newest_first() { within_time(range, started) } else { range };
        Self { experiment, range }
    }

    /// Runs of every stage, newest first.
    pub(super) fn of_all_stages(experiment: ExperimentId, started: TimeRange) -> Self {
        Self { experiment, range: within_time(RunsByTime::all(&experiment).range(), started) }
    }

    /// Runs that were deleted on their own at this version of the experiment's stage, newest first.
    pub(super) fn of_deleted(experiment: ExperimentId, version: u32, started: TimeRange) -> Self {
        let deleted = RunsByStage::all(&experiment).stage(&Stage::Deleted { version });
        Self { experiment, range: within_time(deleted.range(), started) }
    }

    /// Part of the same keys.
    #[must_use]
    pub(super) fn narrowed(self, narrow: impl FnOnce(KeyRange) -> KeyRange) -> Self {
        Self { range: narrow(self.range), ..self }
    }

    /// The same keys behind this one.
    #[must_use]
    pub(super) fn after(self, last: &str) -> Self {
        self.narrowed(|range| range.after(last))
    }

    /// Only the keys that begin so, behind what all begin with.
    #[must_use]
    pub(super) fn beginning(self, beginning: &str) -> Self {
        self.narrowed(|range| range.beginning(beginning))
    }

    /// Reads a page.
    pub(super) async fn read(&self, table: &Table, limit: usize, backwards: bool) -> Result<ListPage> {
        if self.range.is_empty() {
            return Ok(ListPage::default());
        }
        let query = Query::of(self.range.clone()).limit(limit);
        let page = table.query_page(&if backwards { query.backwards() } else { query }).await?;
        let entries = read_all(&page.items, "an entry of a list", |item| self.entry(item))?;
        let is_last = page.next.is_none();
        Ok(ListPage { entries, is_last })
    }

    fn entry(&self, item: &Item) -> Option<Entry> {
        let key = item.sort_key(&self.range)?;
        let (started, run) = place::started_and_run(key)?;
        let at = RunLocation { experiment: self.experiment, run };
        Some(Entry { at, started, key: self.range.place(key)?.to_owned() })
    }
}

/// Those of a list that is newest first which began then.
fn within_time(range: KeyRange, started: TimeRange) -> KeyRange {
    let range = match started.until {
        Some(until) => range.starting(&place::time(until)),
        None => range,
    };
    match started.from {
        Some(from) => range.until_beginning(&place::time(from)),
        None => range,
    }
}

/// A page of a list.
#[derive(Debug, Default)]
pub(super) struct ListPage {
    pub(super) entries: Vec<Entry>,
    pub(super) is_last: bool,
}

fn level_of(level: search::Level) -> Level {
    match level {
        search::Level::Trigram => Level::Trigram,
        search::Level::Word => Level::Word,
        search::Level::Value => Level::Value,
    }
}

/// A metric's value as it stands in keys.
pub(super) fn metric_key(value: f64) -> String {
    // The two zeros are one number.
    DescendingDouble(value + 0.0).text()
}

/// What the keys of a list by text begin with for texts that begin so.
pub(super) fn text_key(list: &RunList, text: &str) -> String {
    if matches!(list, RunList::ByName(_)) { Field::from(text).beginning() } else { Value::from(text).beginning() }
}

/// From this length on, in bytes, the text of a key may have been cut: a cut ends behind a whole character.
pub(super) fn uncut(list: &RunList) -> usize {
    if matches!(list, RunList::ByName(_)) { Field::UNCUT - 3 } else { Value::UNCUT - 3 }
}

/// Those of the ranks of a metric that have such a value. The greatest come first.
fn within_metric(range: KeyRange, values: MetricRange) -> KeyRange {
    let range = match values.greatest {
        Some(greatest) => range.starting(&metric_key(greatest)),
        None => range,
    };
    match (values.least, values.with_nan) {
        (_, true) => range,
        (Some(least), false) => range.until_beginning(&metric_key(least)),
        (None, false) => range.until_beginning(&metric_key(f64::NEG_INFINITY)),
    }
}

/// Reads a list from a place on, a page at a time.
#[derive(Debug)]
pub(super) struct Cursor {
    keys: Keys,
    buffer: VecDeque<Entry>,
    /// Nothing follows what is in the buffer.
    is_done: bool,
    next_page: usize,
    /// Entries that were taken or passed over.
    taken: usize,
}

impl Cursor {
    pub(super) fn new(keys: Keys, first_page: usize) -> Self {
        Self { keys, buffer: VecDeque::new(), is_done: false, next_page: first_page, taken: 0 }
    }

    /// Says how many more entries will be taken for each that was, so that the next page is neither too long nor too short.
    pub(super) fn foresee(&mut self, times: f64) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an estimate that is cut to what a page may be"
        )]
        let entries = (self.taken as f64 * times) as usize;
        self.next_page = entries.saturating_sub(self.buffer.len()).clamp(HEAD / 8, LARGEST_PAGE);
    }

    /// What was read and not yet taken.
    pub(super) fn buffer(&self) -> &VecDeque<Entry> {
        &self.buffer
    }

    pub(super) fn into_entries(self) -> VecDeque<Entry> {
        self.buffer
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// No more than so many entries on the next page.
    pub(super) fn limit_page(&mut self, entries: usize) {
        self.next_page = self.next_page.min(entries);
    }

    /// The next entry, left where it is; `None` at the end.
    pub(super) async fn peek(&mut self, table: &Table) -> Result<Option<&Entry>> {
        while self.buffer.is_empty() && !self.is_done {
            self.read_more(table).await?;
        }
        Ok(self.buffer.front())
    }

    /// Takes the next entry.
    pub(super) async fn next(&mut self, table: &Table) -> Result<Option<Entry>> {
        self.peek(table).await?;
        let next = self.buffer.pop_front();
        self.taken += usize::from(next.is_some());
        Ok(next)
    }

    /// Passes over what stands before a place, a key of the list.
    pub(super) fn skip_to(&mut self, place: &str) {
        while self.buffer.front().is_some_and(|entry| entry.key.as_str() < place) {
            self.buffer.pop_front();
            self.taken += 1;
        }
        if self.buffer.is_empty() && !self.is_done {
            self.keys = self.keys.clone().narrowed(|range| range.starting(place));
        }
    }

    /// Reads a page.
    pub(super) async fn read_more(&mut self, table: &Table) -> Result<()> {
        let page = self.keys.read(table, self.next_page, false).await?;
        self.next_page = (self.next_page * 4).min(LARGEST_PAGE);
        self.is_done = page.is_last;
        if let Some(last) = page.entries.last() {
            self.keys = self.keys.clone().after(&last.key);
        }
        self.buffer.extend(page.entries);
        Ok(())
    }
}
