//! The lists of runs that an index holds.

use std::fmt;

use crate::filter::quoted;
use crate::sort_key::FirstValue;
use crate::tokens::END;

/// How a token was made from the text of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Three characters in a row.
    Trigram,
    /// A stemmed word.
    Word,
    /// The whole value.
    Value,
}

/// Which texts of a list are read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TextRange {
    /// This one.
    Equal(String),
    /// Those that begin so; all of them if it is empty, the empty text too.
    Prefix(String),
}

impl TextRange {
    /// Every text.
    pub(crate) const ANY: Self = Self::Prefix(String::new());

    /// Whether the text is one of them.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        match self {
            Self::Equal(wanted) => text == wanted,
            Self::Prefix(beginning) => text.starts_with(beginning),
        }
    }
}

/// Which values of a metric are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricRange {
    /// The least, itself included.
    pub least: Option<f64>,
    /// The greatest, itself included.
    pub greatest: Option<f64>,
    /// Whether NaN is read too. It stands after all values.
    pub with_nan: bool,
}

impl MetricRange {
    /// Every value, and NaN.
    pub(crate) const ANY: Self = Self { least: None, greatest: None, with_nan: true };

    /// Whether the value is one of them.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        if value.is_nan() {
            return self.with_nan;
        }
        self.least.is_none_or(|least| value >= least) && self.greatest.is_none_or(|greatest| value <= greatest)
    }

    /// Whether no value can be one of them. Such a range is in no plan.
    pub(crate) fn is_empty(&self) -> bool {
        !self.with_nan && self.least.zip(self.greatest).is_some_and(|(least, greatest)| least > greatest)
    }
}

/// Which start times are read, in ms, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The earliest.
    pub from: Option<i64>,
    /// The latest.
    pub until: Option<i64>,
}

impl TimeRange {
    /// Whether the time is one of them.
    #[must_use]
    pub fn contains(&self, time: i64) -> bool {
        self.from.is_none_or(|from| time >= from) && self.until.is_none_or(|until| time <= until)
    }

    /// Whether any time is left out.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.from.is_some() || self.until.is_some()
    }

    /// Whether no time can be one of them. Such a range is in no plan.
    pub(crate) fn is_empty(&self) -> bool {
        self.from.zip(self.until).is_some_and(|(from, until)| from > until)
    }
}

/// A list of runs of an experiment. A text cut in the key counts as its beginning, so that a list may hold more runs than
/// it says, never fewer of those that the indexer is through with.
#[derive(Clone, Debug, PartialEq)]
pub enum RunList {
    /// All runs of the wanted lifecycle stage, newest first. The request that changes a run writes it, not the indexer.
    Runs,
    /// By status.
    ByStatus(TextRange),
    /// By run name.
    ByName(TextRange),
    /// By a param.
    ByParam {
        /// The param.
        key: String,
        /// Its values.
        range: TextRange,
    },
    /// By the latest value of a metric, greatest first, NaN last.
    ByMetric {
        /// The metric.
        key: String,
        /// Its values.
        range: MetricRange,
    },
    /// Those whose latest value of a metric is NaN: the end of the list by this metric.
    NotANumber {
        /// The metric.
        key: String,
    },
    /// By a token of a text. With the beginning of a token, a run stands in it once for each token that begins so.
    ByToken {
        /// The kind of token.
        level: Level,
        /// The field, named as in filters.
        field: String,
        /// The tokens.
        token: TextRange,
    },
}

impl RunList {
    /// Whether the runs stand in it by start time, the newest first, and by id: of one text, that is, or of all runs. Such
    /// lists are joined entry by entry. Others are in the order of their texts, or values, first.
    #[must_use]
    pub fn is_newest_first(&self) -> bool {
        match self {
            Self::Runs | Self::NotANumber { .. } => true,
            Self::ByStatus(range)
            | Self::ByName(range)
            | Self::ByParam { range, .. }
            | Self::ByToken { token: range, .. } => matches!(range, TextRange::Equal(_)),
            Self::ByMetric { .. } => false,
        }
    }

    /// Whether a run with this value stands in it, given that the list is by that value.
    pub(crate) fn holds(&self, value: FirstValue<'_>) -> bool {
        match (self, value) {
            // Of the times, only that of the start sorts lists.
            (list, FirstValue::Integer(_)) => list.is_newest_first(),
            (Self::NotANumber { .. }, FirstValue::NotANumber) => true,
            (Self::ByMetric { range, .. }, FirstValue::Float(value)) => range.contains(value),
            (Self::ByMetric { range, .. }, FirstValue::NotANumber) => range.with_nan,
            (
                Self::ByStatus(range)
                | Self::ByName(range)
                | Self::ByParam { range, .. }
                | Self::ByToken { level: Level::Value, token: range, .. },
                FirstValue::Text(text),
            ) => range.contains(text),
            _ => false,
        }
    }
}

impl fmt::Display for RunList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs => formatter.write_str("runs"),
            Self::ByStatus(range) => write!(formatter, "status {range}"),
            Self::ByName(range) => write!(formatter, "name {range}"),
            Self::ByParam { key, range } => write!(formatter, "params.`{key}` {range}"),
            Self::ByMetric { key, range } => write!(formatter, "metrics.`{key}` {range}"),
            Self::NotANumber { key } => write!(formatter, "metrics.`{key}` NaN"),
            Self::ByToken { level: Level::Value, field, token } => write!(formatter, "{field} {token}"),
            Self::ByToken { level, field, token } => {
                let kind = if *level == Level::Word { "word" } else { "trigram" };
                // The mark of the end as in regular expressions.
                match token {
                    TextRange::Equal(text) => {
                        write!(formatter, "{kind} {} of {field}", quoted(&text.replace(END, "$")))
                    }
                    TextRange::Prefix(text) => write!(formatter, "{kind}s that begin with {} of {field}", quoted(text)),
                }
            }
        }
    }
}

impl fmt::Display for TextRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(text) => write!(formatter, "= {}", quoted(text)),
            Self::Prefix(beginning) if beginning.is_empty() => formatter.write_str("of any value"),
            Self::Prefix(beginning) => write!(formatter, "begins with {}", quoted(beginning)),
        }
    }
}

impl fmt::Display for MetricRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ANY {
            return formatter.write_str("of any value");
        }
        if self.least.is_none() && self.greatest.is_none() {
            return formatter.write_str("of any number");
        }
        let end = |end: Option<f64>| end.map_or_else(|| "..".to_owned(), |end| format!("{end:?}"));
        let nan = if self.with_nan { " or NaN" } else { "" };
        write!(formatter, "in [{}, {}]{nan}", end(self.least), end(self.greatest))
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: Option<i64>| end.map_or_else(|| "..".to_owned(), |end| end.to_string());
        write!(formatter, "in [{}, {}]", end(self.from), end(self.until))
    }
}
