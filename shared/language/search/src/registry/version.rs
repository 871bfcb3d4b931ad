//! Searches of model versions.

use mlflow_api::python::repr;
use mlflow_api::{Error, Result};

use super::model::beginning;
use super::{Grammar, TagTests, integer, read, repeated_field, text_test};
use crate::filter::{Comparator, TextTest};
use crate::identifier::{self, Family, Identifier};
use crate::order_by::{Direction, Term, parse_clauses};
use crate::print;
use crate::sort_key::{Cell, SortKey};

const GRAMMAR: Grammar = Grammar {
    attributes: &["name", "version_number", "run_id", "source_path"],
    lists: &["name", "run_id"],
    numbers: &["version_number", "creation_timestamp", "last_updated_timestamp"],
};
const ORDERS: [&str; 4] = ["name", "version_number", "creation_timestamp", "last_updated_timestamp"];

/// The conditions a model version must meet, all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionFilter {
    /// On the name of the model.
    pub names: Vec<TextTest>,
    /// On the run.
    pub runs: Vec<TextTest>,
    /// On the source.
    pub sources: Vec<TextTest>,
    /// On the number.
    pub numbers: Vec<VersionNumberTest>,
    /// On its tags.
    pub tags: TagTests,
}

/// A test of a version's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionNumberTest {
    /// How to compare.
    pub comparator: Comparator,
    /// The value to compare with.
    pub value: i64,
}

/// The fields that model versions are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSortBy {
    /// The name of the model.
    Name,
    /// The number.
    Number,
    /// When it was created.
    Created,
    /// When it was last changed.
    LastUpdated,
}

/// A total order of model versions: name and number are among the terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionOrder {
    /// The terms, the first decides first.
    pub terms: Vec<Term<VersionSortBy>>,
}

/// The fields of a model version that a search needs.
pub trait VersionFields {
    /// The name of its model.
    fn name(&self) -> &str;
    /// Its number.
    fn number(&self) -> i64;
    /// Its run, if it has one.
    fn run(&self) -> Option<&str>;
    /// Its source.
    fn source(&self) -> &str;
    /// When it was created, in ms.
    fn created(&self) -> i64;
    /// When it was last changed, in ms.
    fn last_updated(&self) -> i64;
    /// A tag.
    fn tag(&self, key: &str) -> Option<&str>;
}

/// Reads the filter and the ordering of a search of model versions. MLflow checks comparators before it reads the ordering.
pub fn parse_version_search(filter: &str, order_by: &[String]) -> Result<(VersionFilter, VersionOrder)> {
    let mut found = VersionFilter::default();
    let mut tags = Vec::new();
    for comparison in read(filter, &GRAMMAR)? {
        if comparison.family == Family::Tag {
            tags.push(comparison);
            continue;
        }
        match comparison.key.as_str() {
            "version_number" => {
                let Some(comparator) = Comparator::parse(&comparison.comparator) else {
                    let comparator = comparison.comparator;
                    return Err(Error::invalid(format!(
                        "Invalid comparator for attribute version_number: {comparator}"
                    )));
                };
                let value = integer("version_number", comparison.value)?;
                found.numbers.push(VersionNumberTest { comparator, value });
            }
            "name" => found.names.push(text_test(comparison, true)?),
            "run_id" => found.runs.push(text_test(comparison, true)?),
            _ => found.sources.push(text_test(comparison, false)?),
        }
    }
    found.tags = TagTests::new(tags)?;
    Ok((found, parse_order(order_by)?))
}

/// Reads an ordering (`_parse_search_model_versions_order_by`).
fn parse_order(clauses: &[String]) -> Result<VersionOrder> {
    let by_default = ["last_updated_timestamp DESC", "name ASC", "version_number DESC"].map(str::to_owned);
    let clauses = if clauses.is_empty() { &by_default } else { clauses };
    let mut terms: Vec<Term<VersionSortBy>> = Vec::with_capacity(clauses.len() + 2);
    for clause in parse_clauses(clauses)? {
        let (written, direction) = clause?;
        // MLflow reads tags, too, and takes their keys for attributes.
        let Identifier { key, .. } = identifier::of_experiment(&written, &ORDERS)?;
        let by = match key {
            "name" => VersionSortBy::Name,
            "version_number" => VersionSortBy::Number,
            "creation_timestamp" => VersionSortBy::Created,
            "last_updated_timestamp" => VersionSortBy::LastUpdated,
            _ => {
                let valid = print::set(&ORDERS);
                return Err(Error::invalid(format!(
                    "Invalid order by key {} specified. Valid keys are {valid}",
                    repr(key)
                )));
            }
        };
        if terms.iter().any(|term| term.by == by) {
            return Err(repeated_field(clauses));
        }
        terms.push(Term { by, direction });
    }
    for (by, direction) in [(VersionSortBy::Name, Direction::Ascending), (VersionSortBy::Number, Direction::Descending)]
    {
        if !terms.iter().any(|term| term.by == by) {
            terms.push(Term { by, direction });
        }
    }
    Ok(VersionOrder { terms })
}

impl VersionFilter {
    /// Whether a version passes.
    #[must_use]
    pub fn matches(&self, version: &impl VersionFields) -> bool {
        self.name_passes(version.name())
            && self.runs.iter().all(|test| version.run().is_some_and(|run| test.passes(run)))
            && self.sources.iter().all(|test| test.passes(version.source()))
            && self.numbers.iter().all(|test| test.comparator.holds(version.number().cmp(&test.value)))
            && self.tags.pass(|key| version.tag(key))
    }

    /// Whether the name of a model passes.
    #[must_use]
    pub fn name_passes(&self, name: &str) -> bool {
        self.names.iter().all(|test| test.passes(name))
    }

    /// If the filter limits the runs: every version that passes has one of these.
    #[must_use]
    pub fn among_runs(&self) -> Option<Vec<&str>> {
        among(&self.runs)
    }

    /// If the filter limits the names: the model of every version that passes has one of these.
    #[must_use]
    pub fn among_names(&self) -> Option<Vec<&str>> {
        among(&self.names)
    }

    /// The beginning of the name of the model of every version that passes, if the filter implies
    /// one. Case counts.
    #[must_use]
    pub fn name_beginning(&self) -> Option<&str> {
        beginning(&self.names)
    }
}

/// The fewest texts that the tests leave, each once.
fn among(tests: &[TextTest]) -> Option<Vec<&str>> {
    let lists = tests.iter().filter_map(|test| match test {
        TextTest::Equal(only) => Some(vec![only.as_str()]),
        TextTest::In(listed) => Some(listed.iter().map(String::as_str).collect()),
        _ => None,
    });
    let mut fewest: Vec<_> = lists.min_by_key(Vec::len)?;
    fewest.sort_unstable();
    fewest.dedup();
    Some(fewest)
}

impl VersionOrder {
    /// The key of a version.
    #[must_use]
    pub fn key(&self, version: &impl VersionFields) -> SortKey {
        SortKey::of(self.terms.iter().map(|term| {
            let cell = match term.by {
                VersionSortBy::Name => Cell::Text(version.name().to_owned()),
                VersionSortBy::Number => Cell::Integer(version.number()),
                VersionSortBy::Created => Cell::Integer(version.created()),
                VersionSortBy::LastUpdated => Cell::Integer(version.last_updated()),
            };
            (term.direction, cell)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_say_where_to_look() {
        let filter = |text: &str| parse_version_search(text, &[]).unwrap().0;
        assert_eq!(filter("run_id = 'a' AND run_id IN ('b', 'a')").among_runs(), Some(vec!["a"]));
        assert_eq!(filter("run_id IN ('b', 'a', 'b')").among_runs(), Some(vec!["a", "b"]));
        assert_eq!(filter("run_id != 'a' AND name LIKE 'm%'").among_runs(), None);
        assert_eq!(filter("name LIKE 'm%' AND name LIKE 'mo%'").name_beginning(), Some("mo"));
        assert_eq!(filter("name = 'm'").among_names(), Some(vec!["m"]));
    }

    #[test]
    fn mistakes_are_named_as_in_mlflow() {
        for (filter, expected) in [
            ("version_number LIKE '1'", "Invalid comparator for attribute version_number: LIKE"),
            ("version_number = 1.5", "Invalid value for numeric attribute 'version_number': 1.5"),
            ("version_number = 'x'", "Invalid value for numeric attribute 'version_number': 'x'"),
            (
                "name = 5",
                "Only the '{'creation_timestamp', 'last_updated_timestamp', 'version_number'}' attributes support \
                 comparison with numeric values.",
            ),
            (
                "source_path IN ('a')",
                "Only ['name', 'run_id'] attributes support comparison with a list of quoted string values.",
            ),
            ("tags.a IN ('a')", "Expected a quoted string value for tag (e.g. 'my-value'). Got value ('a')"),
        ] {
            assert_eq!(parse_version_search(filter, &[]).unwrap_err().message, expected, "{filter}");
        }
        assert!(parse_version_search("version_number >= '3' AND version_number < 9", &[]).is_ok());
        let order = ["tags.foo".to_owned()];
        assert_eq!(
            parse_version_search("", &order).unwrap_err().message,
            "Invalid order by key 'foo' specified. Valid keys are {'creation_timestamp', 'last_updated_timestamp', 'name', \
             'version_number'}"
        );
    }
}
