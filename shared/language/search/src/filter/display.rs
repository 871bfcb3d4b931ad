//! Formatting of filters as text. Parsing the text results in an equal filter, unless keys or
//! values contain quotes.

use std::fmt;

use mlflow_api::python::repr;

use super::{ExperimentFilter, ExperimentPredicate, KeyTest, RunFilter, RunPredicate, TextTest};
use crate::literals::FilterNumber;
use crate::python_repr::join;

impl fmt::Display for RunFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_joined(formatter, &self.predicates)
    }
}

impl fmt::Display for ExperimentFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_joined(formatter, &self.predicates)
    }
}

fn write_joined(formatter: &mut fmt::Formatter<'_>, predicates: &[impl fmt::Display]) -> fmt::Result {
    for (place, predicate) in predicates.iter().enumerate() {
        let separator = if place == 0 { "" } else { " AND " };
        write!(formatter, "{separator}{predicate}")?;
    }
    Ok(())
}

impl fmt::Display for RunPredicate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metric { key, comparator, value } => {
                write!(formatter, "metrics.`{key}` {} {}", comparator.symbol(), FilterNumber::Float(*value))
            }
            Self::Param { key, test } => write!(formatter, "params.`{key}` {test}"),
            Self::Tag { key, test } => write!(formatter, "tags.`{key}` {test}"),
            Self::Text { attribute, test } => write!(formatter, "{} {test}", attribute.name()),
            Self::Number { attribute, comparator, value } => {
                write!(formatter, "{} {} {value}", attribute.name(), comparator.symbol())
            }
            Self::Dataset { field, test } => write!(formatter, "datasets.{} {test}", field.name()),
        }
    }
}

impl fmt::Display for ExperimentPredicate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(test) => write!(formatter, "name {test}"),
            Self::Id { among, negated } => {
                let ids = among.iter().map(|id| format!("'{id}'"));
                write!(formatter, "experiment_id {}IN ({})", if *negated { "NOT " } else { "" }, join(ids))
            }
            Self::Number { attribute, comparator, value } => {
                write!(formatter, "{} {} {value}", attribute.name(), comparator.symbol())
            }
            Self::Tag { key, test } => write!(formatter, "tags.`{key}` {test}"),
        }
    }
}

impl fmt::Display for KeyTest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present => formatter.write_str("IS NOT NULL"),
            Self::Absent => formatter.write_str("IS NULL"),
            Self::Value(test) => write!(formatter, "{test}"),
        }
    }
}

impl fmt::Display for TextTest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(text) => write!(formatter, "= {}", quoted(text)),
            Self::NotEqual(text) => write!(formatter, "!= {}", quoted(text)),
            Self::Like(pattern) => write!(formatter, "LIKE {}", quoted(pattern.as_str())),
            Self::ILike(pattern) => write!(formatter, "ILIKE {}", quoted(pattern.as_str())),
            Self::In(texts) => write!(formatter, "IN ({})", join(texts.iter().map(|text| repr(text)))),
            Self::NotIn(texts) => {
                write!(formatter, "NOT IN ({})", join(texts.iter().map(|text| repr(text))))
            }
        }
    }
}

/// Returns the text in quotes of the kind that it does not contain. A filter cannot escape quotes
/// within quotes.
pub(crate) fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') { '"' } else { '\'' };
    format!("{quote}{text}{quote}")
}
