//! SQL's LIKE: `%` matches any text, `_` any character, and there is no escape character.

use mlflow_api::{Error, Result};

use shift_and::ShiftAndPattern;

mod case_folding;
mod shift_and;

pub(crate) use case_folding::{fold, has_variants};

const WILDCARDS: [char; 2] = ['%', '_'];

/// A compiled pattern of LIKE or ILIKE, which can be matched against many texts.
///
/// The parts between two `%` are searched from left to right, each at its first occurrence, because
/// a later occurrence would only leave less text for the parts that follow. The text before the
/// first `%` and the text after the last one are compared in place, so the work is linear in the
/// length of the text. Only parts that contain `_` take longer: for each character of the text,
/// they take one step per 64 characters of the part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LikePattern {
    written: String,
    /// Whether the pattern ignores case. If so, all other fields except `written` have been
    /// case-folded ([`case_folding::fold`]).
    in_any_case: bool,
    first: String,
    middle: Vec<PatternSegment>,
    /// The text after the last `%`. `None` if there is no `%`.
    last: Option<String>,
}

/// The part of a pattern between two `%`, which is never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternSegment {
    Plain(String),
    Gapped(ShiftAndPattern),
}

impl LikePattern {
    /// Maximum length of a pattern in bytes, as in SQLite (`SQLITE_MAX_LIKE_PATTERN_LENGTH`).
    pub const MAX_BYTES: usize = 50_000;

    /// Compiles a pattern of LIKE, which is case-sensitive.
    ///
    /// # Errors
    /// Fails if the pattern is longer than [`LikePattern::MAX_BYTES`]. Stock MLflow passes such a pattern
    /// on to the database, which fails.
    pub fn like(written: &str) -> Result<Self> {
        Self::new(written, false)
    }

    /// Compiles a pattern of ILIKE, which ignores case. In MLflow, the letters whose case is ignored
    /// depend on the database. In `SQLite` these are only ASCII letters, in `PostgreSQL` those of
    /// its locale.
    ///
    /// # Errors
    /// Fails under the same condition as [`LikePattern::like`].
    pub fn ilike(written: &str) -> Result<Self> {
        Self::new(written, true)
    }

    fn new(written: &str, in_any_case: bool) -> Result<Self> {
        if written.len() > Self::MAX_BYTES {
            let message = format!("A pattern of LIKE or ILIKE has at most {} bytes.", Self::MAX_BYTES);
            return Err(Error::invalid(message));
        }
        let folded = if in_any_case { folded(written) } else { written.to_owned() };
        let mut stretches = folded.split('%');
        let first = stretches.next().unwrap_or_default().to_owned();
        let last = stretches.next_back().map(str::to_owned);
        let middle = stretches.filter(|stretch| !stretch.is_empty()).map(PatternSegment::new).collect();
        Ok(Self { written: written.to_owned(), in_any_case, first, middle, last })
    }

    /// Returns the pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Checks whether a text matches the pattern.
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

impl PatternSegment {
    fn new(stretch: &str) -> Self {
        if stretch.contains('_') {
            Self::Gapped(ShiftAndPattern::new(stretch))
        } else {
            Self::Plain(stretch.to_owned())
        }
    }

    /// Returns the position in a text where the first match of this part ends.
    fn first_end(&self, text: &str) -> Option<usize> {
        match self {
            // A part that is longer than the text cannot match. Skipping the search saves preparing
            // it, which takes time linear in the length of the part.
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

/// If the text begins with a part of the pattern, returns the remaining text.
fn behind<'a>(stretch: &str, text: &'a str) -> Option<&'a str> {
    let mut rest = text.chars();
    stretch.chars().all(|wanted| is_one(wanted, rest.next())).then_some(rest.as_str())
}

/// If the text ends with a part of the pattern, returns the text before it.
fn before<'a>(stretch: &str, text: &'a str) -> Option<&'a str> {
    let mut rest = text.chars();
    stretch.chars().rev().all(|wanted| is_one(wanted, rest.next_back())).then_some(rest.as_str())
}

/// A part of a pattern without wildcards, for the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternPiece<'a> {
    pub(crate) text: &'a str,
    /// Whether no wildcard follows the piece, so that matching texts end with it.
    pub(crate) is_end: bool,
}

/// Returns the non-empty pieces of a pattern that every matching text contains. Pieces are
/// separated by wildcards. If the pattern ignores case, they are also separated by non-ASCII
/// letters with case variants, because the index distinguishes the variants.
pub(crate) fn pieces(pattern: &LikePattern) -> Vec<PatternPiece<'_>> {
    let divides = |letter: char| WILDCARDS.contains(&letter) || (pattern.in_any_case && has_variants(letter));
    let count = pattern.written.split(divides).count();
    let piece = |(place, text)| PatternPiece { text, is_end: place + 1 == count };
    pattern.written.split(divides).enumerate().map(piece).filter(|piece| !piece.text.is_empty()).collect()
}

/// Returns the text before the first wildcard of a pattern, and whether there is a wildcard.
pub(crate) fn beginning(pattern: &str) -> (&str, bool) {
    pattern.find(WILDCARDS).map_or((pattern, false), |at| (&pattern[..at], true))
}

#[cfg(test)]
mod tests;
