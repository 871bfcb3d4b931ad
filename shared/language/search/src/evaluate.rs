//! Evaluation of filters on runs and experiments. As in SQL, a missing value does not satisfy any
//! comparison, not even `!=`.

use mlflow_api::ExperimentId;

use crate::filter::{
    Comparator, DatasetField, ExperimentFilter, ExperimentNumber, ExperimentPredicate, RunFilter, RunNumber,
    RunPredicate, RunText, TextTest,
};

/// The fields of a run that filters and orderings use.
pub trait RunFields {
    /// Returns a text attribute.
    fn text(&self, attribute: RunText) -> Option<&str>;

    /// Returns a numeric attribute.
    fn number(&self, attribute: RunNumber) -> Option<i64>;

    /// Returns the latest value of a metric, which may be NaN.
    fn metric(&self, key: &str) -> Option<f64>;

    /// Returns the value of a parameter.
    fn param(&self, key: &str) -> Option<&str>;

    /// Returns the value of a tag.
    fn tag(&self, key: &str) -> Option<&str>;

    /// Returns the input datasets.
    fn datasets(&self) -> impl Iterator<Item = DatasetInputFields<'_>>;
}

/// An input dataset of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetInputFields<'a> {
    /// The name of the dataset.
    pub name: &'a str,
    /// The digest of the dataset.
    pub digest: &'a str,
    /// The value of the tag `mlflow.data.context` of this input.
    pub context: Option<&'a str>,
}

/// The fields of an experiment that filters and orderings use.
pub trait ExperimentFields {
    /// Returns the id.
    fn id(&self) -> ExperimentId;

    /// Returns the name.
    fn name(&self) -> &str;

    /// Returns a numeric attribute.
    fn number(&self, attribute: ExperimentNumber) -> i64;

    /// Returns the value of a tag.
    fn tag(&self, key: &str) -> Option<&str>;
}

impl RunFilter {
    /// Checks whether a run passes the filter.
    #[must_use]
    pub fn matches(&self, run: &impl RunFields) -> bool {
        self.predicates.iter().all(|predicate| predicate.matches(run))
    }
}

impl RunPredicate {
    /// Checks whether a run meets the condition.
    #[must_use]
    pub fn matches(&self, run: &impl RunFields) -> bool {
        match self {
            Self::Metric { key, comparator, value } => {
                run.metric(key).is_some_and(|stored| compare_metric(stored, *comparator, *value))
            }
            Self::Param { key, test } => test.passes(run.param(key)),
            Self::Tag { key, test } => test.passes(run.tag(key)),
            Self::Text { attribute, test } => run.text(*attribute).is_some_and(|text| test.passes(text)),
            Self::Number { attribute, comparator, value } => {
                run.number(*attribute).is_some_and(|stored| comparator.holds(value.compare_stored(stored)))
            }
            Self::Dataset { field, test } => run.datasets().any(|dataset| dataset.passes(*field, test)),
        }
    }
}

/// Compares a metric with a value. As in MLflow (`_get_sqlalchemy_filter_clauses`), NaN satisfies
/// `!=` for every value, and no other comparison.
fn compare_metric(stored: f64, comparator: Comparator, value: f64) -> bool {
    match stored.partial_cmp(&value) {
        Some(ordering) => comparator.holds(ordering),
        None => comparator == Comparator::NotEqual,
    }
}

impl<'a> DatasetInputFields<'a> {
    /// Returns the value of a field.
    #[must_use]
    pub const fn value(&self, field: DatasetField) -> Option<&'a str> {
        match field {
            DatasetField::Name => Some(self.name),
            DatasetField::Digest => Some(self.digest),
            DatasetField::Context => self.context,
        }
    }

    fn passes(&self, field: DatasetField, test: &TextTest) -> bool {
        self.value(field).is_some_and(|value| test.passes(value))
    }
}

impl ExperimentFilter {
    /// Checks whether an experiment passes the filter.
    #[must_use]
    pub fn matches(&self, experiment: &impl ExperimentFields) -> bool {
        self.predicates.iter().all(|predicate| predicate.matches(experiment))
    }
}

impl ExperimentPredicate {
    /// Checks whether an experiment meets the condition.
    #[must_use]
    pub fn matches(&self, experiment: &impl ExperimentFields) -> bool {
        match self {
            Self::Name(test) => test.passes(experiment.name()),
            Self::Id { among, negated } => among.contains(&experiment.id()) != *negated,
            Self::Number { attribute, comparator, value } => comparator.holds(experiment.number(*attribute).cmp(value)),
            Self::Tag { key, test } => test.passes(experiment.tag(key)),
        }
    }
}
