//! Searches of registered models.

use mlflow_api::{Error, Result};

use super::{RegistryGrammar, TagTests, read, repeated_field, text_test};
use crate::filter::TextTest;
use crate::identifier::RunFieldFamily;
use crate::like;
use crate::order_by::{OrderTerm, SortDirection, parse_clauses};
use crate::sort_key::{SortKey, SortKeyValue};

const GRAMMAR: RegistryGrammar = RegistryGrammar { attributes: &["name"], lists: &["name"], numbers: &[] };

/// The conditions of a search of registered models, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegisteredModelFilter {
    /// The conditions on the name.
    pub names: Vec<TextTest>,
    /// The conditions on the tags.
    pub tags: TagTests,
}

/// The fields that registered models can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisteredModelSortBy {
    /// The name.
    Name,
    /// The time of the last change.
    LastUpdated,
}

/// A total order of registered models. It is total because the last term is the name, which is
/// unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredModelOrder {
    /// The terms, in descending order of precedence.
    pub terms: Vec<OrderTerm<RegisteredModelSortBy>>,
}

/// The fields of a registered model that filters and orderings use.
pub trait RegisteredModelFields {
    /// Returns the name.
    fn name(&self) -> &str;
    /// Returns the time of the last change, in ms.
    fn last_updated(&self) -> i64;
    /// Returns the value of a tag.
    fn tag(&self, key: &str) -> Option<&str>;
}

/// Parses the filter and the ordering of a search of registered models.
pub fn parse_registered_model_search(
    filter: &str,
    order_by: &[String],
) -> Result<(RegisteredModelFilter, RegisteredModelOrder)> {
    let comparisons = read(filter, &GRAMMAR)?;
    let order = parse_order(order_by)?;
    let (tags, names): (Vec<_>, Vec<_>) = comparisons.into_iter().partition(|read| read.family == RunFieldFamily::Tag);
    let names = names.into_iter().map(|read| text_test(read, true)).collect::<Result<_>>()?;
    Ok((RegisteredModelFilter { names, tags: TagTests::new(tags)? }, order))
}

/// Parses an ordering (`_parse_search_registered_models_order_by`).
fn parse_order(clauses: &[String]) -> Result<RegisteredModelOrder> {
    let mut terms: Vec<OrderTerm<RegisteredModelSortBy>> = Vec::with_capacity(clauses.len() + 1);
    for clause in parse_clauses(clauses)? {
        let (written, direction) = clause?;
        let by = match written.as_str() {
            "name" => RegisteredModelSortBy::Name,
            "timestamp" | "last_updated_timestamp" => RegisteredModelSortBy::LastUpdated,
            _ => {
                return Err(Error::invalid(format!(
                    "Invalid order by key '{written}' specified. Valid keys are '{{'name', 'timestamp'}}'"
                )));
            }
        };
        if terms.iter().any(|term| term.by == by) {
            return Err(repeated_field(clauses));
        }
        terms.push(OrderTerm { by, direction });
    }
    match terms.iter().position(|term| term.by == RegisteredModelSortBy::Name) {
        // Names are unique, so any later terms have no effect.
        Some(name) => terms.truncate(name + 1),
        None => terms.push(OrderTerm { by: RegisteredModelSortBy::Name, direction: SortDirection::Ascending }),
    }
    Ok(RegisteredModelOrder { terms })
}

impl RegisteredModelFilter {
    /// Checks whether a model passes the filter.
    #[must_use]
    pub fn matches(&self, model: &impl RegisteredModelFields) -> bool {
        self.name_passes(model.name()) && self.tags.pass(|key| model.tag(key))
    }

    /// Checks whether a name passes the conditions on the name.
    #[must_use]
    pub fn name_passes(&self, name: &str) -> bool {
        self.names.iter().all(|test| test.passes(name))
    }

    /// Returns the longest prefix that all names of models that pass the filter are known to have,
    /// or `None` if there is none. The prefix is case-sensitive.
    #[must_use]
    pub fn name_beginning(&self) -> Option<&str> {
        beginning(&self.names)
    }
}

/// Returns the longest prefix that all texts that pass the tests are known to have, or `None` if
/// there is none.
pub(super) fn beginning(tests: &[TextTest]) -> Option<&str> {
    let beginnings = tests.iter().filter_map(|test| match test {
        TextTest::Equal(text) => Some(text.as_str()),
        TextTest::Like(pattern) => Some(like::beginning(pattern.as_str()).0),
        _ => None,
    });
    beginnings.filter(|beginning| !beginning.is_empty()).max_by_key(|beginning| beginning.len())
}

impl RegisteredModelOrder {
    /// Returns the sort key of a model.
    #[must_use]
    pub fn key(&self, model: &impl RegisteredModelFields) -> SortKey {
        SortKey::of(self.terms.iter().map(|term| {
            let cell = match term.by {
                RegisteredModelSortBy::Name => SortKeyValue::Text(model.name().to_owned()),
                RegisteredModelSortBy::LastUpdated => SortKeyValue::Integer(model.last_updated()),
            };
            (term.direction, cell)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Model(&'static str, i64, &'static [(&'static str, &'static str)]);

    impl RegisteredModelFields for Model {
        fn name(&self) -> &str {
            self.0
        }

        fn last_updated(&self) -> i64 {
            self.1
        }

        fn tag(&self, key: &str) -> Option<&str> {
            self.2.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
        }
    }

    fn message(filter: &str, order_by: &[&str]) -> String {
        let order_by: Vec<_> = order_by.iter().map(|&clause| clause.to_owned()).collect();
        parse_registered_model_search(filter, &order_by).unwrap_err().message
    }

    #[test]
    fn prompts_are_asked_for_by_their_tag() {
        for (filter, prompts, only) in [
            ("", false, false),
            ("tags.`mlflow.prompt.is_prompt` = 'true'", true, true),
            ("tag.`mlflow.prompt.is_prompt` = 'TRUE'", true, false),
            ("tags.`mlflow.prompt.is_prompt` != 'false'", true, false),
            ("tags.`mlflow.prompt.is_prompt` != 'true' AND name = 'a'", false, false),
            ("tags.`mlflow.prompt.is_prompt` LIKE 'true'", false, false),
        ] {
            let (filter, _) = parse_registered_model_search(filter, &[]).unwrap();
            assert_eq!((filter.tags.prompts, filter.tags.prompts_only()), (prompts, only), "{filter:?}");
            assert_eq!(filter.tags.tests.is_empty(), !prompts);
        }
    }

    #[test]
    fn conditions_are_all_to_be_met() {
        let model = Model("Iris", 5, &[("team", "red"), ("a b", "1")]);
        for (filter, expected) in [
            ("", true),
            ("name = 'Iris'", true),
            ("name = \"iris\"", false),
            ("name like 'I%' AND name ILIKE '%RIS'", true),
            ("name IN ('a', 'Iris')", true),
            ("name NOT IN ('Iris')", false),
            ("tags.team = 'red' AND tags.`a b` != '2'", true),
            ("tags.other != '2'", false),
            ("attribute.name != 'x'", true),
        ] {
            assert_eq!(parse_registered_model_search(filter, &[]).unwrap().0.matches(&model), expected, "{filter}");
        }
    }

    #[test]
    fn mistakes_are_named_as_in_mlflow() {
        for (filter, expected) in [
            ("run_id = 'a'", "Invalid attribute key 'run_id' specified. Valid keys are '{'name'}'"),
            ("`name` = 'a'", "Invalid attribute key '`name`' specified. Valid keys are '{'name'}'"),
            ("name > 'a'", "Invalid comparator for attribute: >"),
            ("tags.a > 'a'", "Invalid comparator for tag: >"),
            (
                "name = 5",
                "Expected a quoted string value or a list of quoted string values for attributes. Got value 5",
            ),
            ("params.a = 'a'", "Invalid entity type 'params'. Valid entity types are ('attribute', 'tag', 'tags')"),
        ] {
            assert_eq!(message(filter, &[]), expected, "{filter}");
        }
        assert_eq!(
            message("", &["creation_timestamp"]),
            "Invalid order by key 'creation_timestamp' specified. Valid keys are '{'name', 'timestamp'}'"
        );
        assert_eq!(
            message("", &["timestamp", "last_updated_timestamp DESC"]),
            "`order_by` contains duplicate fields: ['timestamp', 'last_updated_timestamp DESC']"
        );
    }

    #[test]
    fn names_break_ties() {
        let order = |clauses: &[&str]| {
            let clauses: Vec<_> = clauses.iter().map(|&clause| clause.to_owned()).collect();
            parse_registered_model_search("", &clauses).unwrap().1
        };
        let (a, b, c) = (Model("a", 2, &[]), Model("b", 1, &[]), Model("c", 2, &[]));
        assert_eq!(order(&["name", "timestamp"]), order(&[]));
        let by_time = order(&["timestamp DESC"]);
        assert!(by_time.key(&a) < by_time.key(&c) && by_time.key(&c) < by_time.key(&b));
        let by_name = order(&[]);
        assert!(by_name.key(&a) < by_name.key(&b));
    }
}
