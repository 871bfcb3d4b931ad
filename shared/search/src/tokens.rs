//! The tokens by which texts are found: trigrams and words.
//!
//! The indexer takes them from texts, the planner from patterns. What makes the index right is one sentence, and a test
//! holds it: if a text matches a pattern, every term of the pattern is among the tokens of the text.

use std::collections::BTreeSet;

use rust_stemmers::{Algorithm, Stemmer};

use crate::like::{self, Piece};
use crate::range::TextRange;

/// Marks the end of a text, as its name in ASCII says. Any character would be right, as trigrams only propose what is
/// checked later; this one is in hardly any text or pattern, and so proposes nothing wrong.
pub(crate) const END: char = '\u{3}';

/// Longer words are not indexed: they are hashes and encoded data, which a trigram finds as well.
const LONGEST_WORD: usize = 40;

/// How a token was made from a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Three characters in a row.
    Trigram,
    /// A stemmed word.
    Word,
}

/// What a pattern says of the texts that match it: one of their tokens of this level is in the range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// The kind of token.
    pub level: Level,
    /// The token, or its beginning.
    pub token: TextRange,
}

/// All trigrams of a text, with ASCII letters in lower case as ILIKE compares them. Two marks of the end are added, so
/// that a trigram begins at each character: pieces of one or two characters are found as beginnings of trigrams. There are
/// at most as many as characters; the caller who indexes only some of them must not search by the rest.
#[must_use]
pub fn trigrams(text: &str) -> BTreeSet<String> {
    windows(&folded(text, true)).collect()
}

/// All words of a text: letters and digits in a row, at most 40, ASCII letters in lower case. English endings are cut off
/// (Snowball's stemmer, finished in 2017; the crate has nothing to keep up with), so that a word has few forms to store.
#[must_use]
pub fn words(text: &str) -> BTreeSet<String> {
    text.split(is_separator).filter_map(word).collect()
}

/// What a pattern of LIKE or ILIKE implies for the tokens of every text that matches it: words first, then trigrams, both
/// as ordered in the pattern. LIKE minds case and the tokens do not, which makes more candidates and misses none.
#[must_use]
pub fn pattern_terms(pattern: &str) -> Vec<Term> {
    terms(&like::pieces(pattern))
}

/// What a text that equals this one has for tokens.
pub(crate) fn text_terms(text: &str) -> Vec<Term> {
    terms(&[Piece { text, is_start: true, is_end: true }])
}

fn terms(pieces: &[Piece]) -> Vec<Term> {
    let words = pieces.iter().flat_map(whole_words);
    let words = words.map(|token| Term { level: Level::Word, token: TextRange::Equal(token) });
    words.chain(pieces.iter().flat_map(piece_trigrams)).collect()
}

/// The words of a piece that end in it on both sides. Others may go on in the text, under a wildcard.
fn whole_words<'a>(piece: &Piece<'a>) -> impl Iterator<Item = String> + use<'a> {
    let Piece { text, is_start, is_end } = *piece;
    let count = text.split(is_separator).count();
    let is_whole = move |place: usize| (place > 0 || is_start) && (place + 1 < count || is_end);
    let parts = text.split(is_separator).enumerate().filter(move |(place, _)| is_whole(*place));
    parts.filter_map(|(_, part)| word(part))
}

fn piece_trigrams(piece: &Piece) -> Vec<Term> {
    let characters = folded(piece.text, piece.is_end);
    let term = |token| Term { level: Level::Trigram, token };
    match characters.len() {
        // The end of an empty text alone.
        _ if piece.text.is_empty() => Vec::new(),
        1 | 2 => vec![term(TextRange::Prefix(characters.into_iter().collect()))],
        _ => windows(&characters).map(|trigram| term(TextRange::Equal(trigram))).collect(),
    }
}

fn windows(characters: &[char]) -> impl Iterator<Item = String> {
    characters.windows(3).map(|trigram| trigram.iter().collect())
}

fn folded(text: &str, with_end: bool) -> Vec<char> {
    let marks = if with_end { 2 } else { 0 };
    let characters = text.chars().map(|character| character.to_ascii_lowercase());
    characters.chain(std::iter::repeat_n(END, marks)).collect()
}

fn is_separator(character: char) -> bool {
    !character.is_alphanumeric()
}

fn word(text: &str) -> Option<String> {
    if text.is_empty() || text.chars().count() > LONGEST_WORD {
        return None;
    }
    let word = text.to_ascii_lowercase();
    // The stemmer is for English; it has no business with other letters.
    Some(if word.is_ascii() { Stemmer::create(Algorithm::English).stem(&word).into_owned() } else { word })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::like::Pattern;

    fn shown(terms: &[Term]) -> String {
        let shown = terms.iter().map(|term| match (&term.level, &term.token) {
            (Level::Word, TextRange::Equal(token)) => format!("w:{token}"),
            (_, TextRange::Equal(token)) => token.replace(END, "$"),
            (_, TextRange::Prefix(token)) => format!("{token}*"),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn texts_have_tokens() {
        let trigrams: Vec<_> = trigrams("aBcb").into_iter().map(|token| token.replace(END, "$")).collect();
        assert_eq!(trigrams, ["abc", "b$$", "bcb", "cb$"]);
        assert!(super::trigrams("").is_empty());
        let words: Vec<_> = words("Trained runs, re-trained RUNS_2 Été").into_iter().collect();
        assert_eq!(words, ["2", "re", "run", "train", "Été"]);
        assert!(super::words(&"a".repeat(41)).is_empty());
    }

    #[test]
    fn patterns_have_terms() {
        for (pattern, expected) in [
            ("%", ""),
            ("", ""),
            ("%a%", "a*"),
            ("ab%", "ab*"),
            ("%a", "a$$"),
            ("%ab", "ab$ b$$"),
            ("%Abcd%", "abc bcd"),
            ("abc", "w:abc abc bc$ c$$"),
            ("%the runs of%", "w:run the he  e r  ru run uns ns  s o  of"),
            ("runs of%", "w:run run uns ns  s o  of"),
            ("a_b%cd", "a* b* cd$ d$$"),
        ] {
            assert_eq!(shown(&pattern_terms(pattern)), expected, "{pattern}");
        }
    }

    fn has_all(text: &str, terms: &[Term]) -> bool {
        let (trigrams, words) = (trigrams(text), words(text));
        terms.iter().all(|term| {
            let tokens = if term.level == Level::Word { &words } else { &trigrams };
            tokens.iter().any(|token| term.token.contains(token))
        })
    }

    /// A pattern that the text matches, more often than not: some of its characters give way to wildcards.
    fn text_and_pattern() -> impl Strategy<Value = (String, String)> {
        let text = prop::collection::vec(prop::sample::select(vec!['a', 'B', 'c', 'É', ' ', '-', '1', '\u{3}']), 0..24);
        (text, prop::collection::vec(0_u8..12, 24), any::<bool>()).prop_map(|(text, changes, other_case)| {
            let mut pattern = String::new();
            for (character, change) in text.iter().zip(changes) {
                match change {
                    0 => pattern.push('_'),
                    1 => pattern.push('%'),
                    2 => pattern.extend(['%', *character]),
                    _ if other_case => pattern.push(character.to_ascii_uppercase()),
                    _ => pattern.push(*character),
                }
            }
            (text.into_iter().collect(), pattern)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_text_that_matches_has_every_term((text, pattern) in text_and_pattern(), other in "[aBc %_é1]{0,8}") {
            for pattern in [pattern, other] {
                if Pattern::like(&pattern).unwrap().matches(&text) || Pattern::ilike(&pattern).unwrap().matches(&text) {
                    prop_assert!(has_all(&text, &pattern_terms(&pattern)), "{:?} {:?}", text, pattern);
                }
            }
            prop_assert!(has_all(&text, &text_terms(&text)));
        }

        #[test]
        fn no_text_makes_trouble(text in "\\PC*", ascii in "[a-z']{0,45}") {
            prop_assert!(has_all(&text, &text_terms(&text)));
            prop_assert!(has_all(&ascii, &text_terms(&ascii)));
        }
    }
}
