//! The value on the right side of a comparison (`SearchUtils._get_value`).

use std::cmp::Ordering;
use std::fmt;

use mlflow_api::{Error, Result};

use crate::identifier::{RunFieldFamily, unquoted};
use crate::literal_list;
use crate::syntax::{NodeKind, SyntaxNode};

/// A number in a filter. Integers are kept separate from floats so that large integers compare
/// exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FilterNumber {
    /// A number without fraction and exponent.
    Integer(i64),
    /// Any other number.
    Float(f64),
}

impl FilterNumber {
    /// Compares a stored integer with this number, with the semantics of SQLite
    /// (`sqlite3IntFloatCompare`).
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the bounds are checked first")]
    pub fn compare_stored(self, stored: i64) -> Ordering {
        const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
        match self {
            Self::Integer(number) => stored.cmp(&number),
            Self::Float(number) if number < -TWO_TO_63 => Ordering::Greater,
            Self::Float(number) if number >= TWO_TO_63 => Ordering::Less,
            Self::Float(number) => {
                let whole = number as i64;
                let rest = || (stored as f64).partial_cmp(&number).unwrap_or(Ordering::Equal);
                stored.cmp(&whole).then_with(rest)
            }
        }
    }

    /// Compares a stored float with this number. The result for NaN is arbitrary, because neither
    /// the filters nor the values that are compared with this method contain NaN.
    #[must_use]
    pub fn compare_float(self, stored: f64) -> Ordering {
        match self {
            Self::Integer(number) => Self::Float(stored).compare_stored(number).reverse(),
            Self::Float(number) => stored.partial_cmp(&number).unwrap_or(Ordering::Less),
        }
    }

    /// Returns the greater of two numbers.
    pub(crate) fn max(self, other: Self) -> Self {
        let is_less = match self {
            Self::Integer(number) => other.compare_stored(number).is_lt(),
            Self::Float(number) => other.compare_float(number).is_lt(),
        };
        if is_less { other } else { self }
    }
}

impl fmt::Display for FilterNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(formatter, "{number}"),
            // The grammar has no literal for infinity, but a number that is too large for a float
            // is parsed as infinite.
            Self::Float(number) if number.is_infinite() => {
                formatter.write_str(if *number > 0.0 { "1e999" } else { "-1e999" })
            }
            Self::Float(number) => write!(formatter, "{number:?}"),
        }
    }
}

/// A literal value in a filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FilterLiteral {
    Number(FilterNumber),
    Text(String),
    List(Vec<String>),
}

/// Parses the value that a metric is compared with.
pub(crate) fn metric(node: &SyntaxNode) -> Result<f64> {
    let number = if node.kind.is_number() { node.text.parse().ok() } else { None };
    number.ok_or_else(|| Error::invalid(format!("Expected numeric value type for metric. Found {}", node.text)))
}

/// Parses the value that a parameter or a tag is compared with.
pub(crate) fn keyed_text(family: RunFieldFamily, node: &SyntaxNode) -> Result<String> {
    text(node).unwrap_or_else(|| {
        Err(Error::invalid(format!(
            "Expected a quoted string value for {family} (e.g. 'my-value'). Got value {}",
            node.text
        )))
    })
}

/// Parses the value that a numeric attribute is compared with.
pub(crate) fn attribute_number(key: &str, node: &SyntaxNode) -> Result<FilterNumber> {
    match node.kind {
        NodeKind::Integer => node.text.parse().map(FilterNumber::Integer).map_err(|_| {
            Error::invalid(format!("The value {} of the numeric attribute {key} does not fit into 64 bits.", node.text))
        }),
        NodeKind::Float => Ok(FilterNumber::Float(node.text.parse().unwrap_or(f64::NAN))),
        _ => Err(Error::invalid(format!(
            "Expected numeric value type for numeric attribute: {key}. Found {}",
            node.text
        ))),
    }
}

/// Parses the value that a text attribute is compared with. Only the attribute named `with_lists`
/// can be compared with lists.
pub(crate) fn attribute_text(key: &str, node: &SyntaxNode, with_lists: &str) -> Result<FilterLiteral> {
    if let Some(text) = text(node) {
        return text.map(FilterLiteral::Text);
    }
    if node.kind != NodeKind::Parenthesis {
        return Err(Error::invalid(format!("Expected a quoted string value for attributes. Got value {}", node.text)));
    }
    if key != with_lists {
        return Err(Error::invalid(format!(
            "Only ['{with_lists}'] attributes support comparison with a list of quoted string values."
        )));
    }
    literal_list::strings(node.text).map(FilterLiteral::List)
}

/// Parses the value that a field of a dataset is compared with.
pub(crate) fn dataset(node: &SyntaxNode) -> Result<FilterLiteral> {
    match text(node) {
        Some(text) => text.map(FilterLiteral::Text),
        None if node.kind == NodeKind::Parenthesis => literal_list::strings(node.text).map(FilterLiteral::List),
        None => Err(Error::invalid(format!(
            "Expected a quoted string value for dataset attributes. Got value {}",
            node.text
        ))),
    }
}

/// Parses a string. A text in double quotes is tokenized as an identifier, which MLflow also
/// accepts as a string. An identifier without quotes is rejected. Returns `None` if the node is
/// neither a string nor an identifier.
pub(crate) fn text(node: &SyntaxNode) -> Option<Result<String>> {
    if !matches!(node.kind, NodeKind::SingleQuoted | NodeKind::Identifier) {
        return None;
    }
    Some(unquoted(node.text).map(str::to_owned).ok_or_else(|| {
        Error::invalid(format!(
            "Parameter value is either not quoted or unidentified quote types used for string value {}. Use either \
             single or double quotes.",
            node.text
        ))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_integers_compare_with_floats_exactly() {
        let large = (1 << 53) + 1;
        assert_eq!(FilterNumber::Float(9_007_199_254_740_992.0).compare_stored(large), Ordering::Greater);
        assert_eq!(FilterNumber::Float(1.5).compare_stored(1), Ordering::Less);
        assert_eq!(FilterNumber::Float(1.5).compare_stored(2), Ordering::Greater);
        assert_eq!(FilterNumber::Float(-1.5).compare_stored(-1), Ordering::Greater);
        assert_eq!(FilterNumber::Float(2.0).compare_stored(2), Ordering::Equal);
        assert_eq!(FilterNumber::Float(f64::INFINITY).compare_stored(i64::MAX), Ordering::Less);
        assert_eq!(FilterNumber::Float(f64::NEG_INFINITY).compare_stored(i64::MIN), Ordering::Greater);
        assert_eq!(FilterNumber::Integer(7).compare_stored(7), Ordering::Equal);
    }
}
