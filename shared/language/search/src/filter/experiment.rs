//! Filters of experiments.

use std::collections::BTreeSet;

use mlflow_api::python::float;
use mlflow_api::{Error, ErrorCode, ExperimentId, Result};

use super::{Comparator, KeyTest, TextTest};
use crate::comparison::{Comparison, PartNaming, comparisons};
use crate::identifier::{self, Identifier, RunFieldFamily};
use crate::like;
use crate::literals::{self, FilterLiteral, FilterNumber};
use crate::python_repr;

/// The attributes that experiments can be searched and sorted by.
pub(crate) const EXPERIMENT_ATTRIBUTES: [&str; 4] = ["creation_time", "experiment_id", "last_update_time", "name"];
const TEXT_COMPARATORS: [&str; 6] = ["!=", "=", "LIKE", "ILIKE", "IN", "NOT IN"];

/// The conditions of a search of experiments, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentFilter {
    /// The conditions, in the order of the filter string.
    pub predicates: Vec<ExperimentPredicate>,
}

/// A condition on an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum ExperimentPredicate {
    /// A condition on the name.
    Name(TextTest),
    /// A condition on the id: membership in a set of ids, or its negation.
    Id {
        /// The ids in the filter, except for values that are not valid experiment ids.
        among: BTreeSet<ExperimentId>,
        /// Whether the id must not be in the set.
        negated: bool,
    },
    /// A condition on a numeric attribute.
    Number {
        /// The attribute.
        attribute: ExperimentNumber,
        /// The comparator.
        comparator: Comparator,
        /// The value to compare with.
        value: i64,
    },
    /// A condition on a tag.
    Tag {
        /// The name of the tag.
        key: String,
        /// The test of the tag.
        test: KeyTest,
    },
}

/// The numeric attributes of an experiment, which are times in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentNumber {
    /// The creation time.
    CreationTime,
    /// The time of the last change.
    LastUpdateTime,
}

impl ExperimentNumber {
    /// Returns the attribute's name in filters and orderings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreationTime => "creation_time",
            Self::LastUpdateTime => "last_update_time",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::CreationTime, Self::LastUpdateTime].into_iter().find(|attribute| attribute.name() == name)
    }
}

impl ExperimentFilter {
    /// Returns the longest prefix that all names of experiments that pass the filter are known to
    /// have, or `None` if there is none. The prefix is case-sensitive.
    #[must_use]
    pub fn name_beginning(&self) -> Option<&str> {
        let beginnings = self.predicates.iter().filter_map(|predicate| match predicate {
            ExperimentPredicate::Name(TextTest::Equal(name)) => Some(name.as_str()),
            ExperimentPredicate::Name(TextTest::Like(pattern)) => Some(like::beginning(pattern.as_str()).0),
            _ => None,
        });
        beginnings.filter(|beginning| !beginning.is_empty()).max_by_key(|beginning| beginning.len())
    }
}

/// Parses a filter of experiments. Every experiment passes the empty filter.
pub fn parse_experiment_filter(filter: &str) -> Result<ExperimentFilter> {
    // MLflow parses every value before it checks the first comparator.
    let drafts: Vec<_> =
        comparisons(filter, PartNaming::Bare)?.map(|comparison| read(&comparison?)).collect::<Result<_>>()?;
    let predicates = drafts.into_iter().map(|(identifier, comparator, value)| build(&identifier, comparator, value));
    Ok(ExperimentFilter { predicates: predicates.collect::<Result<_>>()? })
}

/// Parses the identifier and the value (`SearchExperimentsUtils._get_comparison`). Comparators are
/// case-sensitive, unlike in searches of runs, so `like` is not a comparator.
fn read<'a>(comparison: &Comparison<'a>) -> Result<(Identifier<'a>, &'a str, Option<FilterLiteral>)> {
    let identifier = identifier::of_experiment(comparison.left, &EXPERIMENT_ATTRIBUTES)?;
    let Identifier { family, key } = identifier;
    let value = match &comparison.right {
        None if family == RunFieldFamily::Tag => None,
        None => {
            return Err(Error::invalid(format!(
                "IS NULL / IS NOT NULL is only supported for tags, not for attribute '{key}'"
            )));
        }
        Some(right) if family == RunFieldFamily::Tag => Some(FilterLiteral::Text(literals::keyed_text(family, right)?)),
        Some(right) if ExperimentNumber::parse(key).is_some() => {
            Some(FilterLiteral::Number(literals::attribute_number(key, right)?))
        }
        Some(right) => Some(literals::attribute_text(key, right, "experiment_id")?),
    };
    Ok((identifier, comparison.comparator, value))
}

/// Checks the comparator and the value, and builds the predicate
/// (`_get_search_experiments_filter_clauses`).
fn build(identifier: &Identifier, comparator: &str, value: Option<FilterLiteral>) -> Result<ExperimentPredicate> {
    let &Identifier { family, key } = identifier;
    match value {
        None if comparator == "IS NULL" => Ok(ExperimentPredicate::Tag { key: key.to_owned(), test: KeyTest::Absent }),
        None => Ok(ExperimentPredicate::Tag { key: key.to_owned(), test: KeyTest::Present }),
        Some(FilterLiteral::Number(value)) => number(key, comparator, value),
        Some(value) if family == RunFieldFamily::Tag => match TextTest::new(comparator, value)? {
            Some(test) => Ok(ExperimentPredicate::Tag { key: key.to_owned(), test: KeyTest::Value(test) }),
            None => Err(Error::invalid(format!("Invalid comparator for tag: {comparator}"))),
        },
        Some(value) if key == "experiment_id" => id(comparator, value),
        Some(value) => {
            TextTest::new(comparator, value)?.map(ExperimentPredicate::Name).ok_or_else(|| not_one_of(comparator, "'"))
        }
    }
}

fn id(comparator: &str, value: FilterLiteral) -> Result<ExperimentPredicate> {
    let (takes_list, negated) = match comparator {
        "=" => (false, false),
        "!=" => (false, true),
        "IN" => (true, false),
        "NOT IN" => (true, true),
        _ => return Err(Error::invalid(format!("Invalid comparator for experiment_id: {comparator}"))),
    };
    let (is_list, texts) = match value {
        FilterLiteral::List(texts) => (true, texts),
        FilterLiteral::Text(text) => (false, vec![text]),
        FilterLiteral::Number(_) => (false, Vec::new()),
    };
    let ids = texts.iter().map(|text| match ExperimentId::parse(text) {
        _ if text.is_empty() => Err(Error::invalid("Invalid experiment ID ''. Experiment ID must be a valid integer.")),
        Ok(id) => Ok(Some(id)),
        Err(error) if error.code == ErrorCode::ResourceDoesNotExist => Ok(None),
        Err(error) => Err(error),
    });
    let among = ids.filter_map(Result::transpose).collect::<Result<_>>()?;
    if is_list != takes_list {
        // MLflow passes the list on to the database, which fails. Here, an error is returned.
        return Err(Error::invalid(format!("The comparator '{comparator}' does not support lists.")));
    }
    Ok(ExperimentPredicate::Id { among, negated })
}

fn number(key: &str, comparator: &str, value: FilterNumber) -> Result<ExperimentPredicate> {
    let (Some(attribute), Some(comparator)) = (ExperimentNumber::parse(key), Comparator::parse(comparator)) else {
        return Err(not_one_of(comparator, ""));
    };
    match value {
        FilterNumber::Integer(value) => Ok(ExperimentPredicate::Number { attribute, comparator, value }),
        FilterNumber::Float(value) => {
            Err(Error::invalid(format!("Invalid value for numeric attribute '{key}': '{}'", float(value))))
        }
    }
}

/// Returns the error for an invalid comparator. As in MLflow, the message about numbers also lists
/// the comparators of texts, and omits the closing quote.
fn not_one_of(comparator: &str, quote: &str) -> Error {
    let listed = python_repr::set(&TEXT_COMPARATORS);
    Error::invalid(format!("Invalid comparator '{comparator}' not one of '{listed}{quote}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_counts() {
        for (filter, expected) in [
            ("name = 'abc'", Some("abc")),
            ("name LIKE 'ab%c' AND name LIKE 'abc%'", Some("abc")),
            ("name LIKE 'a_c'", Some("a")),
            ("name LIKE '%a' AND name ILIKE 'abc%' AND name != 'abc'", None),
            ("tags.a = 'abc'", None),
        ] {
            assert_eq!(parse_experiment_filter(filter).unwrap().name_beginning(), expected, "{filter}");
        }
    }
}
