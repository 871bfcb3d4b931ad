//! Comparisons in filters of the registries of MCP servers and skills, whose comparators are not
//! checked yet.

use std::borrow::Cow;

use mlflow_api::{Error, Result};

use crate::comparison::Comparison;
use crate::identifier::{self, Identifier, RunFieldFamily};
use crate::literal_list;
use crate::literals::{self, FilterLiteral};
use crate::syntax::NodeKind;

/// A comparison with its parsed value.
pub(crate) struct UncheckedComparison {
    pub(crate) family: RunFieldFamily,
    pub(crate) key: String,
    pub(crate) comparator: String,
    pub(crate) value: Option<FilterLiteral>,
}

/// The attributes of an entity, and the values that they are compared with.
pub(crate) struct ComparedAttributes<N, L> {
    /// Names of all attributes.
    pub(crate) names: &'static [&'static str],
    /// Checks whether an attribute is a number.
    pub(crate) is_number: N,
    /// Returns MLflow's error for an attribute that cannot be compared with a list.
    pub(crate) check_list: L,
}

impl<N: Fn(&str) -> bool, L: Fn(&str) -> Result<()>> ComparedAttributes<N, L> {
    /// Parses the value of a comparison.
    pub(crate) fn parse(&self, comparison: &Comparison<'_>) -> Result<UncheckedComparison> {
        let Identifier { family, key } = identifier::of_run(comparison.left, self.names)?;
        let value = match (&comparison.right, family) {
            (None, RunFieldFamily::Tag | RunFieldFamily::Param) => None,
            (None, _) => {
                return Err(Error::invalid(format!(
                    "IS NULL / IS NOT NULL is only supported for tags and params, not for '{family}' '{key}'"
                )));
            }
            (Some(right), RunFieldFamily::Metric) => {
                literals::metric(right)?;
                None
            }
            (Some(right), RunFieldFamily::Tag | RunFieldFamily::Param) => {
                Some(FilterLiteral::Text(literals::keyed_text(family, right)?))
            }
            (Some(right), RunFieldFamily::Dataset) => Some(literals::dataset(right)?),
            (Some(right), RunFieldFamily::Attribute) if (self.is_number)(key) => {
                Some(FilterLiteral::Number(literals::attribute_number(key, right)?))
            }
            (Some(right), RunFieldFamily::Attribute) => Some(match literals::text(right) {
                Some(text) => FilterLiteral::Text(text?),
                None if right.kind != NodeKind::Parenthesis => {
                    return Err(Error::invalid(format!(
                        "Expected a quoted string value for attributes. Got value {}",
                        right.text
                    )));
                }
                None => {
                    (self.check_list)(key)?;
                    FilterLiteral::List(literal_list::strings(right.text)?)
                }
            }),
        };
        Ok(UncheckedComparison { family, key: key.to_owned(), comparator: comparison.comparator.to_owned(), value })
    }
}

/// Quotes an attribute that `sqlparse` takes for a keyword. Texts between quotes stay as they are.
pub(crate) fn with_quoted_keyword<'a>(filter: &'a str, keyword: &str) -> Cow<'a, str> {
    if !filter.contains(keyword) {
        return Cow::Borrowed(filter);
    }
    let (mut written, mut rest, mut quote, mut before) = (String::new(), filter, None, ' ');
    while let Some(character) = rest.chars().next() {
        let is_word = |character: char| character.is_alphanumeric() || "_.".contains(character);
        let after = rest.strip_prefix(keyword).filter(|after| !after.starts_with(is_word));
        if let Some(after) = after.filter(|_| quote.is_none() && !is_word(before)) {
            written.extend(["`", keyword, "`"]);
            (rest, before) = (after, '`');
            continue;
        }
        match quote {
            None if "'\"`".contains(character) => quote = Some(character),
            Some(open) if open == character => quote = None,
            _ => {}
        }
        written.push(character);
        before = character;
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
    }
    Cow::Owned(written)
}
