//! Tokens under which texts are indexed. They are a subset of the trigrams of a text.
//!
//! The indexer computes the tokens of texts, and the planner computes those of patterns. The index
//! is correct because of an invariant that a test checks: if a text matches a pattern, the tokens
//! of the text include every token of the pattern.
//!
//! At least one of [`WINDOW_SIZE`] consecutive trigrams is a token, and so is every trigram with a
//! separator between two characters. Whether a trigram is a token depends only on the trigrams
//! around it ([`rank`]), so a sufficiently long piece of a pattern has the same tokens in every
//! text that contains it. Indexing every trigram would take twice as many writes
//! (`docs/adr/0046-tokens-of-names.md`).

use std::collections::BTreeSet;

use crate::like::{self, LikePattern, PatternPiece};

/// The character that marks the end of a text. It is the ASCII control character for that purpose
/// (ETX).
///
/// Any character would be correct, because tokens only select candidates that are checked later.
/// ETX was chosen because it occurs in hardly any text or pattern, so it adds almost no false
/// candidates.
pub(crate) const END_MARK: char = '\u{3}';

/// Window size: at least one of this many consecutive trigrams is a token. As a result, every five
/// consecutive characters contain a token, and so do the last three characters of a text.
const WINDOW_SIZE: usize = 3;

/// Returns the tokens of a text, with ASCII letters in lower case. Other letters keep their case.
/// Two end marks are appended to the text, so that a trigram begins at each of its characters. A
/// text of one or two characters has no tokens.
#[must_use]
pub fn of_text(text: &str) -> BTreeSet<String> {
    chosen(&folded(text, true)).into_iter().collect()
}

/// Returns the tokens that all texts matching a pattern of LIKE or ILIKE have in common, in the
/// order of the pattern and without duplicates.
///
/// For ASCII letters, LIKE is case-sensitive and tokens are not, so a search may read additional
/// candidates, but misses none. For other letters, ILIKE ignores case and tokens do not, so letters
/// with case variants are not used in the tokens of an ILIKE pattern.
#[must_use]
pub(crate) fn of_pattern(pattern: &LikePattern) -> Vec<String> {
    of_pieces(&like::pieces(pattern))
}

/// Returns the tokens that a text equal to `text` has in the index.
pub(crate) fn of_equal(text: &str) -> Vec<String> {
    of_pieces(&[PatternPiece { text, is_end: true }])
}

fn of_pieces(pieces: &[PatternPiece]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let tokens = pieces.iter().flat_map(|piece| chosen(&folded(piece.text, piece.is_end && !piece.text.is_empty())));
    tokens.filter(|token| seen.insert(token.clone())).collect()
}

/// Returns the trigrams of `characters` that serve as tokens, in the order of the text.
fn chosen(characters: &[char]) -> Vec<String> {
    let trigrams: Vec<_> = characters.windows(3).map(|trigram| (rank(trigram), trigram)).collect();
    let mut is_token: Vec<_> = trigrams.iter().map(|(rank, _)| rank.is_none()).collect();
    for first in 0..(trigrams.len() + 1).saturating_sub(WINDOW_SIZE) {
        // Equal trigrams result in one token, so it does not matter which of them is selected.
        let least = (first..first + WINDOW_SIZE).min_by_key(|place| trigrams[*place].0);
        if let Some(place) = least {
            is_token[place] = true;
        }
    }
    let tokens = trigrams.iter().zip(is_token).filter(|(_, is_token)| *is_token);
    tokens.map(|((_, trigram), _)| trigram.iter().collect()).collect()
}

/// Returns the rank of a trigram. The trigram with the lowest rank in a window becomes a token.
///
/// `None` sorts before all other ranks, and trigrams with this rank are always tokens. They consist
/// of the end of a word and the beginning of the next, a combination that few texts share. Other
/// trigrams with a separator are less selective, and get the highest ranks.
///
/// Stored entries depend on this function, so it must not change.
fn rank(trigram: &[char]) -> Option<(bool, u64)> {
    let is_separator = |character: &char| !character.is_alphanumeric();
    let is_junction = trigram.get(1).is_some_and(|middle| is_separator(middle) && *middle != END_MARK);
    let is_beside_one = trigram.iter().any(is_separator);
    // FNV-1a, followed by a multiplication that mixes the bits.
    let bytes = trigram.iter().flat_map(|character| u32::from(*character).to_le_bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ (hash >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (!is_junction).then_some((is_beside_one, hash))
}

fn folded(text: &str, with_end: bool) -> Vec<char> {
    let marks = if with_end { 2 } else { 0 };
    let characters = text.chars().map(|character| character.to_ascii_lowercase());
    characters.chain(std::iter::repeat_n(END_MARK, marks)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(tokens: impl IntoIterator<Item = String>) -> String {
        tokens.into_iter().map(|token| token.replace(END_MARK, "$")).collect::<Vec<_>>().join(" ")
    }

    /// Pins the tokens of stored entries, which become invalid if the tokens of a text change.
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
            assert_eq!(shown(of_pattern(&LikePattern::like(pattern).unwrap())), expected, "{pattern}");
            assert_eq!(shown(of_pattern(&LikePattern::ilike(pattern).unwrap())), expected, "{pattern}");
        }
        let of = |pattern: LikePattern| shown(of_pattern(&pattern));
        assert_eq!(of(LikePattern::like("%é-abc%").unwrap()), "é-a");
        assert_eq!(of(LikePattern::ilike("%é-abc%").unwrap()), "");
        assert_eq!(of(LikePattern::ilike("%éabcde%").unwrap()), "bcd");
    }

    fn has_all(text: &str, wanted: &[String]) -> bool {
        let tokens = of_text(text);
        wanted.iter().all(|token| tokens.contains(token))
    }

    /// Generates a text and a pattern. The pattern is the text with some characters replaced by
    /// wildcards, so it usually matches.
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
                for pattern in [LikePattern::like(&pattern).unwrap(), LikePattern::ilike(&pattern).unwrap()] {
                    prop_assert!(!pattern.matches(&text) || has_all(&text, &of_pattern(&pattern)), "{:?} {:?}", text, pattern);
                }
            }
            prop_assert!(has_all(&text, &of_equal(&text)));
        }

        #[test]
        fn five_characters_have_a_token_and_the_last_three(text in "[^%_]{5,40}") {
            let within = of_pattern(&LikePattern::like(&format!("%{text}%")).unwrap());
            prop_assert!(!within.is_empty());
            let end: String = text.chars().skip(2).collect();
            let at_end = of_pattern(&LikePattern::like(&format!("%{end}")).unwrap());
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
