//! Filters and orderings of registered models and of model versions (`SearchModelUtils`,
//! `SearchModelVersionUtils`).
//!
//! A search returns either models or prompts. Prompts are left out unless the filter requests them.

mod model;
mod version;

use mlflow_api::registry::IS_PROMPT_TAG;
use mlflow_api::{Error, Result};

pub use model::{
    RegisteredModelFields, RegisteredModelFilter, RegisteredModelOrder, RegisteredModelSortBy,
    parse_registered_model_search,
};
pub use version::{VersionFields, VersionFilter, VersionNumberTest, VersionOrder, VersionSortBy, parse_version_search};

use crate::comparison::{Comparison, PartNaming, comparisons};
use crate::filter::TextTest;
use crate::identifier::{self, Identifier, RunFieldFamily};
use crate::literal_list;
use crate::literals::{self, FilterLiteral, FilterNumber};
use crate::python_repr;
use crate::syntax::{NodeKind, SyntaxNode};

/// The properties in which the grammars for models and for versions differ.
struct RegistryGrammar {
    attributes: &'static [&'static str],
    /// The names of attributes that accept lists.
    lists: &'static [&'static str],
    /// The names of attributes that can be compared with numbers. Some of them only occur in an
    /// error message, because they are not searchable.
    numbers: &'static [&'static str],
}

/// A parsed comparison. The comparator is in upper case, and has not been checked against the value
/// yet.
struct ParsedComparison {
    family: RunFieldFamily,
    key: String,
    comparator: String,
    value: FilterLiteral,
}

/// Parses the comparisons of a filter. All values are parsed before the first comparator is
/// checked.
fn read(filter: &str, grammar: &RegistryGrammar) -> Result<Vec<ParsedComparison>> {
    comparisons(filter, PartNaming::Bare)?.map(|comparison| read_comparison(&comparison?, grammar)).collect()
}

fn read_comparison(comparison: &Comparison, grammar: &RegistryGrammar) -> Result<ParsedComparison> {
    let Identifier { family, key } = identifier::of_registry(comparison.left, grammar.attributes)?;
    let Some(right) = &comparison.right else {
        // MLflow's parser fails for IS NULL and IS NOT NULL, because it expects three tokens and
        // gets two.
        return Err(Error::invalid("IS NULL / IS NOT NULL is not supported in the model registry"));
    };
    let value = if family == RunFieldFamily::Tag {
        FilterLiteral::Text(literals::keyed_text(family, right)?)
    } else {
        attribute_value(key, right, grammar)?
    };
    Ok(ParsedComparison { family, key: key.to_owned(), comparator: comparison.comparator.to_uppercase(), value })
}

fn attribute_value(key: &str, node: &SyntaxNode, grammar: &RegistryGrammar) -> Result<FilterLiteral> {
    if let Some(text) = literals::text(node) {
        return text.map(FilterLiteral::Text);
    }
    match node.kind {
        NodeKind::Parenthesis if grammar.lists.contains(&key) => {
            literal_list::strings(node.text).map(FilterLiteral::List)
        }
        NodeKind::Parenthesis => {
            let listed = mlflow_api::python::repr_list(grammar.lists);
            Err(Error::invalid(format!(
                "Only {listed} attributes support comparison with a list of quoted string values."
            )))
        }
        kind if kind.is_number() && !grammar.numbers.is_empty() => {
            if !grammar.numbers.contains(&key) {
                let numeric = python_repr::set(grammar.numbers);
                return Err(Error::invalid(format!(
                    "Only the '{numeric}' attributes support comparison with numeric values."
                )));
            }
            literals::attribute_number(key, node).map(FilterLiteral::Number)
        }
        _ => Err(Error::invalid(format!(
            "Expected a quoted string value or a list of quoted string values for attributes. Got value {}",
            node.text
        ))),
    }
}

fn invalid_comparator(comparator: &str) -> Error {
    Error::invalid(format!("Invalid comparator for attribute: {comparator}"))
}

/// Builds the test of a text attribute. Only some attributes accept lists.
fn text_test(read: ParsedComparison, takes_lists: bool) -> Result<TextTest> {
    let ParsedComparison { comparator, value, .. } = read;
    let is_known = match comparator.as_str() {
        "=" | "!=" | "LIKE" | "ILIKE" => true,
        "IN" | "NOT IN" => takes_lists,
        _ => false,
    };
    if !is_known {
        return Err(invalid_comparator(&comparator));
    }
    // MLflow passes a list with a comparator that does not support lists on to the database, which
    // fails. Here, an error is returned.
    let message = format!("The comparator '{comparator}' does not support this value.");
    let refused = Error::new(mlflow_api::ErrorCode::BadRequest, message);
    TextTest::new(&comparator, value)?.ok_or(refused)
}

/// The conditions on tags, and whether the search is for prompts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TagTests {
    /// The key and the test of each condition.
    pub tests: Vec<(String, TextTest)>,
    /// Whether the search returns prompts. If not, it returns models.
    pub prompts: bool,
}

impl TagTests {
    fn new(tags: Vec<ParsedComparison>) -> Result<Self> {
        let mut tests = Vec::with_capacity(tags.len());
        for ParsedComparison { key, comparator, value, .. } in tags {
            let test = match comparator.as_str() {
                "=" | "!=" | "LIKE" | "ILIKE" => TextTest::new(&comparator, value)?,
                _ => None,
            };
            tests.push((key, test.ok_or_else(|| Error::invalid(format!("Invalid comparator for tag: {comparator}")))?));
        }
        let prompts = asks_for_prompts(&tests);
        if !prompts {
            // The condition is removed because models that are not prompts do not need to have the
            // tag.
            tests.retain(|(key, _)| key != IS_PROMPT_TAG);
        }
        Ok(Self { tests, prompts })
    }

    /// Checks whether the tags of an entity pass.
    #[must_use]
    pub fn pass<'a>(&self, tag: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.tests.iter().all(|(key, test)| tag(key).is_some_and(|value| test.passes(value)))
    }

    /// Checks whether the filter only accepts entities whose prompt tag is exactly `true`.
    #[must_use]
    pub fn prompts_only(&self) -> bool {
        self.tests.iter().any(|(key, test)| key == IS_PROMPT_TAG && *test == TextTest::Equal("true".to_owned()))
    }
}

/// Checks whether the first condition on the prompt tag requests prompts (`_is_querying_prompt`).
fn asks_for_prompts(tests: &[(String, TextTest)]) -> bool {
    match tests.iter().find(|(key, _)| key == IS_PROMPT_TAG) {
        Some((_, TextTest::Equal(value))) => value.to_lowercase() == "true",
        Some((_, TextTest::NotEqual(value))) => value.to_lowercase() == "false",
        _ => false,
    }
}

/// Returns the error for an ordering that contains a field twice. MLflow raises this error without
/// a code, which makes it an internal error.
fn repeated_field(clauses: &[String]) -> Error {
    let listed = mlflow_api::python::repr_list(clauses);
    Error::new(mlflow_api::ErrorCode::InternalError, format!("`order_by` contains duplicate fields: {listed}"))
}

/// Parses the number that a version's number is compared with. It may be an integer, or a text that
/// represents an integer.
fn integer(key: &str, value: FilterLiteral) -> Result<i64> {
    let printed = match value {
        FilterLiteral::Number(FilterNumber::Integer(number)) => return Ok(number),
        FilterLiteral::Number(FilterNumber::Float(number)) => mlflow_api::python::float(number),
        FilterLiteral::Text(text) => match mlflow_api::python::int(&text) {
            Some(integer) => {
                return integer.parse().map_err(|_| {
                    Error::invalid(format!(
                        "The value {integer} of the numeric attribute {key} does not fit into 64 bits."
                    ))
                });
            }
            None => mlflow_api::python::repr(&text),
        },
        FilterLiteral::List(texts) => mlflow_api::python::repr_list(&texts),
    };
    Err(Error::invalid(format!("Invalid value for numeric attribute '{key}': {printed}")))
}
