//! The tests that the conditions of a filter apply to a trace's texts, keys and numbers.

use mlflow_api::python::repr;
use mlflow_api::{Error, Result};

use super::regular_expression::RegularExpression;
use crate::filter::{Comparator, TextTest};
use crate::literals::{FilterLiteral, FilterNumber};
use crate::python_repr;

/// A test of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceTextTest {
    /// A test that other searches also support.
    Text(TextTest),
    /// A regular expression (RLIKE).
    Expression(RegularExpression),
}

impl TraceTextTest {
    /// Creates the test for a comparator that has already been checked, and a value.
    pub(super) fn new(comparator: &str, value: Option<FilterLiteral>) -> Result<Self> {
        let mismatch = || Error::invalid(format!("The comparator '{comparator}' does not support this value."));
        match (comparator, value) {
            ("RLIKE", Some(FilterLiteral::Text(written))) => Ok(Self::Expression(RegularExpression::new(&written)?)),
            // MLflow passes a list on to the database, which fails. Here, an error is returned.
            (_, Some(value)) => TextTest::new(comparator, value)?.map(Self::Text).ok_or_else(mismatch),
            (_, None) => Err(mismatch()),
        }
    }

    /// Checks whether a pattern or an expression contains a backslash, and may therefore be meant
    /// to match escapes.
    #[must_use]
    pub(super) fn has_backslash(&self) -> bool {
        match self {
            Self::Text(TextTest::Like(pattern) | TextTest::ILike(pattern)) => pattern.as_str().contains('\\'),
            Self::Text(_) => false,
            Self::Expression(expression) => expression.as_str().contains('\\'),
        }
    }

    /// Checks whether a text passes.
    #[must_use]
    pub fn passes(&self, value: &str) -> bool {
        match self {
            Self::Text(test) => test.passes(value),
            Self::Expression(expression) => expression.is_in(value),
        }
    }
}

/// A test of a key that a trace may not have.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceKeyTest {
    /// `IS NOT NULL`
    Present,
    /// `IS NULL`
    Absent,
    /// The key is present, and its value passes the test.
    Value(TraceTextTest),
}

impl TraceKeyTest {
    pub(super) fn new(comparator: &str, value: Option<FilterLiteral>) -> Result<Self> {
        match comparator {
            "IS NULL" => Ok(Self::Absent),
            "IS NOT NULL" => Ok(Self::Present),
            _ => TraceTextTest::new(comparator, value).map(Self::Value),
        }
    }

    /// Checks whether a value, or its absence, passes the test.
    #[must_use]
    pub fn passes(&self, value: Option<&str>) -> bool {
        match self {
            Self::Present => value.is_some(),
            Self::Absent => value.is_none(),
            Self::Value(test) => value.is_some_and(|value| test.passes(value)),
        }
    }
}

/// A test of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberTest {
    /// The comparator.
    pub comparator: Comparator,
    /// The value to compare with. `None` stands for a text that is not a number, because SQL sorts
    /// texts after all numbers.
    pub value: Option<FilterNumber>,
}

impl NumberTest {
    /// Creates the test for a comparator that has already been checked, and a value. `computed` is
    /// true if the number is not a column of MLflow's database. SQLite only converts a text to a
    /// number if it is compared with a column.
    pub(super) fn new(comparator: &str, value: Option<FilterLiteral>, computed: bool) -> Result<Self> {
        let mismatch = || Error::invalid(format!("The comparator '{comparator}' does not support this value."));
        let comparator = Comparator::parse(comparator).ok_or_else(mismatch)?;
        let value = match value {
            Some(FilterLiteral::Number(number)) => Some(number),
            Some(FilterLiteral::Text(_)) if computed => None,
            Some(FilterLiteral::Text(text)) => number_in(&text),
            Some(FilterLiteral::List(_)) | None => return Err(mismatch()),
        };
        Ok(Self { comparator, value })
    }

    /// Checks whether the number passes.
    #[must_use]
    pub fn passes(&self, stored: i64) -> bool {
        let ordering = self.value.map_or(std::cmp::Ordering::Less, |value| value.compare_stored(stored));
        self.comparator.holds(ordering)
    }
}

/// Converts a text to a number like SQLite, or returns `None` if the text is not entirely a number.
fn number_in(text: &str) -> Option<FilterNumber> {
    let text = text.trim_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let is_decimal = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E');
    if !text.bytes().all(is_decimal) {
        return None;
    }
    text.parse().map(FilterNumber::Integer).or_else(|_| text.parse().map(FilterNumber::Float)).ok()
}

/// Formats a list like Python formats a tuple.
pub(super) fn listed(texts: &[String]) -> String {
    let printed = python_repr::join(texts.iter().map(|text| repr(text)));
    if texts.len() == 1 { format!("({printed},)") } else { format!("({printed})") }
}
