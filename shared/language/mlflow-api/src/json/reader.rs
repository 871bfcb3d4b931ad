//! A JSON parser that accepts everything that Python's parser accepts.

use std::iter::Peekable;
use std::str::CharIndices;

use super::size::{MAX_TEXT_VALUES, values};
use super::value::{Json, JsonObject};
use crate::{Error, Result};

/// Maximum nesting depth of arrays and objects. Python fails at a depth of about 950. Functions
/// that traverse a value recurse once per level, on a stack of 2 MB.
pub const MAX_DEPTH: usize = 1_000;

/// The reason why a text was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonError {
    /// The text is not valid JSON.
    NoJson,
    /// Arrays and objects are nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The text has more than [`MAX_TEXT_VALUES`] values.
    TooMany,
}

impl Json {
    /// Parses a text without limiting the number of its values. Use it for trusted texts, such as
    /// stored ones. Returns `None` if the text is not valid JSON or is nested too deeply.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::read_with(text, char::REPLACEMENT_CHARACTER).ok()
    }

    /// Parses a text that was sent by a client.
    ///
    /// # Errors
    /// Returns the reason why the text was rejected.
    pub fn read(text: &str) -> std::result::Result<Self, JsonError> {
        check_number(text)?;
        Self::read_with(text, char::REPLACEMENT_CHARACTER)
    }

    /// Parses a text that was sent by a client. `what` is the name of the text in error messages.
    ///
    /// # Errors
    /// Returns an error for the client with the reason why the text was rejected.
    pub fn of(what: &str, text: &str) -> Result<Self> {
        Self::read(text).map_err(|unreadable| {
            Error::invalid(match unreadable {
                JsonError::NoJson => format!("{what} is not valid JSON."),
                JsonError::TooDeep => format!("{what} has more than {MAX_DEPTH} levels of nested arrays and objects."),
                JsonError::TooMany => format!("{what} has more than {MAX_TEXT_VALUES} JSON values."),
            })
        })
    }

    /// Parses a text like [`Json::read`], but replaces unpaired surrogates by question marks, like
    /// Python does when it encodes a string with `errors="replace"`. Returns `None` if the text is
    /// rejected.
    #[must_use]
    pub fn parse_lossy(text: &str) -> Option<Self> {
        check_number(text).and_then(|()| Self::read_with(text, '?')).ok()
    }

    fn read_with(text: &str, half: char) -> std::result::Result<Self, JsonError> {
        let mut reader =
            Reader { text, rest: text.char_indices().peekable(), surrogate_replacement: half, is_too_deep: false };
        let value = reader.value(0).filter(|_| {
            reader.skip_space();
            reader.rest.next().is_none()
        });
        value.ok_or(if reader.is_too_deep { JsonError::TooDeep } else { JsonError::NoJson })
    }
}

fn check_number(text: &str) -> std::result::Result<(), JsonError> {
    // The length is checked first, because a short text cannot have too many values, and counting
    // is then unnecessary.
    let is_too_many = text.len() > MAX_TEXT_VALUES && values(text.as_bytes()) > MAX_TEXT_VALUES;
    if is_too_many { Err(JsonError::TooMany) } else { Ok(()) }
}

/// Resolves the escapes of a JSON string, given without its quotes. Returns `None` if an escape is
/// invalid. Takes time linear in the length of the string, and is fast if there are few escapes.
pub(super) fn resolve(escaped: &str) -> Option<String> {
    let mut text = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let rest_of = after.char_indices().peekable();
        let mut reader = Reader {
            text: after,
            rest: rest_of,
            surrogate_replacement: char::REPLACEMENT_CHARACTER,
            is_too_deep: false,
        };
        text.push(reader.escape()?);
        rest = after.get(reader.at()..)?;
    }
    text.push_str(rest);
    Some(text)
}

/// A parser that consumes a text from the front. Its methods return `None` if the text is not valid
/// JSON or nested too deeply.
struct Reader<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
    /// The character that replaces an unpaired surrogate.
    surrogate_replacement: char,
    is_too_deep: bool,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest.peek().map(|(_, character)| *character)
    }

    fn at(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    fn take(&mut self, wanted: char) -> bool {
        self.rest.next_if(|(_, character)| *character == wanted).is_some()
    }

    fn skip_space(&mut self) {
        while self.rest.next_if(|(_, character)| matches!(character, ' ' | '\t' | '\n' | '\r')).is_some() {}
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        self.skip_space();
        match self.peek()? {
            '{' | '[' if depth >= MAX_DEPTH => {
                self.is_too_deep = true;
                None
            }
            '{' => self.object(depth).map(Json::Object),
            '[' => self.list(depth).map(Json::List),
            '"' => self.string().map(Json::Text),
            '-' | '0'..='9' => self.number(),
            _ => match self.word() {
                "null" => Some(Json::Null),
                "true" => Some(Json::Bool(true)),
                "false" => Some(Json::Bool(false)),
                "NaN" => Some(Json::Float(f64::NAN)),
                "Infinity" => Some(Json::Float(f64::INFINITY)),
                _ => None,
            },
        }
    }

    fn object(&mut self, depth: usize) -> Option<JsonObject> {
        let mut entries = Vec::new();
        self.take('{');
        self.skip_space();
        if self.take('}') {
            return Some(JsonObject::default());
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            self.skip_space();
            self.take(':').then_some(())?;
            entries.push((key, self.value(depth + 1)?));
            self.skip_space();
            if !self.take(',') {
                return self.take('}').then(|| entries.into_iter().collect());
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Json>> {
        let mut items = Vec::new();
        self.take('[');
        self.skip_space();
        if self.take(']') {
            return Some(items);
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if !self.take(',') {
                return self.take(']').then_some(items);
            }
        }
    }

    fn word(&mut self) -> &'a str {
        let from = self.at();
        while self.rest.next_if(|(_, character)| character.is_ascii_alphabetic()).is_some() {}
        let to = self.at();
        self.text.get(from..to).unwrap_or_default()
    }

    fn digits(&mut self) -> bool {
        let mut any = false;
        while self.rest.next_if(|(_, character)| character.is_ascii_digit()).is_some() {
            any = true;
        }
        any
    }

    fn number(&mut self) -> Option<Json> {
        let from = self.at();
        let negative = self.take('-');
        if negative && self.peek() == Some('I') {
            return (self.word() == "Infinity").then_some(Json::Float(f64::NEG_INFINITY));
        }
        let leading_zero = self.take('0');
        if leading_zero == self.digits() {
            return None;
        }
        let mut whole = true;
        if self.take('.') {
            whole = false;
            self.digits().then_some(())?;
        }
        if self.rest.next_if(|(_, character)| matches!(character, 'e' | 'E')).is_some() {
            whole = false;
            let _ = self.take('+') || self.take('-');
            self.digits().then_some(())?;
        }
        let to = self.at();
        let written = self.text.get(from..to)?;
        if !whole {
            return written.parse().ok().map(Json::Float);
        }
        // Python parses -0 as the integer 0.
        Some(Json::Integer(if written == "-0" { "0".to_owned() } else { written.to_owned() }))
    }

    fn string(&mut self) -> Option<String> {
        self.take('"').then_some(())?;
        let mut text = String::new();
        loop {
            match self.rest.next()?.1 {
                '"' => return Some(text),
                '\\' => text.push(self.escape()?),
                character if character < ' ' => return None,
                character => text.push(character),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        Some(match self.rest.next()?.1 {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.code()?;
                let character = char::from_u32(first).or_else(|| self.pair(first));
                return Some(character.unwrap_or(self.surrogate_replacement));
            }
            character @ ('"' | '\\' | '/') => character,
            _ => return None,
        })
    }

    /// Returns the character of a surrogate pair whose first half is given. If the second half does
    /// not follow, returns `None` and consumes nothing.
    fn pair(&mut self, first: u32) -> Option<char> {
        (0xd800..0xdc00).contains(&first).then_some(())?;
        let before = self.rest.clone();
        let second = (self.take('\\') && self.take('u')).then(|| self.code()).flatten();
        if let Some(second) = second.filter(|code| (0xdc00..0xe000).contains(code)) {
            return char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
        }
        self.rest = before;
        None
    }

    fn code(&mut self) -> Option<u32> {
        let mut code = 0;
        for _ in 0..4 {
            code = code * 16 + self.rest.next()?.1.to_digit(16)?;
        }
        Some(code)
    }
}
