//! The tokens by which texts are found: some of their trigrams.
//!
//! The indexer takes them from texts, the planner from patterns. The index is right because of one
//! rule, which a test checks: if a text matches a pattern, every token of the pattern is among
//! those of the text.
//!
//! One of [`WINDOW`] trigrams in a row is a token, and so is each with a separator between two
//! characters. The choice depends on the trigrams alone ([`rank`]). So a long enough stretch of a
//! pattern has the same tokens as every text that contains it. An entry for each trigram would be
//! twice as many writes (`docs/adr/0046-tokens-of-names.md`).

use std::collections::BTreeSet;

use crate::like::{self, Pattern, Piece};

/// Marks the end of a text, as its name in ASCII says. Any character would be right, as trigrams
/// only propose candidates that are checked later. This one is in hardly any text or pattern, and
/// so proposes nothing wrong.
pub(crate) const END: char = '\u{3}';

/// Of so many trigrams in a row at least one is a token: of every five characters, and of the last three.
const WINDOW: usize = 3;

/// The tokens of a text, with ASCII letters in lower case. Other letters keep their case. Two marks
/// of the end are added, so that a trigram begins at each character. A text of one or two
/// characters has none.
#[must_use]
pub fn of_text(text: &str) -> BTreeSet<String> {
    chosen(&folded(text, true)).into_iter().collect()
}

/// The tokens of every text that matches a pattern of LIKE or ILIKE, as ordered in the pattern, each
/// once. LIKE minds the case of ASCII letters and tokens do not, which makes more candidates and
/// misses none. ILIKE does not mind the case of other letters, but tokens do, so it has none with
/// such a letter.
#[must_use]
pub(crate) fn of_pattern(pattern: &Pattern) -> Vec<String> {
    of_pieces(&like::pieces(pattern))
}

/// The tokens of texts that equal `text`.
pub(crate) fn of_equal(text: &str) -> Vec<String> {
    of_pieces(&[Piece { text, is_end: true }])
}

fn of_pieces(pieces: &[Piece]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let tokens = pieces.iter().flat_map(|piece| chosen(&folded(piece.text, piece.is_end && !piece.text.is_empty())));
    tokens.filter(|token| seen.insert(token.clone())).collect()
}

/// The tokens among the trigrams of characters, in their order.
fn chosen(characters: &[char]) -> Vec<String> {
    let trigrams: Vec<_> = characters.windows(3).map(|trigram| (rank(trigram), trigram)).collect();
    let mut is_token: Vec<_> = trigrams.iter().map(|(rank, _)| rank.is_none()).collect();
    for first in 0..(trigrams.len() + 1).saturating_sub(WINDOW) {
        // Of equal ones, any will do: they are one token.
        let least = (first..first + WINDOW).min_by_key(|place| trigrams[*place].0);
        if let Some(place) = least {
            is_token[place] = true;
        }
    }
    let tokens = trigrams.iter().zip(is_token).filter(|(_, is_token)| *is_token);
    tokens.map(|((_, trigram), _)| trigram.iter().collect()).collect()
}

/// Ranks trigrams: the least of neighbouring ones is a token. `None` is less than all others, and
/// so always a token. It is for the end of a word and the beginning of the next, which few texts
/// share. Other trigrams with a separator say less, and come last. The entries that are stored
/// follow from this.
fn rank(trigram: &[char]) -> Option<(bool, u64)> {
    let is_separator = |character: &char| !character.is_alphanumeric();
    let is_junction = trigram.get(1).is_some_and(|middle| is_separator(middle) && *middle != END);
    let is_beside_one = trigram.iter().any(is_separator);
    // FNV-1a; one more multiplication spreads its bits.
    let bytes = trigram.iter().flat_map(|character| u32::from(*character).to_le_bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ (hash >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (!is_junction).then_some((is_beside_one, hash))
}

fn folded(text: &str, with_end: bool) -> Vec<char> {
    let marks = if with_end { 2 } else { 0 };
    let characters = text.chars().map(|character| character.to_ascii_lowercase());
    characters.chain(std::iter::repeat_n(END, marks)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(tokens: impl IntoIterator<Item = String>) -> String {
        tokens.into_iter().map(|token| token.replace(END, "$")).collect::<Vec<_>>().join(" ")
    }

    /// Changing these values changes the meaning of stored entries.
    #[test]
    fn tokens_are_as_they_are_stored() {
        for (text, expected) in [
            ("serious-newt-353", "353 iou new rio s-n ser t-3"),
            ("unique-name-123", "123 e-1 e-n iqu nam"),
            ("aBc", "abc"),
            ("ab", ""),
            ("", ""),
        ] {
            assert_eq!(shown(of_text(text)), expected, "{text}");
        }
    }

    #[test]
    fn patterns_have_tokens() {
        for (pattern, expected) in [
            ("%", ""),
            ("", ""),
            ("%a%", ""),
            ("%ab", ""),
            ("%abcd%", ""),
            ("%y-t%", "y-t"),
            ("%abcde%", "bcd"),
            ("%a_b-c", "b-c"),
        ] {
            assert_eq!(shown(of_pattern(&Pattern::like(pattern).unwrap())), expected, "{pattern}");
            assert_eq!(shown(of_pattern(&Pattern::ilike(pattern).unwrap())), expected, "{pattern}");
        }
        let of = |pattern: Pattern| shown(of_pattern(&pattern));
        assert_eq!(of(Pattern::like("%é-abc%").unwrap()), "é-a");
        assert_eq!(of(Pattern::ilike("%é-abc%").unwrap()), "");
        assert_eq!(of(Pattern::ilike("%éabcde%").unwrap()), "bcd");
    }

    fn has_all(text: &str, wanted: &[String]) -> bool {
        let tokens = of_text(text);
        wanted.iter().all(|token| tokens.contains(token))
    }

    /// A pattern that the text matches, more often than not: some of its characters give way to wildcards.
    fn text_and_pattern() -> impl Strategy<Value = (String, String)> {
        let text = prop::collection::vec(
            prop::sample::select(vec!['a', 'B', 'c', 'É', 'ς', 'K', ' ', '-', '1', '\u{3}']),
            0..24,
        );
        (text, prop::collection::vec(0_u8..24, 24), any::<bool>()).prop_map(|(text, changes, other_case)| {
            let mut pattern = String::new();
            for (character, change) in text.iter().zip(changes) {
                match change {
                    0 => pattern.push('_'),
                    1 => pattern.push('%'),
                    2 => pattern.extend(['%', *character]),
                    _ if other_case && *character == 'É' => pattern.push('é'),
                    _ if other_case && *character == 'ς' => pattern.push('Σ'),
                    _ if other_case => pattern.push(character.to_ascii_uppercase()),
                    _ => pattern.push(*character),
                }
            }
            (text.into_iter().collect(), pattern)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn a_text_that_matches_has_every_token((text, pattern) in text_and_pattern(), other in "[aBc %_éΣK1]{0,8}") {
            for pattern in [pattern, other] {
                for pattern in [Pattern::like(&pattern).unwrap(), Pattern::ilike(&pattern).unwrap()] {
                    prop_assert!(!pattern.matches(&text) || has_all(&text, &of_pattern(&pattern)), "{:?} {:?}", text, pattern);
                }
            }
            prop_assert!(has_all(&text, &of_equal(&text)));
        }

        #[test]
        fn five_characters_have_a_token_and_the_last_three(text in "[^%_]{5,40}") {
            let within = of_pattern(&Pattern::like(&format!("%{text}%")).unwrap());
            prop_assert!(!within.is_empty());
            let end: String = text.chars().skip(2).collect();
            let at_end = of_pattern(&Pattern::like(&format!("%{end}")).unwrap());
            prop_assert!(!at_end.is_empty());
        }

    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::dear_cases(4_000)))]

        #[test]
        fn a_text_has_fewer_tokens_than_characters(text in "\\PC{0,200}") {
            prop_assert!(of_text(&text).len() <= text.chars().count());
        }
    }
}
