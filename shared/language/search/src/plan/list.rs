//! The lists of runs that an index holds.

use std::fmt;

use super::column::{Metric, RunColumn};
use crate::filter::quoted;
use crate::range::{NumberRange, TextRange};
use crate::sort_key::FirstValue;
use crate::tokens::END;

/// A list of an experiment's runs. A text that is cut in the key counts as its beginning. So a list
/// may hold more runs than it says, but never fewer of those whose last change is indexed.
#[derive(Clone, Debug, PartialEq)]
pub enum RunList {
    /// All runs that are not deleted, newest first. The request that changes a run writes it, not
    /// the indexer.
    All,
    /// By a text.
    ByText {
        /// Which.
        column: RunColumn,
        /// Its values.
        range: TextRange,
    },
    /// By a number, greatest first, NaN last.
    ByNumber {
        /// Which.
        column: Metric,
        /// Its values.
        range: NumberRange,
    },
    /// Those whose number is NaN: the end of the list by this number.
    NotANumber {
        /// Which.
        column: Metric,
    },
    /// By a token of a text.
    ByToken {
        /// The field, named as in filters.
        field: String,
        /// The token.
        token: String,
    },
}

impl RunList {
    /// Whether the list is ordered by time, the newest first, and then by id. That is so for the
    /// list of one text, or of all. Such lists are joined entry by entry. Other lists are ordered
    /// by their texts or numbers first.
    #[must_use]
    pub fn is_newest_first(&self) -> bool {
        match self {
            Self::All | Self::NotANumber { .. } | Self::ByToken { .. } => true,
            Self::ByText { range, .. } => matches!(range, TextRange::Equal(_)),
            Self::ByNumber { .. } => false,
        }
    }

    /// Whether it is kept by the indexer, and so eventually consistent.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        *self != Self::All
    }

    /// Whether a run with this value is in it, given that the list is by that value.
    pub(super) fn holds(&self, value: FirstValue<'_>) -> bool {
        match (self, value) {
            // A time: that of the beginning, or another in the form of keys.
            (list, FirstValue::Integer(_)) => list.is_newest_first() || matches!(list, Self::ByText { .. }),
            (Self::NotANumber { .. }, FirstValue::NotANumber) => true,
            (Self::ByNumber { range, .. }, FirstValue::Float(value)) => range.contains(value),
            (Self::ByNumber { range, .. }, FirstValue::NotANumber) => range.with_nan,
            (Self::ByText { range, .. }, FirstValue::Text(text)) => range.contains(text),
            _ => false,
        }
    }

    /// Whether both are lists by one column whose values a walk has in its segments already: a number, or one of few texts.
    pub(super) fn is_by_the_same(&self, walked: &Self) -> bool {
        match (self, walked) {
            (
                Self::ByNumber { column, .. },
                Self::ByNumber { column: walked, .. } | Self::NotANumber { column: walked },
            ) => column == walked,
            (Self::ByText { column, .. }, Self::ByText { column: walked, .. }) => {
                column == walked && !column.values().is_empty()
            }
            _ => false,
        }
    }

    /// The part of all runs that it holds, guessed from its kind alone.
    pub(super) fn guessed_share(&self) -> f64 {
        match self {
            Self::All => 1.0,
            Self::ByText { column, range } => column.share(range),
            Self::ByToken { .. } => 0.15,
            Self::ByNumber { range, .. } => share_of_number(range),
            Self::NotANumber { .. } => 0.05,
        }
    }
}

fn share_of_number(range: &NumberRange) -> f64 {
    match (range.least, range.greatest) {
        (None, None) => 0.8,
        (Some(least), Some(greatest)) if least >= greatest => 0.05,
        (Some(_), Some(_)) => 0.2,
        (Some(_), None) | (None, Some(_)) => 0.4,
    }
}

impl fmt::Display for RunList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("runs"),
            Self::ByText { column, range } => write!(formatter, "{column} {range}"),
            Self::ByNumber { column, range } => write!(formatter, "{column} {range}"),
            Self::NotANumber { column } => write!(formatter, "{column} NaN"),
            // The mark of the end as in regular expressions.
            Self::ByToken { field, token } => write!(formatter, "{} in {field}", quoted(&token.replace(END, "$"))),
        }
    }
}
