//! The lists of runs in the index.

use std::fmt;

use super::column::{MetricColumn, RunColumn};
use crate::filter::quoted;
use crate::range::{NumberRange, TextRange};
use crate::sort_key::FirstValue;
use crate::trigram_tokens::END_MARK;

/// A list of an experiment's runs. Long texts are truncated in keys and compared by their prefixes,
/// so a list may contain more runs than its range describes. It contains every run in its range,
/// except for runs with changes that have not been indexed yet.
#[derive(Clone, Debug, PartialEq)]
pub enum RunList {
    /// All runs that are not deleted, newest first. This list is written by the request that
    /// changes a run, not by the indexer.
    All,
    /// Runs by a text value.
    ByText {
        /// The column.
        column: RunColumn,
        /// The range of its values.
        range: TextRange,
    },
    /// Runs by a number, in descending order, with NaN last.
    ByNumber {
        /// The column.
        column: MetricColumn,
        /// The range of its values.
        range: NumberRange,
    },
    /// Runs whose number is NaN. This is the end of the list by that number.
    NotANumber {
        /// The column.
        column: MetricColumn,
    },
    /// Runs by a token of a text.
    ByToken {
        /// The field, named as in filters.
        field: String,
        /// The token.
        token: String,
    },
}

impl RunList {
    /// Checks whether the list is sorted by time, newest first, and then by id. Such lists can be
    /// joined entry by entry. This applies to the list of all runs, and to lists of a single value
    /// or token. Other lists are sorted by their texts or numbers first.
    #[must_use]
    pub fn is_newest_first(&self) -> bool {
        match self {
            Self::All | Self::NotANumber { .. } | Self::ByToken { .. } => true,
            Self::ByText { range, .. } => matches!(range, TextRange::Equal(_)),
            Self::ByNumber { .. } => false,
        }
    }

    /// Checks whether the list is maintained by the indexer, and is therefore eventually
    /// consistent.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        *self != Self::All
    }

    /// Checks whether a run with this value is in the list. `value` must be the run's value of the
    /// field by which the list is sorted.
    pub(super) fn holds(&self, value: FirstValue<'_>) -> bool {
        match (self, value) {
            // A time: either the start time of the run, or another time in its encoding for keys.
            (list, FirstValue::Integer(_)) => list.is_newest_first() || matches!(list, Self::ByText { .. }),
            (Self::NotANumber { .. }, FirstValue::NotANumber) => true,
            (Self::ByNumber { range, .. }, FirstValue::Float(value)) => range.contains(value),
            (Self::ByNumber { range, .. }, FirstValue::NotANumber) => range.with_nan,
            (Self::ByText { range, .. }, FirstValue::Text(text)) => range.contains(text),
            _ => false,
        }
    }

    /// Checks whether this list and a list of the walk are by the same column, and the walk's
    /// segments already cover all values of the column. The column must be a number, or a text with
    /// few possible values.
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

    /// Returns the share of runs that the list is assumed to contain, based only on its kind.
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
    match (range.minimum, range.maximum) {
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
            // The end mark is displayed as `$`, as in regular expressions.
            Self::ByToken { field, token } => write!(formatter, "{} in {field}", quoted(&token.replace(END_MARK, "$"))),
        }
    }
}
