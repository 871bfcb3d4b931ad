//! Ranges of values within a list.

use std::fmt;

use crate::filter::quoted;

/// A range of text values in a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TextRange {
    /// Exactly this text.
    Equal(String),
    /// Texts with this prefix. The empty prefix matches every text, including the empty text.
    Prefix(String),
}

impl TextRange {
    /// The range of all texts.
    pub(crate) const ANY: Self = Self::Prefix(String::new());

    /// Checks whether a text is in the range.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        match self {
            Self::Equal(wanted) => text == wanted,
            Self::Prefix(beginning) => text.starts_with(beginning),
        }
    }
}

/// A range of numbers in a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberRange {
    /// The lower bound, inclusive.
    pub minimum: Option<f64>,
    /// The upper bound, inclusive.
    pub maximum: Option<f64>,
    /// Whether the range includes NaN, which is sorted after all numbers.
    pub with_nan: bool,
}

impl NumberRange {
    /// The range of all numbers, including NaN.
    pub const ANY: Self = Self { minimum: None, maximum: None, with_nan: true };

    /// Checks whether a number is in the range.
    #[must_use]
    pub fn contains(&self, number: f64) -> bool {
        if number.is_nan() {
            return self.with_nan;
        }
        self.minimum.is_none_or(|least| number >= least) && self.maximum.is_none_or(|greatest| number <= greatest)
    }

    /// Checks whether the range contains no number. Plans never contain such a range.
    pub(crate) fn is_empty(&self) -> bool {
        !self.with_nan && self.minimum.zip(self.maximum).is_some_and(|(least, greatest)| least > greatest)
    }

    /// Returns the intersection of two ranges.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            minimum: greater(self.minimum, other.minimum),
            maximum: greater(self.maximum.map(|end| -end), other.maximum.map(|end| -end)).map(|end| -end),
            with_nan: self.with_nan && other.with_nan,
        }
    }
}

fn greater(left: Option<f64>, right: Option<f64>) -> Option<f64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(if left >= right { left } else { right }),
        (end, None) | (None, end) => end,
    }
}

/// A range of times in ms, inclusive at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The earliest time.
    pub from: Option<i64>,
    /// The latest time.
    pub until: Option<i64>,
}

impl TimeRange {
    /// Checks whether a time is in the range.
    #[must_use]
    pub fn contains(&self, time: i64) -> bool {
        self.from.is_none_or(|from| time >= from) && self.until.is_none_or(|until| time <= until)
    }

    /// Checks whether the range excludes any time.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.from.is_some() || self.until.is_some()
    }

    /// Checks whether the range contains no time. Plans never contain such a range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from.zip(self.until).is_some_and(|(from, until)| from > until)
    }

    /// Returns the intersection of two ranges.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), until: self.until.into_iter().chain(other.until).min() }
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

impl fmt::Display for NumberRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ANY {
            return formatter.write_str("of any value");
        }
        if self.minimum.is_none() && self.maximum.is_none() {
            return formatter.write_str("of any number");
        }
        let end = |end: Option<f64>| end.map_or_else(|| "..".to_owned(), |end| format!("{end:?}"));
        let nan = if self.with_nan { " or NaN" } else { "" };
        write!(formatter, "in [{}, {}]{nan}", end(self.minimum), end(self.maximum))
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: Option<i64>| end.map_or_else(|| "..".to_owned(), |end| end.to_string());
        write!(formatter, "in [{}, {}]", end(self.from), end(self.until))
    }
}
