//! Regular expressions of RLIKE, which match anywhere in a text.
//!
//! MLflow passes the expressions to Python's `re`, whose running time is unbounded. Here, matching
//! takes time linear in the length of the text. Look-around and back references are rejected,
//! because they may take longer. As in MLflow, an invalid expression matches nothing.

use mlflow_api::{Error, Result};
use regex::{Regex, RegexBuilder};
use regex_syntax::ast::ErrorKind;

/// Maximum size of a compiled expression in bytes, which limits the work per character of a text.
const MAX_COMPILED_BYTES: usize = 256 << 10;
/// Maximum length of an expression, in bytes.
const MAX_BYTES: usize = 4 << 10;
/// Maximum nesting depth of groups.
const MAX_DEPTH: u32 = 50;

/// A regular expression of RLIKE.
#[derive(Clone, Debug)]
pub struct RegularExpression {
    written: String,
    /// `None` if the expression is invalid.
    compiled: Option<Regex>,
}

impl PartialEq for RegularExpression {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl RegularExpression {
    /// Compiles an expression in Python's syntax.
    ///
    /// # Errors
    /// Fails if the expression is too large, or uses a feature that may take more than linear time.
    pub fn new(written: &str) -> Result<Self> {
        let refused = |why: &str| Error::invalid(format!("The expression '{written}' of RLIKE {why}."));
        if written.len() > MAX_BYTES {
            return Err(Error::invalid(format!("An expression of RLIKE has at most {MAX_BYTES} bytes.")));
        }
        let translated = translated(written);
        let parsed = regex_syntax::ast::parse::ParserBuilder::new().nest_limit(MAX_DEPTH).build().parse(&translated);
        let compiled = match parsed {
            Ok(_) => {
                match RegexBuilder::new(&translated).nest_limit(MAX_DEPTH).size_limit(MAX_COMPILED_BYTES).build() {
                    Ok(compiled) => Some(compiled),
                    Err(regex::Error::CompiledTooBig(_)) => return Err(refused("is too large")),
                    Err(_) => None,
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::UnsupportedLookAround => return Err(refused("has a look-around, which is not supported")),
                ErrorKind::UnsupportedBackreference => {
                    return Err(refused("has a back reference, which is not supported"));
                }
                ErrorKind::NestLimitExceeded(_) => return Err(refused("is nested too deeply")),
                _ => None,
            },
        };
        Ok(Self { written: written.to_owned(), compiled })
    }

    /// Returns the expression as written.
    pub(super) fn as_str(&self) -> &str {
        &self.written
    }

    /// Checks whether the expression matches anywhere in a text.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.is_match(text))
    }
}

/// Translates syntax that has a different meaning in Python.
///
/// In Python, a brace that does not begin a repetition is a literal, and so are brackets and set
/// operators within a class. `$` also matches before a line break at the end of the text. Because
/// nothing but the end can follow, the translated expression may consume the line break.
fn translated(written: &str) -> String {
    let mut translated = String::with_capacity(written.len());
    let mut rest = written.chars().peekable();
    // The number of characters read in the current class. It is needed because a closing bracket
    // that comes first is a literal and does not close the class.
    let mut class: Option<usize> = None;
    while let Some(next) = rest.next() {
        match (next, class) {
            ('\\', _) => match rest.next() {
                Some('Z') if class.is_none() => translated.push_str("\\z"),
                Some(sign @ ('<' | '>')) => translated.push(sign),
                Some(escaped) => translated.extend(['\\', escaped]),
                None => translated.push('\\'),
            },
            ('[', None) => {
                translated.push('[');
                class = Some(0);
                if rest.next_if_eq(&'^').is_some() {
                    translated.push('^');
                }
                continue;
            }
            (']', Some(1..)) => {
                translated.push(']');
                class = None;
            }
            ('[' | ']' | '&' | '~', Some(_)) => translated.extend(['\\', next]),
            ('{', None) if !begins_count(rest.clone()) => translated.push_str("\\{"),
            ('$', None) if rest.peek().is_none_or(|next| matches!(next, ')' | '|')) => translated.push_str("(?:\n?$)"),
            _ => translated.push(next),
        }
        class = class.map(|read| read + 1);
    }
    translated
}

/// Checks whether the text after an opening brace is a repetition such as `2}`, `2,}` or `2,3}`.
fn begins_count(rest: impl Iterator<Item = char>) -> bool {
    let inside: String = rest.take_while(|next| next.is_ascii_digit() || matches!(next, ',' | '}')).collect();
    let Some((count, _)) = inside.split_once('}') else { return false };
    let mut ends = count.splitn(2, ',');
    ends.next().is_some_and(|least| !least.is_empty()) && ends.next().is_none_or(|most| !most.contains(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_in_python() {
        for (written, text, is_in) in [
            ("a{", "xa{y", true),
            ("a{2}", "aa", true),
            ("a{2}", "a{2}", false),
            ("a{2,}b", "aaab", true),
            ("{x}", "{x}", true),
            ("[[]x", "[x", true),
            ("[]]x", "]x", true),
            ("[^]]x", "]x", false),
            ("[a&&b]", "&", true),
            ("a$", "a\n", true),
            ("a$", "a\nb", false),
            ("(a$|b)", "xa\n", true),
            ("a\\Z", "a\n", false),
            ("\\$$", "5$", true),
            ("(?i)PRO", "a pro", true),
            ("^(?P<x>a)\\d$", "a٣", true),
            // Invalid expressions, which match nothing.
            ("(", "(", false),
            ("[a", "[a", false),
            ("*", "*", false),
        ] {
            assert_eq!(RegularExpression::new(written).unwrap().is_in(text), is_in, "{written} in {text}");
        }
    }

    #[test]
    fn what_takes_more_than_linear_time_is_refused() {
        for (written, why) in [
            ("(?=a)", "look-around"),
            ("(?<!a)b", "look-around"),
            (r"(a)\1", "back reference"),
            ("(?:a{1000}){1000}", "too large"),
            (&format!("{}a{}", "(".repeat(60), ")".repeat(60)), "nested too deeply"),
            (&"a".repeat(5000), "at most"),
        ] {
            let message = RegularExpression::new(written).unwrap_err().message;
            assert!(message.contains(why), "{message}");
        }
    }
}
