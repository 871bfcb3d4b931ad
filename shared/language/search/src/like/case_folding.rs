//! Case folding for ILIKE.

/// Folds the case of a character. Two characters match in ILIKE if they fold to the same character.
///
/// This is Unicode's simple case folding, with an exception: ASCII letters only match each other,
/// and not the Kelvin sign, the long s, or the dotted and dotless i. The exception is necessary
/// because the index converts only ASCII letters to lower case, and its tokens would otherwise miss
/// matching texts. A character is never folded to several characters, so that `_` matches exactly
/// one. As a result, `ß` does not match `ss`.
pub(crate) fn fold(letter: char) -> char {
    if letter.is_ascii() {
        return letter.to_ascii_lowercase();
    }
    // Converting to upper case first unifies the two forms of the small sigma.
    let upper = only(letter.to_uppercase()).unwrap_or(letter);
    let lower = only(upper.to_lowercase()).unwrap_or(letter);
    if lower.is_ascii() { letter } else { lower }
}

/// Checks whether a character outside ASCII may match other characters in ILIKE.
pub(crate) fn has_variants(letter: char) -> bool {
    let has_cases = letter.to_lowercase().ne([letter]) || letter.to_uppercase().ne([letter]);
    !letter.is_ascii() && has_cases
}

/// Returns the only character of an iterator, or `None` if there is not exactly one.
fn only(mut letters: impl Iterator<Item = char>) -> Option<char> {
    letters.next().filter(|_| letters.next().is_none())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn letters_match_in_either_case() {
        for (one, other) in [('a', 'A'), ('ü', 'Ü'), ('ж', 'Ж'), ('ω', 'Ω'), ('ς', 'Σ'), ('ς', 'σ'), ('ǆ', 'ǅ')]
        {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        for (one, other) in [('a', 'ä'), ('k', '\u{212a}'), ('s', 'ſ'), ('i', 'İ'), ('i', 'ı'), ('東', '京')] {
            assert_ne!(fold(one), fold(other), "{one} {other}");
        }
    }

    /// Checks every character. Characters that match others must have variants, and ASCII
    /// characters must only match ASCII characters.
    #[test]
    fn all_variants_are_known() {
        let mut classes: HashMap<char, Vec<char>> = HashMap::new();
        for letter in '\0'..=char::MAX {
            assert_eq!(fold(fold(letter)), fold(letter), "{letter:?}");
            classes.entry(fold(letter)).or_default().push(letter);
        }
        let classes: Vec<_> = classes.into_values().filter(|class| class.len() > 1).collect();
        assert!(classes.len() > 1_000);
        for class in classes {
            let is_ascii = class.iter().all(char::is_ascii);
            assert!(is_ascii || class.iter().all(|letter| has_variants(*letter)), "{class:?}");
        }
    }
}
