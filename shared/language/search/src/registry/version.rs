//! Searches of model versions.

use mlflow_api::python::repr;
use mlflow_api::{Error, Result};

use super::model::beginning;
use super::{RegistryGrammar, TagTests, integer, read, repeated_field, text_test};
use crate::filter::{Comparator, TextTest};
use crate::identifier::{self, Identifier, RunFieldFamily};
use crate::order_by::{OrderTerm, SortDirection, parse_clauses};
use crate::python_repr;
use crate::sort_key::{SortKey, SortKeyValue};

const GRAMMAR: RegistryGrammar = RegistryGrammar {
    attributes: &["name", "version_number", "run_id", "source_path"],
    lists: &["name", "run_id"],
    numbers: &["version_number", "creation_timestamp", "last_updated_timestamp"],
};
const ORDERS: [&str; 4] = ["name", "version_number", "creation_timestamp", "last_updated_timestamp"];

/// The conditions of a search of model versions, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionFilter {
    /// The conditions on the name of the model.
    pub names: Vec<TextTest>,
    /// The conditions on the run.
    pub runs: Vec<TextTest>,
    /// The conditions on the source.
    pub sources: Vec<TextTest>,
    /// The conditions on the version number.
    pub numbers: Vec<VersionNumberTest>,
    /// The conditions on the tags.
    pub tags: TagTests,
}

/// A condition on a version number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionNumberTest {
    /// The comparator.
    pub comparator: Comparator,
    /// The value to compare with.
    pub value: i64,
}

/// The fields that model versions can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSortBy {
    /// The name of the model.
    Name,
    /// The version number.
    Number,
    /// The creation time.
    Created,
    /// The time of the last change.
    LastUpdated,
}

/// A total order of model versions. It is total because the name and the number are among its
/// terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionOrder {
    /// The terms, in descending order of precedence.
    pub terms: Vec<OrderTerm<VersionSortBy>>,
}

/// The fields of a model version that filters and orderings use.
pub trait VersionFields {
    /// Returns the name of the model.
    fn name(&self) -> &str;
    /// Returns the version number.
    fn number(&self) -> i64;
    /// Returns the run, if the version has one.
    fn run(&self) -> Option<&str>;
    /// Returns the source.
    fn source(&self) -> &str;
    /// Returns the creation time, in ms.
    fn created(&self) -> i64;
    /// Returns the time of the last change, in ms.
    fn last_updated(&self) -> i64;
    /// Returns the value of a tag.
    fn tag(&self, key: &str) -> Option<&str>;
}

/// Parses the filter and the ordering of a search of model versions. MLflow checks the comparators
/// before it parses the ordering.
pub fn parse_version_search(filter: &str, order_by: &[String]) -> Result<(VersionFilter, VersionOrder)> {
    let mut found = VersionFilter::default();
    let mut tags = Vec::new();
    for comparison in read(filter, &GRAMMAR)? {
        if comparison.family == RunFieldFamily::Tag {
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

/// Parses an ordering (`_parse_search_model_versions_order_by`).
fn parse_order(clauses: &[String]) -> Result<VersionOrder> {
    let by_default = ["last_updated_timestamp DESC", "name ASC", "version_number DESC"].map(str::to_owned);
    let clauses = if clauses.is_empty() { &by_default } else { clauses };
    let mut terms: Vec<OrderTerm<VersionSortBy>> = Vec::with_capacity(clauses.len() + 2);
    for clause in parse_clauses(clauses)? {
        let (written, direction) = clause?;
        // MLflow also accepts tags here, and interprets their keys as attributes.
        let Identifier { key, .. } = identifier::of_experiment(&written, &ORDERS)?;
        let by = match key {
            "name" => VersionSortBy::Name,
            "version_number" => VersionSortBy::Number,
            "creation_timestamp" => VersionSortBy::Created,
            "last_updated_timestamp" => VersionSortBy::LastUpdated,
            _ => {
                let valid = python_repr::set(&ORDERS);
                return Err(Error::invalid(format!(
                    "Invalid order by key {} specified. Valid keys are {valid}",
                    repr(key)
                )));
            }
        };
        if terms.iter().any(|term| term.by == by) {
            return Err(repeated_field(clauses));
        }
        terms.push(OrderTerm { by, direction });
    }
    for (by, direction) in
        [(VersionSortBy::Name, SortDirection::Ascending), (VersionSortBy::Number, SortDirection::Descending)]
    {
        if !terms.iter().any(|term| term.by == by) {
            terms.push(OrderTerm { by, direction });
        }
    }
    Ok(VersionOrder { terms })
}

impl VersionFilter {
    /// Checks whether a version passes the filter.
    #[must_use]
    pub fn matches(&self, version: &impl VersionFields) -> bool {
        self.name_passes(version.name())
            && self.runs.iter().all(|test| version.run().is_some_and(|run| test.passes(run)))
            && self.sources.iter().all(|test| test.passes(version.source()))
            && self.numbers.iter().all(|test| test.comparator.holds(version.number().cmp(&test.value)))
            && self.tags.pass(|key| version.tag(key))
    }

    /// Checks whether the name of a model passes the conditions on the name.
    #[must_use]
    pub fn name_passes(&self, name: &str) -> bool {
        self.names.iter().all(|test| test.passes(name))
    }

    /// If the filter lists runs, returns them. A version only passes if its run is one of them.
    #[must_use]
    pub fn among_runs(&self) -> Option<Vec<&str>> {
        among(&self.runs)
    }

    /// If the filter lists model names, returns them. A version only passes if the name of its
    /// model is one of them.
    #[must_use]
    pub fn among_names(&self) -> Option<Vec<&str>> {
        among(&self.names)
    }

    /// Returns the longest prefix that the model names of all versions that pass the filter are
    /// known to have, or `None` if there is none. The prefix is case-sensitive.
    #[must_use]
    pub fn name_beginning(&self) -> Option<&str> {
        beginning(&self.names)
    }
}

/// Returns the shortest list of distinct texts to which a test restricts the value, or `None` if no
/// test does.
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
    /// Returns the sort key of a version.
    #[must_use]
    pub fn key(&self, version: &impl VersionFields) -> SortKey {
        SortKey::of(self.terms.iter().map(|term| {
            let cell = match term.by {
                VersionSortBy::Name => SortKeyValue::Text(version.name().to_owned()),
                VersionSortBy::Number => SortKeyValue::Integer(version.number()),
                VersionSortBy::Created => SortKeyValue::Integer(version.created()),
                VersionSortBy::LastUpdated => SortKeyValue::Integer(version.last_updated()),
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
