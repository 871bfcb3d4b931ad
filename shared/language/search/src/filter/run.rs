//! Filters of runs.

use mlflow_api::{Error, Result};

use super::{Comparator, KeyTest, TextTest};
use crate::comparison::{Comparison, PartNaming, comparisons};
use crate::identifier::{self, Identifier, RunFieldFamily};
use crate::literals::{self, FilterLiteral, FilterNumber};
use crate::python_repr;

/// The tag that contains the name of a run. Conditions on the name are evaluated on this tag
/// (`_get_sqlalchemy_filter_clauses`).
pub(crate) const RUN_NAME_TAG: &str = "mlflow.runName";

const ATTRIBUTES: [&str; 12] = [
    "artifact_uri",
    "created",
    "Created",
    "end_time",
    "run name",
    "Run name",
    "Run Name",
    "run_id",
    "run_name",
    "start_time",
    "status",
    "user_id",
];
const NUMBER_COMPARATORS: [&str; 6] = [">", ">=", "!=", "=", "<", "<="];
const KEY_COMPARATORS: [&str; 6] = ["!=", "=", "LIKE", "ILIKE", "IS NULL", "IS NOT NULL"];
const TEXT_COMPARATORS: [&str; 6] = ["!=", "=", "LIKE", "ILIKE", "IN", "NOT IN"];

/// The conditions of a search of runs, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFilter {
    /// The conditions, in the order of the filter string.
    pub predicates: Vec<RunPredicate>,
}

/// A condition on a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunPredicate {
    /// A condition on the latest value of a metric.
    Metric {
        /// The name of the metric.
        key: String,
        /// The comparator.
        comparator: Comparator,
        /// The value to compare with.
        value: f64,
    },
    /// A condition on a parameter.
    Param {
        /// The name of the parameter.
        key: String,
        /// The test of the parameter.
        test: KeyTest,
    },
    /// A condition on a tag.
    Tag {
        /// The name of the tag.
        key: String,
        /// The test of the tag.
        test: KeyTest,
    },
    /// A condition on a text attribute.
    Text {
        /// The attribute.
        attribute: RunText,
        /// The test of its value.
        test: TextTest,
    },
    /// A condition on a numeric attribute.
    Number {
        /// The attribute.
        attribute: RunNumber,
        /// The comparator.
        comparator: Comparator,
        /// The value to compare with.
        value: FilterNumber,
    },
    /// A condition on the input datasets. It is met if at least one dataset passes.
    Dataset {
        /// The field of the dataset.
        field: DatasetField,
        /// The test of its value.
        test: TextTest,
    },
}

/// The text attributes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunText {
    /// The id.
    RunId,
    /// The name. It is used by orderings only, because a filter on the name is a filter on the tag
    /// `mlflow.runName`.
    RunName,
    /// The status: `RUNNING`, `FINISHED`, ...
    Status,
    /// The user who started the run.
    UserId,
    /// The location of the run's artifacts.
    ArtifactUri,
}

impl RunText {
    /// Returns the attribute's name in filters and orderings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RunId => "run_id",
            Self::RunName => "run_name",
            Self::Status => "status",
            Self::UserId => "user_id",
            Self::ArtifactUri => "artifact_uri",
        }
    }

    /// Returns the attribute with this name or alias (`SearchUtils.translate_key_alias`).
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "run_id" => Some(Self::RunId),
            "run_name" | "run name" | "Run name" | "Run Name" => Some(Self::RunName),
            "status" => Some(Self::Status),
            "user_id" => Some(Self::UserId),
            "artifact_uri" => Some(Self::ArtifactUri),
            _ => None,
        }
    }
}

/// The numeric attributes of a run, which are times in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunNumber {
    /// The start time.
    StartTime,
    /// The end time.
    EndTime,
}

impl RunNumber {
    /// Returns the attribute's name in filters and orderings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StartTime => "start_time",
            Self::EndTime => "end_time",
        }
    }

    /// Returns the attribute with this name or alias (`SearchUtils.translate_key_alias`).
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "start_time" | "created" | "Created" => Some(Self::StartTime),
            "end_time" => Some(Self::EndTime),
            _ => None,
        }
    }
}

/// The fields of a dataset that runs can be searched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetField {
    /// The name of the dataset.
    Name,
    /// The digest of the dataset.
    Digest,
    /// The tag `mlflow.data.context` of the input.
    Context,
}

impl DatasetField {
    /// All fields.
    pub const ALL: [Self; 3] = [Self::Name, Self::Digest, Self::Context];

    /// Returns the field's name in filters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Digest => "digest",
            Self::Context => "context",
        }
    }
}

/// Parses a filter of runs. Every run passes the empty filter.
pub fn parse_run_filter(filter: &str) -> Result<RunFilter> {
    UncheckedRunFilter::read(filter)?.finish()
}

/// A filter whose comparators have not been checked yet, because MLflow only checks them after it
/// has parsed the ordering.
pub(crate) struct UncheckedRunFilter<'a>(Vec<(Identifier<'a>, String, Option<Value>)>);

enum Value {
    Metric(f64),
    Attribute(FilterNumber),
    Other(FilterLiteral),
}

impl<'a> UncheckedRunFilter<'a> {
    /// Parses the identifiers and the values.
    pub(crate) fn read(filter: &'a str) -> Result<Self> {
        comparisons(filter, PartNaming::Quoted)?.map(|comparison| read(&comparison?)).collect::<Result<_>>().map(Self)
    }

    /// Checks the comparators, and builds the predicates.
    pub(crate) fn finish(self) -> Result<RunFilter> {
        for (identifier, comparator, _) in &self.0 {
            check_comparator(identifier, comparator)?;
        }
        let built = self.0.into_iter().map(|(identifier, comparator, value)| {
            // MLflow passes a list with a comparator other than IN on to the database, which fails.
            // Here, an error is returned.
            build(&identifier, &comparator, value)?
                .ok_or_else(|| Error::invalid(format!("The comparator '{comparator}' does not support lists.")))
        });
        Ok(RunFilter { predicates: built.collect::<Result<_>>()? })
    }
}

fn read<'a>(comparison: &Comparison<'a>) -> Result<(Identifier<'a>, String, Option<Value>)> {
    let identifier = identifier::of_run(comparison.left, &ATTRIBUTES)?;
    let Identifier { family, key } = identifier;
    let value = match (&comparison.right, family) {
        (None, RunFieldFamily::Param | RunFieldFamily::Tag) => None,
        (None, _) => {
            return Err(Error::invalid(format!(
                "IS NULL / IS NOT NULL is only supported for tags and params, not for '{family}' '{key}'"
            )));
        }
        (Some(right), RunFieldFamily::Metric) => Some(Value::Metric(literals::metric(right)?)),
        (Some(right), RunFieldFamily::Param | RunFieldFamily::Tag) => {
            Some(Value::Other(FilterLiteral::Text(literals::keyed_text(family, right)?)))
        }
        (Some(right), RunFieldFamily::Attribute) if RunNumber::parse(key).is_some() => {
            Some(Value::Attribute(literals::attribute_number(key, right)?))
        }
        (Some(right), RunFieldFamily::Attribute) => Some(Value::Other(literals::attribute_text(key, right, "run_id")?)),
        (Some(right), RunFieldFamily::Dataset) => Some(Value::Other(literals::dataset(right)?)),
    };
    Ok((identifier, comparison.comparator.to_uppercase(), value))
}

/// Checks whether a comparator is valid for an identifier (the `is_*` functions of `SearchUtils`).
/// Some of MLflow's messages lack the closing quote, and the message about numeric attributes lists
/// the comparators of texts.
fn check_comparator(identifier: &Identifier, comparator: &str) -> Result<()> {
    let (valid, listed, quote) = match identifier.family {
        RunFieldFamily::Attribute if RunNumber::parse(identifier.key).is_some() => {
            (NUMBER_COMPARATORS, TEXT_COMPARATORS, "")
        }
        RunFieldFamily::Attribute => (TEXT_COMPARATORS, TEXT_COMPARATORS, "'"),
        RunFieldFamily::Metric => (NUMBER_COMPARATORS, NUMBER_COMPARATORS, ""),
        RunFieldFamily::Param => (KEY_COMPARATORS, KEY_COMPARATORS, "'"),
        RunFieldFamily::Tag => (KEY_COMPARATORS, KEY_COMPARATORS, ""),
        RunFieldFamily::Dataset => (TEXT_COMPARATORS, TEXT_COMPARATORS, ""),
    };
    if valid.contains(&comparator) {
        return Ok(());
    }
    let listed = python_repr::set(&listed);
    Err(Error::invalid(format!("Invalid comparator '{comparator}' not one of '{listed}{quote}")))
}

/// Builds the predicate. Returns `None` if the comparator does not support the value.
fn build(identifier: &Identifier, comparator: &str, value: Option<Value>) -> Result<Option<RunPredicate>> {
    let &Identifier { family, key } = identifier;
    Ok(match value {
        None if comparator == "IS NULL" => keyed(family, key, KeyTest::Absent),
        None => keyed(family, key, KeyTest::Present),
        Some(Value::Metric(value)) => Comparator::parse(comparator).map(|comparator| RunPredicate::Metric {
            key: key.to_owned(),
            comparator,
            value,
        }),
        Some(Value::Attribute(value)) => RunNumber::parse(key)
            .zip(Comparator::parse(comparator))
            .map(|(attribute, comparator)| RunPredicate::Number { attribute, comparator, value }),
        Some(Value::Other(value)) => TextTest::new(comparator, value)?.and_then(|test| tested(family, key, test)),
    })
}

/// Builds the predicate for a test of a text value.
///
/// MLflow also applies the aliases of attributes to the keys of metrics, parameters and tags, so it
/// evaluates a condition on the metric `created` on the metric `start_time`. This bug is not
/// reproduced.
fn tested(family: RunFieldFamily, key: &str, test: TextTest) -> Option<RunPredicate> {
    match family {
        RunFieldFamily::Attribute => match RunText::parse(key)? {
            RunText::RunName => keyed(RunFieldFamily::Tag, RUN_NAME_TAG, KeyTest::Value(test)),
            attribute => Some(RunPredicate::Text { attribute, test }),
        },
        RunFieldFamily::Dataset => {
            let field = DatasetField::ALL.into_iter().find(|field| field.name() == key)?;
            Some(RunPredicate::Dataset { field, test })
        }
        _ => keyed(family, key, KeyTest::Value(test)),
    }
}

fn keyed(family: RunFieldFamily, key: &str, test: KeyTest) -> Option<RunPredicate> {
    let key = key.to_owned();
    match family {
        RunFieldFamily::Param => Some(RunPredicate::Param { key, test }),
        RunFieldFamily::Tag => Some(RunPredicate::Tag { key, test }),
        _ => None,
    }
}
