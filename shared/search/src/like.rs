//! SQL's LIKE: `%` matches any text, `_` any character, and there is no escape.

use mlflow_api::{Error, Result};

use gapped::Gapped;

mod case;
mod gapped;

pub(crate) use case::{fold, has_variants};

const WILDCARDS: [char; 2] = ['%', '_'];

/// A pattern of LIKE or ILIKE, taken apart once to match many texts.
///
/// The stretches between the `%` are matched one after another, each as early as possible. Matching
/// one later could not help the stretches after it. The texts before the first `%` and after the
/// last are compared in place. So the work is linear in the text. Only stretches with `_` in the
/// middle take more: a step per character and 64 characters of the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    written: String,
    /// Whether letters match in either case ([`case::fold`]). The parts are folded then.
    in_any_case: bool,
    first: String,
    middle: Vec<Stretch>,
    /// `None` if there is no `%`.
    last: Option<String>,
}

/// The text between two `%`, never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stretch {
    Plain(String),
    Gapped(Gapped),
}

impl Pattern {
    /// Bytes of the longest pattern, as in SQLite (`SQLITE_MAX_LIKE_PATTERN_LENGTH`).
    pub const LONGEST: usize = 50_000;

    /// A pattern of LIKE, which minds case.
    ///
    /// # Errors
    /// If it is longer than [`Pattern::LONGEST`]. Stock MLflow passes it on to the database, which fails.
    pub fn like(written: &str) -> Result<Self> {
        Self::new(written, false)
    }

    /// A pattern of ILIKE, for which letters match in either case. In MLflow that depends on the
    /// database: `SQLite` knows the letters of ASCII only, `PostgreSQL` those of its locale.
    ///
    /// # Errors
    /// As for [`Pattern::like`].
    pub fn ilike(written: &str) -> Result<Self> {
        Self::new(written, true)
    }

    fn new(written: &str, in_any_case: bool) -> Result<Self> {
        if written.len() > Self::LONGEST {
            let message = format!("A pattern of LIKE or ILIKE has at most {} bytes.", Self::LONGEST);
            return Err(Error::invalid(message));
        }
        let folded = if in_any_case { folded(written) } else { written.to_owned() };
        let mut stretches = folded.split('%');
        let first = stretches.next().unwrap_or_default().to_owned();
        let last = stretches.next_back().map(str::to_owned);
        let middle = stretches.filter(|stretch| !stretch.is_empty()).map(Stretch::new).collect();
        Ok(Self { written: written.to_owned(), in_any_case, first, middle, last })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Whether a text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        if self.in_any_case { self.matches_folded(&folded(text)) } else { self.matches_folded(text) }
    }

    fn matches_folded(&self, text: &str) -> bool {
        let Some(rest) = behind(&self.first, text) else { return false };
        let Some(last) = &self.last else { return rest.is_empty() };
        let Some(mut rest) = before(last, rest) else { return false };
        for stretch in &self.middle {
            let Some(end) = stretch.first_end(rest) else { return false };
            rest = &rest[end..];
        }
        true
    }
}

impl Stretch {
    fn new(stretch: &str) -> Self {
        if stretch.contains('_') { Self::Gapped(Gapped::new(stretch)) } else { Self::Plain(stretch.to_owned()) }
    }

    /// Where the first match in a text ends.
    fn first_end(&self, text: &str) -> Option<usize> {
        match self {
            // Preparing the search is linear in the stretch that is searched for.
            Self::Plain(plain) if plain.len() > text.len() => None,
            Self::Plain(plain) => text.find(plain).map(|at| at + plain.len()),
            Self::Gapped(gapped) => gapped.first_end(text),
        }
    }
}

fn folded(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(fold).collect() }
}

fn is_one(wanted: char, found: Option<char>) -> bool {
    found.is_some_and(|found| wanted == '_' || wanted == found)
}

/// The text after a stretch that it begins with.
fn behind<'a>(stretch: &str, text: &'a str) -> Option<&'a str> {
    let mut rest = text.chars();
    stretch.chars().all(|wanted| is_one(wanted, rest.next())).then_some(rest.as_str())
}

/// The text before a stretch that it ends with.
fn before<'a>(stretch: &str, text: &'a str) -> Option<&'a str> {
    let mut rest = text.chars();
    stretch.chars().rev().all(|wanted| is_one(wanted, rest.next_back())).then_some(rest.as_str())
}

/// A piece of a pattern without wildcards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    /// No wildcard follows it, so the text ends with it.
    pub(crate) is_end: bool,
}

/// The pieces of a pattern that every matching text contains, none of them empty. Wildcards divide
/// them, and in any case also letters with variants that the index distinguishes.
pub(crate) fn pieces(pattern: &Pattern) -> Vec<Piece<'_>> {
    let divides = |letter: char| WILDCARDS.contains(&letter) || (pattern.in_any_case && has_variants(letter));
    let count = pattern.written.split(divides).count();
    let piece = |(place, text)| Piece { text, is_end: place + 1 == count };
    pattern.written.split(divides).enumerate().map(piece).filter(|piece| !piece.text.is_empty()).collect()
}

/// The beginning of a pattern, up to its first wildcard, and whether there is one.
pub(crate) fn beginning(pattern: &str) -> (&str, bool) {
    pattern.find(WILDCARDS).map_or((pattern, false), |at| (&pattern[..at], true))
}

#[cfg(test)]
mod tests;
