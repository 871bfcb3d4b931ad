//! Filters: conditions joined by AND.

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
pub(crate) use run::{Draft, RUN_NAME_TAG};

use mlflow_api::Result;

use crate::like::Pattern;
use crate::value::Literal;

/// How numbers are compared.
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
    /// All of them.
    const ALL: [Self; 6] =
        [Self::Equal, Self::NotEqual, Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual];

    pub(crate) fn parse(symbol: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|comparator| comparator.symbol() == symbol)
    }

    /// The comparator as written in a filter.
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

    /// Whether the comparison is true of two values in this order.
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

/// A test of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextTest {
    /// The same, byte for byte.
    Equal(String),
    /// Not the same.
    NotEqual(String),
    /// SQL's LIKE, case-sensitive: `%` matches any text, `_` any character.
    Like(Pattern),
    /// LIKE that takes ASCII letters of either case for the same.
    ILike(Pattern),
    /// One of these.
    In(BTreeSet<String>),
    /// None of these.
    NotIn(BTreeSet<String>),
}

impl TextTest {
    /// The test that `comparator`, in upper case, and a value make; `None` if they make none.
    ///
    /// # Errors
    /// If the value is a pattern that is too long.
    pub(crate) fn new(comparator: &str, value: Literal) -> Result<Option<Self>> {
        Ok(Some(match (comparator, value) {
            ("=", Literal::Text(text)) => Self::Equal(text),
            ("!=", Literal::Text(text)) => Self::NotEqual(text),
            ("LIKE", Literal::Text(pattern)) => Self::Like(Pattern::like(&pattern)?),
            ("ILIKE", Literal::Text(pattern)) => Self::ILike(Pattern::ilike(&pattern)?),
            ("IN", Literal::List(texts)) => Self::In(texts.into_iter().collect()),
            ("NOT IN", Literal::List(texts)) => Self::NotIn(texts.into_iter().collect()),
            _ => return Ok(None),
        }))
    }

    /// Whether `text` passes.
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

/// A test of a key that an entity may lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyTest {
    /// `IS NOT NULL`
    Present,
    /// `IS NULL`
    Absent,
    /// The key is there and its value passes.
    Value(TextTest),
}

impl KeyTest {
    /// Whether the value, or its absence, passes.
    #[must_use]
    pub fn passes(&self, value: Option<&str>) -> bool {
        match self {
            Self::Present => value.is_some(),
            Self::Absent => value.is_none(),
            Self::Value(test) => value.is_some_and(|value| test.passes(value)),
        }
    }
}
