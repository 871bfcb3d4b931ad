//! Filters, which are conditions joined by AND.

mod display;
mod experiment;
mod model;
mod run;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeSet;

pub(crate) use display::quoted;
pub(crate) use experiment::EXPERIMENT_ATTRIBUTES;
pub use experiment::{ExperimentFilter, ExperimentNumber, ExperimentPredicate, parse_experiment_filter};
pub use model::{ModelAttribute, ModelCode, ModelFilter, ModelPredicate, ModelText, ModelTime, parse_model_filter};
pub use run::{DatasetField, RunFilter, RunNumber, RunPredicate, RunText, parse_run_filter};
pub(crate) use run::{RUN_NAME_TAG, UncheckedRunFilter};

use mlflow_api::Result;

use crate::like::LikePattern;
use crate::literals::FilterLiteral;

/// A comparator of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparator {
    /// All comparators.
    const ALL: [Self; 6] =
        [Self::Equal, Self::NotEqual, Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual];

    pub(crate) fn parse(symbol: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|comparator| comparator.symbol() == symbol)
    }

    /// Returns the comparator as written in a filter.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// Checks whether the comparison holds for two values with this ordering.
    #[must_use]
    pub const fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// A test of a text value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextTest {
    /// The text equals the given value, byte for byte.
    Equal(String),
    /// The text differs from the given value.
    NotEqual(String),
    /// SQL's LIKE, which is case-sensitive: `%` matches any text, `_` any character.
    Like(LikePattern),
    /// LIKE that ignores case, including that of letters outside ASCII.
    ILike(LikePattern),
    /// The text is in the set.
    In(BTreeSet<String>),
    /// The text is not in the set.
    NotIn(BTreeSet<String>),
}

impl TextTest {
    /// Creates the test for a comparator in upper case and a value. Returns `None` if the
    /// comparator does not support the value.
    ///
    /// # Errors
    /// Fails if the value is a pattern that is too long.
    pub(crate) fn new(comparator: &str, value: FilterLiteral) -> Result<Option<Self>> {
        Ok(Some(match (comparator, value) {
            ("=", FilterLiteral::Text(text)) => Self::Equal(text),
            ("!=", FilterLiteral::Text(text)) => Self::NotEqual(text),
            ("LIKE", FilterLiteral::Text(pattern)) => Self::Like(LikePattern::like(&pattern)?),
            ("ILIKE", FilterLiteral::Text(pattern)) => Self::ILike(LikePattern::ilike(&pattern)?),
            ("IN", FilterLiteral::List(texts)) => Self::In(texts.into_iter().collect()),
            ("NOT IN", FilterLiteral::List(texts)) => Self::NotIn(texts.into_iter().collect()),
            _ => return Ok(None),
        }))
    }

    /// Checks whether `text` passes the test.
    #[must_use]
    pub fn passes(&self, text: &str) -> bool {
        match self {
            Self::Equal(wanted) => text == wanted,
            Self::NotEqual(unwanted) => text != unwanted,
            Self::Like(pattern) | Self::ILike(pattern) => pattern.matches(text),
            Self::In(wanted) => wanted.contains(text),
            Self::NotIn(unwanted) => !unwanted.contains(text),
        }
    }
}

/// A condition on a key, such as that of a tag, which an entity may or may not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyTest {
    /// `IS NOT NULL`
    Present,
    /// `IS NULL`
    Absent,
    /// The key is present, and its value passes the test.
    Value(TextTest),
}

impl KeyTest {
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
