//! Where the lists of an experiment's runs are.

use std::sync::Arc;

use entities::{RUN, RunLocation};
use key_schema::index::{RunsByEnd, RunsByName, RunsByStage, RunsByStatus, RunsByTime};
use key_schema::rows::{IndexedCopy, RankByMetric, RankByParam};
use key_schema::{
    DescendingDouble, Field, KeyRange, Level, OwnStage, Segment, Stage, TextSegment, Value, place, ranges,
};
use listing::within_time;
use mlflow_api::ExperimentId;
use search::{Metric, NumberRange, RunColumn, RunList, TextRange, TimeRange};
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
    /// The lists of runs that started then. The list of all has the runs that are active on their
    /// own, as all lists of the indexer.
    #[must_use]
    pub fn of_active(experiment: ExperimentId, started: TimeRange) -> Self {
        let all = RunsByStage::all(&experiment).stage(&Stage::Active).range();
        Self { experiment, started, all }
    }

    /// The same, but the list of all has the runs that were deleted on their own at this version of
    /// the experiment's stage.
    #[must_use]
    pub fn of_deleted(experiment: ExperimentId, started: TimeRange, version: u32) -> Self {
        let all = RunsByStage::all(&experiment).stage(&Stage::Deleted { version }).range();
        Self { experiment, started, all }
    }

    /// The same, but the list of all has the runs of every stage.
    #[must_use]
    pub fn of_every_stage(experiment: ExperimentId, started: TimeRange) -> Self {
        Self { experiment, started, all: RunsByTime::all(&experiment).range() }
    }

    /// The same, but the list of all has the copies of runs in the index, those of one stage of
    /// their own.
    #[must_use]
    pub fn copies(experiment: ExperimentId, started: TimeRange, stage: OwnStage) -> Self {
        Self { experiment, started, all: IndexedCopy::all(&experiment, &stage, &RUN.into()).range() }
    }

    /// The keys of a list; of lists that are newest first only those of the times that the search
    /// asks for.
    #[must_use]
    pub fn range(&self, list: &RunList) -> KeyRange {
        let range = match list {
            RunList::All => self.all.clone(),
            RunList::ByText { column, range } => self.by_text(column, range),
            RunList::ByToken { field, token } => {
                let field = Field::from(field.as_str());
                ranges::with_token(&self.experiment, Level::Trigram, &RUN.into(), &field, token)
            }
            RunList::ByNumber { column: Metric(key), range } => {
                within_numbers(RankByMetric::all(&self.experiment, &key.as_str().into()).range(), *range)
            }
            RunList::NotANumber { column: Metric(key) } => {
                let all = RankByMetric::all(&self.experiment, &key.as_str().into());
                all.value(&DescendingDouble(f64::NAN)).range()
            }
        };
        if list.is_newest_first() { within_time(range, self.started) } else { range }
    }

    fn by_text(&self, column: &RunColumn, range: &TextRange) -> KeyRange {
        // The runs of one text, or those whose texts begin so.
        let beginning = |all: KeyRange, text: &str| all.beginning(&Self::text(column, text));
        match column {
            RunColumn::Status => {
                let all = RunsByStatus::all(&self.experiment, &OwnStage::Active, &RUN.into());
                match range {
                    TextRange::Equal(status) => all.status(&status.as_str().into()).range(),
                    TextRange::Prefix(text) => beginning(all.range(), text),
                }
            }
            RunColumn::Name => {
                let all = RunsByName::all(&self.experiment, &OwnStage::Active, &RUN.into());
                match range {
                    TextRange::Equal(name) => all.name(&name.as_str().into()).range(),
                    TextRange::Prefix(text) => beginning(all.range(), text),
                }
            }
            RunColumn::EndTime => {
                let all = RunsByEnd::all(&self.experiment, &OwnStage::Active, &RUN.into()).range();
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
        let (level, kind, field) = (Level::Value, RUN.into(), Field::from(field));
        match value {
            TextRange::Equal(value) => ranges::with_token(&self.experiment, level, &kind, &field, value),
            TextRange::Prefix(text) => ranges::with_tokens_beginning(&self.experiment, level, &kind, &field, text),
        }
    }

    /// The beginning of keys of the list by a column, for texts that begin so.
    pub(crate) fn text(column: &RunColumn, text: &str) -> String {
        if *column == RunColumn::Name { Field::from(text).beginning() } else { Value::from(text).beginning() }
    }

    /// The text in a place of a list by a column; `None` if the key has no room for all of it.
    pub(crate) fn whole_text(column: &RunColumn, place: &str) -> Option<String> {
        let text = place::value(place);
        if *column == RunColumn::Name {
            Field::read(text).map(|name| name.0)
        } else {
            Value::read(text).map(|value| value.0)
        }
    }

    /// From this length on, in bytes, the text in a key of the list by a column may have been cut.
    /// A cut ends after a whole character.
    pub(crate) fn uncut(column: &RunColumn) -> usize {
        if *column == RunColumn::Name { Field::UNCUT - 3 } else { Value::UNCUT - 3 }
    }
}

/// A run in a list.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where the run is.
    pub at: RunLocation,
    /// When it began, in ms.
    pub started: i64,
    /// Its place in the list: its key, after the beginning that all keys of the list share.
    pub place: String,
    /// Its place in a list that is newest first: comparable across lists.
    pub newest_first: String,
    /// The run's copy, where the list holds copies.
    pub item: Option<Arc<Item>>,
}

/// A number in its form in keys.
pub(crate) fn number(value: f64) -> String {
    // The two zeros are one number.
    DescendingDouble(value + 0.0).text()
}

/// Those of a list by a number that have such a number. The greatest come first.
fn within_numbers(range: KeyRange, numbers: NumberRange) -> KeyRange {
    let range = match numbers.greatest {
        Some(greatest) => range.starting(&number(greatest)),
        None => range,
    };
    match (numbers.least, numbers.with_nan) {
        (_, true) => range,
        (Some(least), false) => range.until_beginning(&number(least)),
        (None, false) => range.until_beginning(&number(f64::NEG_INFINITY)),
    }
}
