//! SQL's LIKE: `%` stands for any text, `_` for any character, and there is no escape.

const WILDCARDS: [char; 2] = ['%', '_'];

/// `text LIKE pattern`.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    matches_by(pattern, text, |wanted, found| wanted == found)
}

/// `lower(text) LIKE lower(pattern)`; SQLite's `lower` knows ASCII only.
pub(crate) fn matches_in_any_case(pattern: &str, text: &str) -> bool {
    matches_by(pattern, text, |wanted, found| wanted.eq_ignore_ascii_case(&found))
}

/// Walks both texts once, and on a mismatch returns to the last `%` only: what stood before it has been matched as
/// early as possible, and matching it later could not help. So the work is at most the product of the lengths.
fn matches_by(pattern: &str, text: &str, same: impl Fn(char, char) -> bool) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    let mut last_percent = None;
    loop {
        let found = match pattern.next() {
            Some('%') => {
                if pattern.as_str().is_empty() {
                    return true;
                }
                last_percent = Some((pattern.clone(), text.clone()));
                continue;
            }
            Some(wanted) => text.next().is_some_and(|found| wanted == '_' || same(wanted, found)),
            None if text.as_str().is_empty() => return true,
            None => false,
        };
        if found {
            continue;
        }
        let Some((after_percent, from)) = &mut last_percent else { return false };
        if from.next().is_none() {
            return false;
        }
        pattern = after_percent.clone();
        text = from.clone();
    }
}

/// A piece of a pattern without wildcards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    /// No wildcard stands before it, so that the text begins with it.
    pub(crate) is_start: bool,
    /// No wildcard stands after it, so that the text ends with it.
    pub(crate) is_end: bool,
}

/// The pieces between the wildcards of a pattern, those that are empty left out.
pub(crate) fn pieces(pattern: &str) -> Vec<Piece<'_>> {
    let count = pattern.split(WILDCARDS).count();
    let piece = |(place, text)| Piece { text, is_start: place == 0, is_end: place + 1 == count };
    pattern.split(WILDCARDS).enumerate().map(piece).filter(|piece| !piece.text.is_empty()).collect()
}

/// What stands before the first wildcard of a pattern, and whether there is one.
pub(crate) fn beginning(pattern: &str) -> (&str, bool) {
    pattern.find(WILDCARDS).map_or((pattern, false), |at| (&pattern[..at], true))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wildcards() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("_", "", false),
            ("_", "é", true),
            ("a%", "abc", true),
            ("%c", "abc", true),
            ("%b%", "abc", true),
            ("a_c", "abc", true),
            ("a_c", "ac", false),
            ("%a%b%", "xaxbx", true),
            ("%ab", "aab", true),
            ("a%b", "acbd", false),
            ("A", "a", false),
            (r"\%", r"\x", true),
            ("a.c", "abc", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{text:?} LIKE {pattern:?}");
        }
        assert!(matches_in_any_case("aB%", "Abc"));
        assert!(!matches_in_any_case("é", "É"));
    }

    #[test]
    fn many_wildcards_do_not_explode() {
        let pattern = "%a".repeat(2000) + "b";
        assert!(!matches(&pattern, &"a".repeat(4000)));
    }

    /// The definition, exponential and plain.
    fn by_definition(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('%', rest)) => (0..=text.len()).any(|skipped| by_definition(rest, &text[skipped..])),
            Some((wanted, rest)) => text
                .split_first()
                .is_some_and(|(found, text)| (*wanted == '_' || wanted == found) && by_definition(rest, text)),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab_%]{0,8}", text in "[ab]{0,10}") {
            let (pattern_chars, text_chars): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(matches(&pattern, &text), by_definition(&pattern_chars, &text_chars));
        }
    }
}
