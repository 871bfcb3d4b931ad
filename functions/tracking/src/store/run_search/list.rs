//! The lists of the index as queries, and reading them page by page.

use std::collections::VecDeque;

use entities::{RUN, RunLocation};
use key_schema::definition::SK;
use key_schema::{DescendingDouble, Field, Level, Segment, Stage, Value, index, prefix};
use mlflow_api::{ExperimentId, Result};
use search::{Head, MetricRange, RunList, TextRange, TimeRange};
use table::{Item, Query, Table};

/// Entries of the first page of a list, those that a plan looks at; each further page has four times as many.
pub(super) const HEAD: usize = Head::ENTRIES;
/// Entries of the largest page. More would be more than 1 MB, which DynamoDB cuts off.
pub(super) const LARGEST_PAGE: usize = 8_192;
/// Greater than every character of what stands behind it in a key.
pub(super) const END: char = '\u{10FFFF}';

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
        index::newest_first(self.started, self.at.run.as_str())
    }
}

/// The keys of a list in the table or in an index of it.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    experiment: ExperimentId,
    local_index: Option<&'static str>,
    attribute: &'static str,
    /// What all keys begin with.
    prefix: String,
    /// The range behind the prefix.
    first: String,
    last: String,
}

impl Keys {
    /// The keys of a list of an experiment. Of lists that are newest first only those of these start times.
    pub(super) fn of(experiment: ExperimentId, list: &RunList, started: TimeRange) -> Self {
        let stage = Stage::Active;
        // Of a list by text: all its keys, then the range of them.
        let by_text = |index, attribute, whole: String, range: &TextRange, equal: &dyn Fn(&str) -> String| match range {
            TextRange::Equal(text) => Self::new(experiment, index, attribute, equal(text)),
            TextRange::Prefix(text) => {
                let keys = Self::new(experiment, index, attribute, whole);
                if text.is_empty() { keys } else { keys.beginning(&text_key(list, text)) }
            }
        };
        let mut keys = match list {
            RunList::Runs => Self::new(experiment, Some("LSI1"), "lsi1sk", prefix::runs_of_stage(stage)),
            RunList::ByStatus(range) => {
                let whole = prefix::runs_of_stage(stage);
                let equal = |status: &str| prefix::runs_of_status(stage, &status.into());
                by_text(Some("LSI3"), "lsi3sk", whole, range, &equal)
            }
            RunList::ByName(range) => {
                let whole = prefix::runs_of_stage(stage);
                let equal = |name: &str| prefix::runs_of_name(stage, &name.into());
                by_text(Some("LSI4"), "lsi4sk", whole, range, &equal)
            }
            RunList::ByParam { key, range } => {
                let param = Field::from(key.as_str());
                let equal = |value: &str| prefix::ranks_by_param_value(&param, &value.into());
                by_text(None, SK, prefix::ranks_by_param(&param), range, &equal)
            }
            RunList::ByToken { level, field, token } => {
                let (level, field, entity_type) = (level_of(*level), Field::from(field.as_str()), RUN.into());
                let equal = |token: &str| prefix::full_text(level, &entity_type, &field, &token.into());
                by_text(None, SK, prefix::full_text_of_field(level, &entity_type, &field), token, &equal)
            }
            RunList::NotANumber { key } => {
                Self::new(experiment, None, SK, prefix::ranks_by_metric_value(&key.as_str().into(), f64::NAN))
            }
            RunList::ByMetric { key, range } => {
                let mut keys = Self::new(experiment, None, SK, prefix::ranks_by_metric(&key.as_str().into()));
                (keys.first, keys.last) = metric_bounds(*range);
                keys
            }
        };
        if list.is_newest_first() {
            if let Some(until) = started.until {
                keys.first = index::newest_first(until, "");
            }
            if let Some(from) = started.from {
                keys.last = index::newest_first(from, &END.to_string());
            }
        }
        keys
    }

    /// Runs of every stage, newest first.
    pub(super) fn of_all_stages(experiment: ExperimentId, started: TimeRange) -> Self {
        let of_one = Self::of(experiment, &RunList::Runs, started);
        Self { local_index: Some("LSI2"), attribute: "lsi2sk", prefix: prefix::RUNS.to_owned(), ..of_one }
    }

    /// Runs that were deleted on their own at this version of the experiment's stage, newest first.
    pub(super) fn of_deleted(experiment: ExperimentId, version: u32, started: TimeRange) -> Self {
        let of_active = Self::of(experiment, &RunList::Runs, started);
        Self { prefix: prefix::runs_of_stage(Stage::Deleted { version }), ..of_active }
    }

    fn new(
        experiment: ExperimentId,
        local_index: Option<&'static str>,
        attribute: &'static str,
        prefix: String,
    ) -> Self {
        Self { experiment, local_index, attribute, prefix, first: String::new(), last: END.to_string() }
    }

    /// The same keys from this one on, itself included.
    #[must_use]
    pub(super) fn from(mut self, first: &str) -> Self {
        if first > self.first.as_str() {
            first.clone_into(&mut self.first);
        }
        self
    }

    /// The same keys behind this one: keys hold no character less than the one put behind it.
    #[must_use]
    pub(super) fn after(self, last: &str) -> Self {
        self.from(&format!("{last}\u{1}"))
    }

    /// The same keys up to this one, itself included.
    #[must_use]
    pub(super) fn until(mut self, last: &str) -> Self {
        if last < self.last.as_str() {
            last.clone_into(&mut self.last);
        }
        self
    }

    /// Only the keys that begin so, behind the prefix of all.
    #[must_use]
    pub(super) fn beginning(self, beginning: &str) -> Self {
        self.from(beginning).until(&format!("{beginning}{END}"))
    }

    /// Reads a page.
    pub(super) async fn read(&self, table: &Table, limit: usize, backwards: bool) -> Result<ListPage> {
        if self.first > self.last {
            return Ok(ListPage::default());
        }
        let partition = prefix::experiment_partition(self.experiment);
        let (first, last) = (format!("{}{}", self.prefix, self.first), format!("{}{}", self.prefix, self.last));
        let query = Query::between(partition, first, last).limit(limit);
        let query = self.local_index.map_or(query.clone(), |index| query.clone().local(index));
        let page = table.query_page(&if backwards { query.backwards() } else { query }).await?;
        let entries: Vec<_> = page.items.iter().filter_map(|item| self.entry(item)).collect();
        let is_last = page.next.is_none();
        Ok(ListPage { entries, is_last })
    }

    fn entry(&self, item: &Item) -> Option<Entry> {
        let key = item.text(self.attribute)?;
        let (started, run) = index::started_and_run_of_key(key)?;
        let at = RunLocation { experiment: self.experiment, run };
        Some(Entry { at, started, key: key.strip_prefix(&self.prefix)?.to_owned() })
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
    let mut key = String::new();
    // The two zeros are one number.
    DescendingDouble(value + 0.0).write(&mut key);
    key
}

/// What the keys of a list by text begin with for texts that begin so.
pub(super) fn text_key(list: &RunList, text: &str) -> String {
    if matches!(list, RunList::ByName(_)) { Field::from(text).beginning() } else { Value::from(text).beginning() }
}

/// From this length on, in bytes, the text of a key may have been cut: a cut ends behind a whole character.
pub(super) fn uncut(list: &RunList) -> usize {
    if matches!(list, RunList::ByName(_)) { Field::UNCUT - 3 } else { Value::UNCUT - 3 }
}

/// The greatest values come first.
fn metric_bounds(range: MetricRange) -> (String, String) {
    let first = range.greatest.map(metric_key).unwrap_or_default();
    let last = match (range.least, range.with_nan) {
        (_, true) => String::new(),
        (Some(least), false) => metric_key(least),
        (None, false) => metric_key(f64::NEG_INFINITY),
    };
    (first, last + &END.to_string())
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
            self.keys = self.keys.clone().from(place);
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
