//! Where the lists of an experiment's runs are.

use entities::{RUN, RunCopy, RunLocation};
use key_schema::index::{RunsByEnd, RunsByName, RunsByStage, RunsByStatus, RunsByTime};
use key_schema::rows::{IndexedCopy, RankByMetric, RankByParam};
use key_schema::{
    DescendingDouble, Field, KeyRange, Level, OwnStage, Segment, Stage, TextSegment, Value, place, ranges,
};
use listing::{Lists, within_numbers, within_time};
use mlflow_api::ExperimentId;
use mlflow_api::tracking::{LifecycleStage, ViewType};
use search::{Metric, RunColumn, RunList, RunPlan, Runs, TextRange, TimeRange};
use table::Item;

use super::searched::SearchedExperiment;

/// The lists of an experiment's runs, as one search reads them.
#[derive(Clone, Debug)]
pub(super) struct RunLists {
    experiment: ExperimentId,
    started: TimeRange,
    all: AllRuns,
}

/// Which runs the list of all runs holds.
#[derive(Clone, Copy, Debug)]
enum AllRuns {
    /// Those that are active on their own, as all lists of the indexer.
    Active,
    /// Those that were deleted on their own at this version of the experiment's stage.
    Deleted {
        version: u32,
    },
    OfEveryStage,
    /// The runs of one stage of their own that have a copy in the index, with the copies.
    Copies(OwnStage),
}

impl RunLists {
    /// The lists of active runs that started then.
    pub(super) fn of_active(experiment: ExperimentId, started: TimeRange) -> Self {
        Self { experiment, started, all: AllRuns::Active }
    }

    /// The lists that a plan reads. Where it reads only the list of all runs, that is of the stages the view shows.
    pub(super) fn of_plan(within: &SearchedExperiment, plan: &RunPlan, view: ViewType) -> Self {
        let all = match view {
            _ if plan.reads_index() => AllRuns::Active,
            ViewType::ActiveOnly if within.index_is_exact(view) => AllRuns::Active,
            ViewType::DeletedOnly if within.state.stage == LifecycleStage::Active => {
                AllRuns::Deleted { version: within.state.version }
            }
            _ => AllRuns::OfEveryStage,
        };
        Self { experiment: within.id, started: plan.started, all }
    }

    /// The copies of runs that started then, of one stage of their own.
    pub(super) fn copies(experiment: ExperimentId, started: TimeRange, stage: OwnStage) -> Self {
        Self { experiment, started, all: AllRuns::Copies(stage) }
    }

    fn all(&self) -> KeyRange {
        match self.all {
            AllRuns::Copies(stage) => IndexedCopy::all(&self.experiment, &stage, &RUN.into()).range(),
            AllRuns::Active => RunsByStage::all(&self.experiment).stage(&Stage::Active).range(),
            AllRuns::Deleted { version } => {
                RunsByStage::all(&self.experiment).stage(&Stage::Deleted { version }).range()
            }
            AllRuns::OfEveryStage => RunsByTime::all(&self.experiment).range(),
        }
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
}

impl Lists for RunLists {
    type Columns = Runs;
    type At = RunLocation;

    fn range(&self, list: &RunList) -> KeyRange {
        let range = match list {
            RunList::All => self.all(),
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

    fn entity(&self, key: &str) -> Option<(i64, RunLocation)> {
        let (started, run) = place::started_and_run(key)?;
        Some((started, RunLocation { experiment: self.experiment, run }))
    }

    fn is_entity(item: &Item) -> bool {
        RunCopy::is_one(item)
    }

    fn id(at: &RunLocation) -> &str {
        at.run.as_str()
    }

    fn text(column: &RunColumn, text: &str) -> String {
        if *column == RunColumn::Name { Field::from(text).beginning() } else { Value::from(text).beginning() }
    }

    fn whole_text(column: &RunColumn, place: &str) -> Option<String> {
        let text = place::value(place);
        if *column == RunColumn::Name {
            Field::read(text).map(|name| name.0)
        } else {
            Value::read(text).map(|value| value.0)
        }
    }

    fn uncut(column: &RunColumn) -> usize {
        if *column == RunColumn::Name { Field::UNCUT - 3 } else { Value::UNCUT - 3 }
    }
}
