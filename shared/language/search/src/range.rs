//! Parts of a list.

use std::fmt;

use crate::filter::quoted;

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

/// Which numbers of a list are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberRange {
    /// The least, itself included.
    pub least: Option<f64>,
    /// The greatest, itself included.
    pub greatest: Option<f64>,
    /// Whether NaN is read too. It comes after all numbers.
    pub with_nan: bool,
}

impl NumberRange {
    /// Every number, and NaN.
    pub const ANY: Self = Self { least: None, greatest: None, with_nan: true };

    /// Whether the number is one of them.
    #[must_use]
    pub fn contains(&self, number: f64) -> bool {
        if number.is_nan() {
            return self.with_nan;
        }
        self.least.is_none_or(|least| number >= least) && self.greatest.is_none_or(|greatest| number <= greatest)
    }

    /// Whether no number can be one of them. Such a range is in no plan.
    pub(crate) fn is_empty(&self) -> bool {
        !self.with_nan && self.least.zip(self.greatest).is_some_and(|(least, greatest)| least > greatest)
    }

    /// The numbers that are in both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            least: greater(self.least, other.least),
            greatest: greater(self.greatest.map(|end| -end), other.greatest.map(|end| -end)).map(|end| -end),
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

/// Which times are read, in ms, both ends included.
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
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from.zip(self.until).is_some_and(|(from, until)| from > until)
    }

    /// The times that are in both.
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
