//! Key ranges of the lists of an experiment's runs.

use std::sync::Arc;

use entities::listing::within_time;
use entities::{RUN_ENTITY_TYPE, RunLocation};
use key_schema::index::{RunsByEnd, RunsByName, RunsByStage, RunsByStatus, RunsByTime};
use key_schema::rows::{IndexedCopy, RankByMetric, RankByParam};
use key_schema::{
    DescendingDouble, Field, KeyRange, Level, OwnStage, Segment, Stage, TextSegment, Value, list_positions, ranges,
};
use mlflow_api::ExperimentId;
use search::{MetricColumn, NumberRange, RunColumn, RunList, TextRange, TimeRange};
use table::Item;

/// The lists of an experiment's runs, as one search reads them.
#[derive(Clone, Debug)]
pub struct RunLists {
    pub(crate) experiment: ExperimentId,
    started: TimeRange,
    /// The list of all runs.
    all: KeyRange,
}

impl RunLists {
    /// Returns the lists of runs that started in a period. The list of all runs contains the runs
    /// that were not individually deleted, like every list that the indexer writes.
    #[must_use]
    pub fn of_active(experiment: ExperimentId, started: TimeRange) -> Self {
        let all = RunsByStage::all(&experiment).stage(&Stage::Active).range();
        Self { experiment, started, all }
    }

    /// Returns the lists of runs that started in a period. The list of all runs contains the runs
    /// that were individually deleted at the given version of the experiment's stage.
    #[must_use]
    pub fn of_deleted(experiment: ExperimentId, started: TimeRange, version: u32) -> Self {
        let all = RunsByStage::all(&experiment).stage(&Stage::Deleted { version }).range();
        Self { experiment, started, all }
    }

    /// Returns the lists of runs that started in a period. The list of all runs contains runs of
    /// every stage.
    #[must_use]
    pub fn of_every_stage(experiment: ExperimentId, started: TimeRange) -> Self {
        Self { experiment, started, all: RunsByTime::all(&experiment).range() }
    }

    /// Returns the lists of runs that started in a period. The list of all runs contains the
    /// indexed copies of the runs whose individual stage is the given one.
    #[must_use]
    pub fn copies(experiment: ExperimentId, started: TimeRange, stage: OwnStage) -> Self {
        Self { experiment, started, all: IndexedCopy::all(&experiment, &stage, &RUN_ENTITY_TYPE.into()).range() }
    }

    /// Returns the key range of a list. Lists that are sorted newest first are narrowed to the
    /// period of the search.
    #[must_use]
    pub fn range(&self, list: &RunList) -> KeyRange {
        let range = match list {
            RunList::All => self.all.clone(),
            RunList::ByText { column, range } => self.by_text(column, range),
            RunList::ByToken { field, token } => {
                let field = Field::from(field.as_str());
                ranges::with_token(&self.experiment, Level::Trigram, &RUN_ENTITY_TYPE.into(), &field, token)
            }
            RunList::ByNumber { column: MetricColumn(key), range } => {
                within_numbers(RankByMetric::all(&self.experiment, &key.as_str().into()).range(), *range)
            }
            RunList::NotANumber { column: MetricColumn(key) } => {
                let all = RankByMetric::all(&self.experiment, &key.as_str().into());
                all.value(&DescendingDouble(f64::NAN)).range()
            }
        };
        if list.is_newest_first() { within_time(range, self.started) } else { range }
    }

    fn by_text(&self, column: &RunColumn, range: &TextRange) -> KeyRange {
        // The range of the entries whose text equals the operand, or starts with it.
        let beginning = |all: KeyRange, text: &str| all.beginning(&Self::text(column, text));
        match column {
            RunColumn::Status => {
                let all = RunsByStatus::all(&self.experiment, &OwnStage::Active, &RUN_ENTITY_TYPE.into());
                match range {
                    TextRange::Equal(status) => all.status(&status.as_str().into()).range(),
                    TextRange::Prefix(text) => beginning(all.range(), text),
                }
            }
            RunColumn::Name => {
                let all = RunsByName::all(&self.experiment, &OwnStage::Active, &RUN_ENTITY_TYPE.into());
                match range {
                    TextRange::Equal(name) => all.name(&name.as_str().into()).range(),
                    TextRange::Prefix(text) => beginning(all.range(), text),
                }
            }
            RunColumn::EndTime => {
                let all = RunsByEnd::all(&self.experiment, &OwnStage::Active, &RUN_ENTITY_TYPE.into()).range();
                let (TextRange::Equal(time) | TextRange::Prefix(time)) = range;
                all.beginning(time)
            }
            RunColumn::Param(key) => {
                let all = RankByParam::all(&self.experiment, &key.as_str().into());
                match range {
                    TextRange::Equal(value) => all.value(&value.as_str().into()).range(),
                    TextRange::Prefix(text) => beginning(all.range(), text),
                }
            }
            RunColumn::Field(field) => self.by_value(field, range),
        }
    }

    fn by_value(&self, field: &str, value: &TextRange) -> KeyRange {
        let (level, kind, field) = (Level::Value, RUN_ENTITY_TYPE.into(), Field::from(field));
        match value {
            TextRange::Equal(value) => ranges::with_token(&self.experiment, level, &kind, &field, value),
            TextRange::Prefix(text) => ranges::with_tokens_beginning(&self.experiment, level, &kind, &field, text),
        }
    }

    /// Returns the key prefix of all entries whose text starts with `text`, in the list that is
    /// sorted by `column`.
    pub(crate) fn text(column: &RunColumn, text: &str) -> String {
        if *column == RunColumn::Name { Field::from(text).beginning() } else { Value::from(text).beginning() }
    }

    /// Returns the text in a position of the list by a column, or `None` if the key has no room for
    /// all of it.
    pub(crate) fn whole_text(column: &RunColumn, place: &str) -> Option<String> {
        let text = list_positions::value(place);
        if *column == RunColumn::Name {
            Field::read(text).map(|name| name.0)
        } else {
            Value::read(text).map(|value| value.0)
        }
    }

    /// Returns the length, in bytes, from which a text in a key of a column's list may have been
    /// truncated. It is less than the limit, because a text is only truncated between characters.
    pub(crate) fn uncut(column: &RunColumn) -> usize {
        if *column == RunColumn::Name { Field::UNCUT - 3 } else { Value::UNCUT - 3 }
    }
}

/// A run in a list.
#[derive(Clone, Debug)]
pub struct ListEntry {
    /// Location of the run.
    pub at: RunLocation,
    /// Start time of the run in ms.
    pub started: i64,
    /// Position in the list: the key without the prefix that all keys of the list share.
    pub place: String,
    /// Position in a list that is sorted newest first. Comparable across lists.
    pub newest_first: String,
    /// The run's copy, if the list contains copies.
    pub item: Option<Arc<Item>>,
}

/// Encodes a number as in keys.
pub(crate) fn number(value: f64) -> String {
    // Adding 0 turns negative zero into zero, because both are the same number.
    DescendingDouble(value + 0.0).text()
}

/// Narrows a list that is sorted by number to a range of numbers. The greatest number comes first.
fn within_numbers(range: KeyRange, numbers: NumberRange) -> KeyRange {
    let range = match numbers.maximum {
        Some(greatest) => range.starting(&number(greatest)),
        None => range,
    };
    match (numbers.minimum, numbers.with_nan) {
        (_, true) => range,
        (Some(least), false) => range.until_beginning(&number(least)),
        (None, false) => range.until_beginning(&number(f64::NEG_INFINITY)),
    }
}
