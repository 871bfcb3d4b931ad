//! Validates the names of new users. A name must not be confusable with another one, so it contains
//! no invisible characters and no letters of one script that look like those of another (Unicode's
//! UTS 39). Existing users with such names keep them.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, Script};
use icu_properties::{CodePointMapData, CodePointSetData};
use mlflow_api::{Error, Result, UserName};

/// A blank character that Unicode does not classify as a space.
const BRAILLE_BLANK: char = '\u{2800}';

/// Scripts that may be combined in one name ("highly restrictive" in UTS 39). A name in a single
/// script is always allowed.
const COMBINABLE_SCRIPTS: [&[Script]; 3] = [
    &[Script::Latin, Script::Han, Script::Hiragana, Script::Katakana],
    &[Script::Latin, Script::Han, Script::Bopomofo],
    &[Script::Latin, Script::Han, Script::Hangul],
];

/// Parses the name of a user to be created.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if the text is not a valid name ([`UserName::new`]), has
/// leading, trailing or repeated spaces, invisible characters or letters of several scripts, or is
/// changed by Unicode normalization (NFKC).
pub fn new_user_name(text: &str) -> Result<UserName> {
    let name = UserName::new(text)?;
    match rejection_reason(text) {
        None => Ok(name),
        Some(fault) => Err(Error::invalid(format!(
            "Username must not contain {fault}, because it could be mistaken for another one."
        ))),
    }
}

/// Returns the reason why a name could be mistaken for another one, if there is one.
fn rejection_reason(name: &str) -> Option<&'static str> {
    if name.starts_with(' ') || name.ends_with(' ') || name.contains("  ") {
        return Some("leading, trailing or repeated spaces");
    }
    if name.chars().any(is_invisible) {
        return Some("invisible characters, or blanks other than spaces");
    }
    if !ComposingNormalizerBorrowed::new_nfkc().is_normalized(name) {
        return Some("characters that Unicode normalization (NFKC) changes");
    }
    let script = CodePointMapData::<Script>::new();
    let is_common = |script: &Script| [Script::Common, Script::Inherited].contains(script);
    let scripts: Vec<_> = name.chars().map(|letter| script.get(letter)).filter(|script| !is_common(script)).collect();
    let is_alone = scripts.windows(2).all(|two| two.first() == two.last());
    let is_of = |set: &[Script]| scripts.iter().all(|script| set.contains(script));
    (!is_alone && !COMBINABLE_SCRIPTS.into_iter().any(is_of)).then_some("letters of several scripts")
}

/// Checks whether a character is invisible, or looks like a space without being one.
fn is_invisible(character: char) -> bool {
    const INVISIBLE_CATEGORIES: [GeneralCategoryGroup; 2] =
        [GeneralCategoryGroup::Other, GeneralCategoryGroup::Separator];
    let category: GeneralCategory = CodePointMapData::<GeneralCategory>::new().get(character);
    let is_of = |group: GeneralCategoryGroup| group.contains(category);
    character != ' '
        && (INVISIBLE_CATEGORIES.into_iter().any(is_of)
            || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(character)
            || character == BRAILLE_BLANK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_no_other_are_taken() {
        for name in [
            "ann",
            "Ann Lee",
            "ann@example.com",
            "anné",
            "Ünal",
            "иван",
            "Ελένη",
            "田中 Taro",
            "山田はな",
            "김민수",
            "r2-d2",
            "7",
            "מרים",
        ] {
            assert_eq!(new_user_name(name).as_ref().map(UserName::as_str), Ok(name), "{name}");
        }
    }

    #[test]
    fn names_that_look_like_others_are_refused() {
        for name in [
            " ann",
            "ann ",
            "ann  lee",
            "ann\u{200b}",  // zero-width space
            "a\u{200d}nn",  // zero-width joiner
            "\u{feff}ann",  // byte order mark
            "ann\u{202e}x", // right-to-left override
            "ann\u{a0}lee", // no-break space
            "ann\u{3164}",  // Hangul filler
            "ann\u{fe0f}",  // variation selector
            "ann\u{2800}",  // Braille blank
            "ann\u{e0061}", // tag
            "ann\u{e000}",  // private use
            "аnn",          // Cyrillic а
            "αnn",          // Greek alpha
            "anne\u{301}",  // decomposed
            "ａｎｎ",       // fullwidth
            "𝐚nn",          // mathematical
            "a\nb",
            "a:b",
            "",
        ] {
            assert!(new_user_name(name).is_err(), "{name:?}");
        }
    }
}
