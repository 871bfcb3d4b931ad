//! RLIKE: a regular expression that is found anywhere in a text.
//!
//! MLflow's store gives them to Python's `re`, whose time is not bounded; here they are matched in time linear in the text. So look-around
//! and back references are refused. An expression that is none matches nothing, as in MLflow.

use mlflow_api::{Error, Result};
use regex::{Regex, RegexBuilder};
use regex_syntax::ast::ErrorKind;

/// Bytes of a compiled expression, which bound the work per character of a text.
const SIZE: usize = 256 << 10;
/// Bytes of an expression.
const LONGEST: usize = 4 << 10;
/// Groups within groups.
const DEEPEST: u32 = 50;

/// An expression of RLIKE.
#[derive(Clone, Debug)]
pub struct Expression {
    written: String,
    /// `None` if it is no expression.
    compiled: Option<Regex>,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Expression {
    /// Reads an expression in Python's syntax.
    ///
    /// # Errors
    /// If it is too large, or may take more than linear time.
    pub fn new(written: &str) -> Result<Self> {
        let refused = |why: &str| Error::invalid(format!("The expression '{written}' of RLIKE {why}."));
        if written.len() > LONGEST {
            return Err(Error::invalid(format!("An expression of RLIKE has at most {LONGEST} bytes.")));
        }
        let translated = translated(written);
        let parsed = regex_syntax::ast::parse::ParserBuilder::new().nest_limit(DEEPEST).build().parse(&translated);
        let compiled = match parsed {
            Ok(_) => match RegexBuilder::new(&translated).nest_limit(DEEPEST).size_limit(SIZE).build() {
                Ok(compiled) => Some(compiled),
                Err(regex::Error::CompiledTooBig(_)) => return Err(refused("is too large")),
                Err(_) => None,
            },
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

    /// The expression as it was written.
    pub(super) fn as_str(&self) -> &str {
        &self.written
    }

    /// Whether it is found in the text.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.is_match(text))
    }
}

/// Translates the parts that mean something else in Python. A brace that begins no count, and a
/// bracket within a class, are themselves. So are signs that make sets of classes. `$` also matches
/// before a line break at the end. Nothing more can match after it, so the break may be taken in.
fn translated(written: &str) -> String {
    let mut translated = String::with_capacity(written.len());
    let mut rest = written.chars().peekable();
    // How many characters of a class were read: a bracket that comes first does not close it.
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

/// Whether the text after a brace is `2}`, `2,}`, `,3}` or `2,3}`.
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
            // These are none.
            ("(", "(", false),
            ("[a", "[a", false),
            ("*", "*", false),
        ] {
            assert_eq!(Expression::new(written).unwrap().is_in(text), is_in, "{written} in {text}");
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
            let message = Expression::new(written).unwrap_err().message;
            assert!(message.contains(why), "{message}");
        }
    }
}
