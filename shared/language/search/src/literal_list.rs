//! Lists of values, which MLflow parses as Python literals
//! (`SearchUtils._parse_list_from_sql_token`).

use mlflow_api::python::{float, repr};
use mlflow_api::{Error, Result};

use crate::python_repr;

/// Parses a list of strings such as `('a', "b")`.
pub(crate) fn strings(source: &str) -> Result<Vec<String>> {
    let mut reader = Reader { rest: source };
    let items = reader.items().filter(|_| reader.rest.is_empty()).ok_or_else(|| {
        Error::invalid(
            "While parsing a list in the query, expected a non-empty list of string values, but got ill-formed list.",
        )
    })?;
    if items.is_empty() {
        return Err(Error::invalid(
            "While parsing a list in the query, expected a non-empty list of string values, but got empty list",
        ));
    }
    let printed = python_repr::join(items.iter().map(Item::print));
    let printed = if items.len() == 1 { format!("({printed},)") } else { format!("({printed})") };
    let strings = items.into_iter().map(|item| if let Item::Text(text) = item { Some(text) } else { None });
    strings.collect::<Option<_>>().ok_or_else(|| {
        Error::invalid(format!(
            "While parsing a list in the query, expected string value, punctuation, or whitespace, but got different \
             type in list: {printed}"
        ))
    })
}

/// Parses a list of strings and numbers such as `('a', 1)`, which may be empty. Numbers are
/// returned as Python prints them. Returns `None` if the text is not such a list.
///
/// In Python, a single value in parentheses is not a tuple. A single number is therefore rejected,
/// and a single string is treated as a list of one string.
pub(crate) fn texts_and_numbers(source: &str) -> Option<Vec<String>> {
    let mut reader = Reader { rest: source };
    let items = reader.items().filter(|_| reader.rest.is_empty())?;
    let is_tuple = items.len() != 1 || source.trim_end_matches([')', ' ']).ends_with(',');
    let texts = items.into_iter().map(|item| match item {
        Item::Text(text) => Some(text),
        Item::Other(word) if is_tuple && !matches!(word.as_str(), "None" | "True" | "False") => Some(word),
        Item::Other(_) => None,
    });
    texts.collect()
}

enum Item {
    Text(String),
    /// Any other literal, formatted as Python prints it.
    Other(String),
}

impl Item {
    fn print(&self) -> String {
        match self {
            Self::Text(text) => repr(text),
            Self::Other(printed) => printed.clone(),
        }
    }
}

/// A parser that consumes a text from the front. Its methods return `None` if the text is not a
/// list of literals.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn items(&mut self) -> Option<Vec<Item>> {
        self.take("(").then_some(())?;
        let mut items = Vec::new();
        loop {
            if self.take(")") {
                return Some(items);
            }
            items.push(self.item()?);
            if !self.take(",") {
                return self.take(")").then_some(items);
            }
        }
    }

    /// Consumes `mark` and the white space around it, if the text begins with it.
    fn take(&mut self, mark: &str) -> bool {
        let found = self.rest.trim_start().strip_prefix(mark);
        self.rest = found.unwrap_or(self.rest).trim_start();
        found.is_some()
    }

    fn item(&mut self) -> Option<Item> {
        if self.opening().is_none() {
            return self.word().map(Item::Other);
        }
        // Python concatenates adjacent string literals.
        let mut text = String::new();
        while let Some(opening) = self.opening() {
            self.string(&opening, &mut text)?;
        }
        Some(Item::Text(text))
    }

    fn word(&mut self) -> Option<String> {
        let end = self.rest.find([',', ')']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let word = word.trim_end();
        if matches!(word, "None" | "True" | "False") {
            return Some(word.to_owned());
        }
        let digits = word.strip_prefix('-').unwrap_or(word);
        if digits.is_empty()
            || !digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
        {
            return None;
        }
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let leading_zero = digits.len() > 1 && digits.starts_with('0');
            return (!leading_zero).then(|| word.to_owned());
        }
        word.parse().ok().map(float)
    }

    /// Returns the opening of the string literal at the current position, if there is one.
    fn opening(&self) -> Option<Opening> {
        let prefix = usize::from(self.rest.starts_with(['r', 'R', 'u', 'U']));
        let quote = self.rest[prefix..].chars().next().filter(|next| matches!(next, '\'' | '"'))?;
        Some(Opening { quote, raw: self.rest.starts_with(['r', 'R']), length: prefix + 1 })
    }

    fn string(&mut self, opening: &Opening, text: &mut String) -> Option<()> {
        let mut rest = self.rest[opening.length..].chars();
        loop {
            match rest.next()? {
                next if next == opening.quote => break,
                '\n' => return None,
                '\\' if opening.raw => text.extend(['\\', rest.next()?]),
                '\\' => escape(&mut rest, text)?,
                next => text.push(next),
            }
        }
        self.rest = rest.as_str().trim_start();
        Some(())
    }
}

/// The opening of a string literal: an optional prefix and a quote.
struct Opening {
    quote: char,
    raw: bool,
    length: usize,
}

/// Parses an escape sequence after its backslash, and appends the text that it represents.
fn escape(rest: &mut std::str::Chars, text: &mut String) -> Option<()> {
    let next = rest.next()?;
    let meant = match next {
        '\n' => return Some(()),
        '\\' | '\'' | '"' => next,
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'x' => code(rest, 2)?,
        'u' => code(rest, 4)?,
        'U' => code(rest, 8)?,
        '0'..='7' => {
            let more = rest.as_str().bytes().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            let mut octal = next.to_string();
            octal.extend(rest.by_ref().take(more));
            char::from_u32(u32::from_str_radix(&octal, 8).ok()?)?
        }
        'N' => return None,
        _ => {
            text.push('\\');
            next
        }
    };
    text.push(meant);
    Some(())
}

fn code(rest: &mut std::str::Chars, length: usize) -> Option<char> {
    let digits = rest.as_str().get(..length).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    *rest = rest.as_str()[length..].chars();
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_as_python_reads_them() {
        for (source, items) in [
            ("('a')", &["a"][..]),
            ("( 'a' , \"b\" ,)", &["a", "b"]),
            ("(\n'a',\n'b')", &["a", "b"]),
            ("('it''s' \"x\")", &["itsx"]),
            (r"('a\'b\n\x41\u00e9\101\q')", &["a'b\nAéA\\q"]),
            (r"(r'a\n')", &["a\\n"]),
            ("('a,)b')", &["a,)b"]),
        ] {
            assert_eq!(strings(source).unwrap(), items, "{source}");
        }
    }

    #[test]
    fn numbers_may_stand_among_texts() {
        for (source, items) in [
            ("()", Some(&[][..])),
            ("('a')", Some(&["a"])),
            ("('a', 1, 2.50)", Some(&["a", "1", "2.5"])),
            ("(1,)", Some(&["1"])),
            ("(1)", None),
            ("(a)", None),
            ("('a', None)", None),
        ] {
            let found = texts_and_numbers(source);
            assert_eq!(
                found.as_ref().map(|texts| texts.iter().map(String::as_str).collect()),
                items.map(<[&str]>::to_vec),
                "{source}"
            );
        }
    }

    #[test]
    fn what_is_no_list_of_strings_is_refused() {
        let ill_formed = "expected a non-empty list of string values, but got ill-formed list.";
        let different = "expected string value, punctuation, or whitespace, but got different type in list: ";
        for (source, end) in [
            ("()", "expected a non-empty list of string values, but got empty list".to_owned()),
            ("(,)", ill_formed.to_owned()),
            ("('a',,'b')", ill_formed.to_owned()),
            ("('a' b)", ill_formed.to_owned()),
            ("(a, b)", ill_formed.to_owned()),
            ("(`a`)", ill_formed.to_owned()),
            ("('a\nb')", ill_formed.to_owned()),
            ("(010)", ill_formed.to_owned()),
            ("(1)", format!("{different}(1,)")),
            ("('a', 1.50, 1e20, -2, None)", format!("{different}('a', 1.5, 1e+20, -2, None)")),
        ] {
            let message = strings(source).unwrap_err().message;
            assert_eq!(message, format!("While parsing a list in the query, {end}"), "{source}");
        }
    }
}
