//! The tokenizer of filter strings.
//!
//! The rules are those of `sqlparse` (its `keywords.SQL_REGEX`), which are tried in the same order.
//! The first rule that matches wins, regardless of the length of its match. Rules that only matter
//! for complete SQL statements (joins, loops, dollar quotes, time zones) are omitted.

use super::keywords;
use super::node::{NodeKind, SyntaxNode};

/// Maximum number of tokens that `sqlparse` groups (`MAX_GROUPING_TOKENS`).
const MAX_TOKENS: usize = 10_000;

/// Splits `source` into tokens. Returns `None` if there are too many.
pub(crate) fn tokens(source: &str) -> Option<Vec<SyntaxNode<'_>>> {
    let mut tokens = Vec::new();
    let mut here = Position { source, at: 0, last_comment_end: source.rfind("*/") };
    while let Some(next) = here.rest().chars().next() {
        let (kind, length) = RULES.iter().find_map(|rule| rule(&here)).unwrap_or((NodeKind::Unknown, next.len_utf8()));
        tokens.push(SyntaxNode::new(kind, &here.rest()[..length], here.at));
        if tokens.len() > MAX_TOKENS {
            return None;
        }
        here.at += length;
    }
    Some(tokens)
}

/// A position in the source.
struct Position<'a> {
    source: &'a str,
    at: usize,
    last_comment_end: Option<usize>,
}

impl<'a> Position<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn before(&self) -> Option<char> {
        self.source[..self.at].chars().next_back()
    }
}

type Rule = fn(&Position) -> Option<(NodeKind, usize)>;

const RULES: [Rule; 17] = [
    block_comment,
    line_comment,
    blank,
    mark,
    backquoted,
    placeholder,
    command,
    reserved,
    sigil_name,
    name,
    number,
    quoted,
    bracketed,
    phrase,
    text_comparator,
    word,
    symbol,
];

fn block_comment(here: &Position) -> Option<(NodeKind, usize)> {
    let body = here.rest().strip_prefix("/*")?;
    here.last_comment_end.filter(|&end| end >= here.at + 2)?;
    Some((NodeKind::Comment, body.find("*/")? + 4))
}

fn line_comment(here: &Position) -> Option<(NodeKind, usize)> {
    let rest = here.rest();
    if !rest.starts_with("--") && !rest.starts_with("# ") {
        return None;
    }
    let length = match rest.find(['\r', '\n']) {
        Some(end) => end + newline_length(&rest[end..]),
        None => rest.len(),
    };
    Some((NodeKind::Comment, length))
}

fn newline_length(text: &str) -> usize {
    if text.starts_with("\r\n") { 2 } else { usize::from(text.starts_with(['\r', '\n'])) }
}

fn blank(here: &Position) -> Option<(NodeKind, usize)> {
    let rest = here.rest();
    match newline_length(rest) {
        0 => rest.chars().next().filter(|&next| is_space(next)).map(|next| (NodeKind::Space, next.len_utf8())),
        length => Some((NodeKind::Newline, length)),
    }
}

fn mark(here: &Position) -> Option<(NodeKind, usize)> {
    let marks = [(":=", NodeKind::Assign), ("::", NodeKind::Punctuation), ("*", NodeKind::Wildcard)];
    marks.into_iter().find(|(mark, _)| here.rest().starts_with(mark)).map(|(mark, kind)| (kind, mark.len()))
}

fn backquoted(here: &Position) -> Option<(NodeKind, usize)> {
    let length = ['`', '´'].into_iter().find_map(|quote| quoted_length(here.rest(), quote, false))?;
    Some((NodeKind::Name, length))
}

fn placeholder(here: &Position) -> Option<(NodeKind, usize)> {
    let rest = here.rest();
    if rest.starts_with('?') {
        return Some((NodeKind::Placeholder, 1));
    }
    if rest.starts_with("%s") || rest.starts_with("%S") {
        return Some((NodeKind::Placeholder, 2));
    }
    let after_sigil = rest.strip_prefix(['$', ':']).filter(|_| !here.before().is_some_and(is_word))?;
    match run(after_sigil, is_word) {
        0 => None,
        length => Some((NodeKind::Placeholder, 1 + length)),
    }
}

fn command(here: &Position) -> Option<(NodeKind, usize)> {
    match run(here.rest().strip_prefix('\\')?, is_word) {
        0 => None,
        length => Some((NodeKind::Unknown, 1 + length)),
    }
}

/// Matches words that are keywords even before a dot or a parenthesis.
fn reserved(here: &Position) -> Option<(NodeKind, usize)> {
    let words = ["CASE", "IN", "VALUES", "USING", "FROM", "AS"];
    words.iter().find_map(|word| words_length(here.rest(), &[word])).map(|length| (NodeKind::Keyword, length))
}

fn sigil_name(here: &Position) -> Option<(NodeKind, usize)> {
    let sigil = ["@", "##", "#"].into_iter().find(|sigil| {
        here.rest()
            .strip_prefix(sigil)
            .is_some_and(|rest| letter_first(rest) && run(rest, is_word) > first_length(rest))
    })?;
    Some((NodeKind::Name, sigil.len() + run(&here.rest()[sigil.len()..], is_word)))
}

/// Matches names. A word next to a dot or before a parenthesis is a name even if it is a keyword
/// elsewhere. The dot at the beginning of a number does not have this effect.
fn name(here: &Position) -> Option<(NodeKind, usize)> {
    let rest = here.rest();
    if !letter_first(rest) {
        return None;
    }
    let length = run(rest, is_word);
    let after = &rest[length..];
    let owns = after
        .trim_start_matches(is_space)
        .strip_prefix('.')
        .is_some_and(|member| !member.starts_with(|next: char| next.is_ascii_digit()));
    let is_name = owns || here.before() == Some('.') || after.starts_with('(');
    is_name.then_some((NodeKind::Name, length))
}

fn number(here: &Position) -> Option<(NodeKind, usize)> {
    let sign = usize::from(here.rest().starts_with('-'));
    let rest = &here.rest()[sign..];
    let (kind, length) =
        hexadecimal(rest).or_else(|| scientific(rest)).or_else(|| fraction(rest)).or_else(|| integer(rest))?;
    Some((kind, sign + length))
}

fn hexadecimal(rest: &str) -> Option<(NodeKind, usize)> {
    let digits = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"))?;
    match run(digits, |next| next.is_ascii_hexdigit()) {
        0 => None,
        length => Some((NodeKind::Hexadecimal, 2 + length)),
    }
}

fn scientific(rest: &str) -> Option<(NodeKind, usize)> {
    let whole = digits(rest);
    if whole == 0 {
        return None;
    }
    let decimals = rest[whole..].strip_prefix('.').map_or(0, digits);
    let mantissa = if decimals > 0 { whole + 1 + decimals } else { whole };
    let exponent = rest[mantissa..].strip_prefix(['e', 'E'])?;
    let sign = usize::from(exponent.starts_with('-'));
    match digits(&exponent[sign..]) {
        0 => None,
        length => Some((NodeKind::Float, mantissa + 1 + sign + length)),
    }
}

fn fraction(rest: &str) -> Option<(NodeKind, usize)> {
    let whole = digits(rest);
    let after_point = rest[whole..].strip_prefix('.')?;
    let least = usize::from(whole == 0);
    digits_before_no_letter(after_point, least).map(|length| (NodeKind::Float, whole + 1 + length))
}

fn integer(rest: &str) -> Option<(NodeKind, usize)> {
    digits_before_no_letter(rest, 1).map(|length| (NodeKind::Integer, length))
}

/// Returns the length of the longest run of at least `least` digits that is not followed by a
/// letter. The regular expression in `sqlparse` backtracks by one digit to avoid a letter, so
/// `12abc` is the number `1` and the name `2abc`.
fn digits_before_no_letter(rest: &str, least: usize) -> Option<usize> {
    let length = digits(rest);
    let touches_letter = letter_first(&rest[length..]) || rest[length..].starts_with('_');
    let length = if touches_letter { length.checked_sub(1)? } else { length };
    (length >= least).then_some(length)
}

fn quoted(here: &Position) -> Option<(NodeKind, usize)> {
    [('\'', NodeKind::SingleQuoted), ('"', NodeKind::DoubleQuoted)]
        .into_iter()
        .find_map(|(quote, kind)| quoted_length(here.rest(), quote, true).map(|length| (kind, length)))
}

/// Returns the length of the quoted text at the beginning of `rest`. A doubled quote is part of the
/// text. If `backslash_escapes` is set, so is a quote after a backslash. If there is no closing
/// quote, the last doubled or escaped quote closes the text.
fn quoted_length(rest: &str, quote: char, backslash_escapes: bool) -> Option<usize> {
    let body = rest.strip_prefix(quote)?;
    let mut escaped = None;
    let mut places = body.char_indices().peekable();
    while let Some((at, next)) = places.next() {
        let end = quote.len_utf8() + at + next.len_utf8();
        if next == quote {
            if places.next_if(|&(_, following)| following == quote).is_none() {
                return Some(end);
            }
            escaped = Some(end);
        } else if backslash_escapes && next == '\\' && places.next_if(|&(_, following)| following == quote).is_some() {
            escaped = Some(end + quote.len_utf8());
        }
    }
    escaped
}

/// Matches a name in square brackets, unless the bracket directly follows a word or another
/// bracket.
fn bracketed(here: &Position) -> Option<(NodeKind, usize)> {
    let body = here.rest().strip_prefix('[')?;
    if here.before().is_some_and(|before| is_word(before) || before == ']' || before == ')') {
        return None;
    }
    let length = body.find(['[', ']'])?;
    (length > 0 && body[length..].starts_with(']')).then_some((NodeKind::Name, length + 2))
}

/// Matches a phrase: several words that `sqlparse` treats as one token.
fn phrase(here: &Position) -> Option<(NodeKind, usize)> {
    const PHRASES: [(&[&str], NodeKind); 12] = [
        (&["NOT", "NULL"], NodeKind::Keyword),
        (&["ASC", "NULLS", "FIRST"], NodeKind::Direction),
        (&["ASC", "NULLS", "LAST"], NodeKind::Direction),
        (&["DESC", "NULLS", "FIRST"], NodeKind::Direction),
        (&["DESC", "NULLS", "LAST"], NodeKind::Direction),
        (&["ASC"], NodeKind::Direction),
        (&["DESC"], NodeKind::Direction),
        (&["NULLS", "FIRST"], NodeKind::Direction),
        (&["NULLS", "LAST"], NodeKind::Direction),
        (&["UNION", "ALL"], NodeKind::Keyword),
        (&["GROUP", "BY"], NodeKind::Keyword),
        (&["ORDER", "BY"], NodeKind::Keyword),
    ];
    PHRASES.iter().find_map(|(words, kind)| words_length(here.rest(), words).map(|length| (*kind, length)))
}

fn text_comparator(here: &Position) -> Option<(NodeKind, usize)> {
    const COMPARATORS: [&[&str]; 10] = [
        &["NOT", "LIKE"],
        &["NOT", "ILIKE"],
        &["NOT", "RLIKE"],
        &["LIKE"],
        &["ILIKE"],
        &["RLIKE"],
        &["NOT", "REGEXP", "BINARY"],
        &["NOT", "REGEXP"],
        &["REGEXP", "BINARY"],
        &["REGEXP"],
    ];
    COMPARATORS.iter().find_map(|words| words_length(here.rest(), words)).map(|length| (NodeKind::Comparator, length))
}

fn word(here: &Position) -> Option<(NodeKind, usize)> {
    let rest = here.rest();
    if !rest.starts_with(is_word) {
        return None;
    }
    let length = run(rest, |next| is_word(next) || next == '$' || next == '#');
    Some((keywords::classify(&rest[..length]), length))
}

fn symbol(here: &Position) -> Option<(NodeKind, usize)> {
    const OPERATORS: [&str; 8] = ["->>", "->", "#>>", "#>", "@>", "<@", "-", "#-"];
    let rest = here.rest();
    if rest.starts_with([';', ':', '(', ')', '[', ']', ',', '.']) {
        return Some((NodeKind::Punctuation, 1));
    }
    if let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
        return Some((NodeKind::Operator, operator.len()));
    }
    let runs = [("<>=~!", NodeKind::Comparator), ("+/@#%^&|-", NodeKind::Operator)];
    runs.into_iter().find_map(|(symbols, kind)| match run(rest, |next| symbols.contains(next)) {
        0 => None,
        length => Some((kind, length)),
    })
}

/// Returns the length of `words` at the beginning of `rest`, ignoring case and allowing any white
/// space between them.
fn words_length(rest: &str, words: &[&str]) -> Option<usize> {
    let mut at = 0;
    for (place, word) in words.iter().enumerate() {
        if place > 0 {
            let gap = run(&rest[at..], is_space);
            if gap == 0 {
                return None;
            }
            at += gap;
        }
        let found = rest.get(at..at + word.len())?;
        if !found.eq_ignore_ascii_case(word) {
            return None;
        }
        at += word.len();
    }
    (!rest[at..].starts_with(is_word)).then_some(at)
}

/// Returns the length of the longest prefix of `rest` whose characters all `belong`.
fn run(rest: &str, belong: impl Fn(char) -> bool) -> usize {
    rest.find(|next| !belong(next)).unwrap_or(rest.len())
}

fn digits(rest: &str) -> usize {
    run(rest, |next| next.is_ascii_digit())
}

fn first_length(rest: &str) -> usize {
    rest.chars().next().map_or(0, char::len_utf8)
}

/// Checks whether `rest` begins with a letter that a name may begin with: an ASCII letter, or an
/// accented letter of Latin-1.
fn letter_first(rest: &str) -> bool {
    rest.starts_with(|next: char| next.is_ascii_alphabetic() || matches!(next, 'À'..='Ü' | 'à'..='ö' | 'ø'..='ü'))
}

/// Checks whether a character matches Python's `\w`.
fn is_word(next: char) -> bool {
    next.is_alphanumeric() || next == '_'
}

/// Checks whether a character matches Python's `\s`.
fn is_space(next: char) -> bool {
    next.is_whitespace() || matches!(next, '\u{1c}'..='\u{1f}')
}
