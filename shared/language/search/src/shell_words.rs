//! Splitting a text into words like a POSIX shell. MLflow uses Python's `shlex.split` on orderings.

/// Splits `text` into words and removes their quotes. Returns `None` if a quote is not closed, or
/// if the text ends with a backslash.
pub(crate) fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().push(rest.next()?),
            '\'' | '"' => push_quoted(&mut rest, next, word.get_or_insert_default())?,
            _ => word.get_or_insert_default().push(next),
        }
    }
    words.extend(word);
    Some(words)
}

/// Appends the text up to the closing `quote` to `word`. Within double quotes, a backslash escapes
/// a double quote or a backslash.
fn push_quoted(rest: &mut std::str::Chars, quote: char, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            next if next == quote => return Some(()),
            '\\' if quote == '"' => {
                let next = rest.next()?;
                if !matches!(next, '"' | '\\') {
                    word.push('\\');
                }
                word.push(next);
            }
            next => word.push(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_hold_words_together() {
        for (text, words) in [
            ("", &[][..]),
            (" a  b ", &["a", "b"]),
            (r#"a."b c" d"#, &["a.b c", "d"]),
            (r"a\ b", &["a b"]),
            (r#"'a\b' "\"\x" """#, &[r"a\b", r#""\x"#, ""]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        for text in ["'", "a\"b", "a\\"] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
