//! JSON as Python's `json` module reads and prints it.
//!
//! What clients send as JSON inside of a text comes back to them as they sent it: integers of any length, NaN and the infinities,
//! keys in their order. `serde_json` keeps none of these. Half a surrogate pair is refused, as it is no Unicode.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::CharIndices;

use crate::python;

/// Arrays and objects within each other.
const DEEPEST: usize = 128;
/// Entries of an object that are looked through one by one.
const FEW: usize = 16;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer of any length, in decimal digits.
    Integer(String),
    /// A number with a fraction or an exponent, NaN, or an infinity.
    Float(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object.
    Object(Object),
}

/// The entries of a JSON object, in their order; no key comes twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Vec<(String, Json)>);

impl Object {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Takes the value of a key out.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let place = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(place).1)
    }

    /// Sets entries: a key that is there keeps its place, as in Python's `dict.update`.
    pub fn update(&mut self, entries: impl IntoIterator<Item = (String, Json)>) {
        // Most objects have few entries; of those that have many, a key must not be looked for among all.
        let mut places: HashMap<String, usize> = HashMap::new();
        for (key, value) in entries {
            if self.0.len() > FEW && places.len() < self.0.len() {
                let known = self.0.iter().enumerate().skip(places.len());
                places.extend(known.map(|(place, (key, _))| (key.clone(), place)));
            }
            let place = if self.0.len() > FEW {
                places.get(&key).copied()
            } else {
                self.0.iter().position(|(name, _)| *name == key)
            };
            if let Some(entry) = place.and_then(|place| self.0.get_mut(place)) {
                entry.1 = value;
            } else {
                self.0.push((key, value));
            }
        }
    }

    /// Adds entries whose keys are not there yet.
    pub fn extend(&mut self, new: impl IntoIterator<Item = (String, Json)>) {
        self.0.extend(new);
    }

    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

impl IntoIterator for Object {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<(String, Json)> for Object {
    fn from_iter<T: IntoIterator<Item = (String, Json)>>(entries: T) -> Self {
        let mut object = Self::default();
        object.update(entries);
        object
    }
}

impl Json {
    /// Reads a text; `None` if it is no JSON, or JSON more than 128 deep.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader { text, rest: text.char_indices().peekable() };
        let value = reader.value(0)?;
        reader.skip_space();
        reader.rest.next().is_none().then_some(value)
    }

    /// `json.dumps(value)`.
    #[must_use]
    pub fn print(&self) -> String {
        let mut printed = String::new();
        self.write(false, &mut printed);
        printed
    }

    /// `json.dumps(value, sort_keys=True)`: equal for objects that differ in the order of their keys only.
    #[must_use]
    pub fn print_sorted(&self) -> String {
        let mut printed = String::new();
        self.write(true, &mut printed);
        printed
    }

    /// The object it is.
    #[must_use]
    pub fn object(&self) -> Option<&Object> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }

    /// Whether Python takes it for true: it is neither null, false, zero nor empty.
    #[must_use]
    pub fn is_true(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => *value,
            Self::Integer(digits) => digits != "0",
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Object(object) => !object.is_empty(),
        }
    }

    /// Name of its Python type.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "NoneType",
            Self::Bool(_) => "bool",
            Self::Integer(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
            Self::List(_) => "list",
            Self::Object(_) => "dict",
        }
    }

    /// Python's `str(value)`.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => other.repr(),
        }
    }

    /// Python's `repr(value)`.
    #[must_use]
    pub fn repr(&self) -> String {
        match self {
            Self::Null => "None".to_owned(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Integer(digits) => digits.clone(),
            Self::Float(number) => python::float(*number),
            Self::Text(text) => python::repr(text),
            Self::List(items) => {
                let printed: Vec<_> = items.iter().map(Self::repr).collect();
                format!("[{}]", printed.join(", "))
            }
            Self::Object(object) => {
                let printed: Vec<_> =
                    object.iter().map(|(key, value)| format!("{}: {}", python::repr(key), value.repr())).collect();
                format!("{{{}}}", printed.join(", "))
            }
        }
    }

    fn write(&self, sorted: bool, printed: &mut String) {
        match self {
            Self::Null => printed.push_str("null"),
            Self::Bool(value) => printed.push_str(if *value { "true" } else { "false" }),
            Self::Integer(digits) => printed.push_str(digits),
            Self::Float(number) if number.is_nan() => printed.push_str("NaN"),
            Self::Float(number) if number.is_infinite() => {
                printed.push_str(if *number > 0.0 { "Infinity" } else { "-Infinity" });
            }
            Self::Float(number) => printed.push_str(&python::float(*number)),
            Self::Text(text) => python::write_json_text(text, printed),
            Self::List(items) => {
                printed.push('[');
                for (position, item) in items.iter().enumerate() {
                    printed.push_str(if position > 0 { ", " } else { "" });
                    item.write(sorted, printed);
                }
                printed.push(']');
            }
            Self::Object(object) => {
                let mut entries: Vec<_> = object.iter().collect();
                if sorted {
                    entries.sort_unstable_by_key(|(key, _)| *key);
                }
                printed.push('{');
                for (position, (key, value)) in entries.into_iter().enumerate() {
                    printed.push_str(if position > 0 { ", " } else { "" });
                    python::write_json_text(key, printed);
                    printed.push_str(": ");
                    value.write(sorted, printed);
                }
                printed.push('}');
            }
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Reads from the front of a text. `None` means the text is no JSON.
struct Reader<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
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
        if depth > DEEPEST {
            return None;
        }
        match self.peek()? {
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

    fn object(&mut self, depth: usize) -> Option<Object> {
        let mut entries = Vec::new();
        self.take('{');
        self.skip_space();
        if self.take('}') {
            return Some(Object::default());
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
        // To Python, -0 is the integer 0.
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
                if !(0xd800..0xdc00).contains(&first) {
                    return char::from_u32(first);
                }
                (self.take('\\') && self.take('u')).then_some(())?;
                let second = self.code().filter(|code| (0xdc00..0xe000).contains(code))?;
                return char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
            character @ ('"' | '\\' | '/') => character,
            _ => return None,
        })
    }

    fn code(&mut self) -> Option<u32> {
        let mut code = 0;
        for _ in 0..4 {
            code = code * 16 + self.rest.next()?.1.to_digit(16)?;
        }
        Some(code)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_come_back_as_python_prints_them() {
        for (text, printed) in [
            ("null", "null"),
            (" [ true ,\n\tfalse ] ", "[true, false]"),
            (r#"{"b":1,"a":{}, "b" : 2}"#, r#"{"b": 2, "a": {}}"#),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("[-0, -0.0, 0, 10, -7]", "[0, -0.0, 0, 10, -7]"),
            ("[1e5, 1E400, -1e400, 2.50, 1e-7]", "[100000.0, Infinity, -Infinity, 2.5, 1e-07]"),
            ("[NaN, Infinity, -Infinity]", "[NaN, Infinity, -Infinity]"),
            (r#""é\u00e9\ud83d\ude00\/\"\\\n""#, r#""\u00e9\u00e9\ud83d\ude00/\"\\\n""#),
        ] {
            let value = Json::parse(text).unwrap();
            assert_eq!(value.print(), printed, "{text}");
            assert_eq!(Json::parse(printed).unwrap().print(), printed, "{text}");
        }
        assert_eq!(
            Json::parse(r#"{"b": 1, "a": {"d": 2, "c": 3}}"#).unwrap().print_sorted(),
            r#"{"a": {"c": 3, "d": 2}, "b": 1}"#
        );
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            " ",
            "x",
            "nul",
            "nullx",
            "{",
            "[1",
            "[1,]",
            "{\"a\" 1}",
            "{\"a\": 1,}",
            "{a: 1}",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "\"a",
            "\"\n\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "1 2",
            "\u{feff}1",
            "-NaN",
            "'a'",
        ] {
            assert_eq!(Json::parse(text), None, "{text}");
        }
        assert!(Json::parse(&("[".repeat(128) + &"]".repeat(128))).is_some());
        assert_eq!(Json::parse(&"[".repeat(100_000)), None);
    }

    #[test]
    fn texts_are_pythons() {
        let value = Json::parse(r#"{"a": ["it's", 1.0, null, true], "b": {}}"#).unwrap();
        assert_eq!(value.to_text(), r#"{'a': ["it's", 1.0, None, True], 'b': {}}"#);
        assert_eq!(Json::from("x").to_text(), "x");
    }

    #[test]
    fn an_update_keeps_the_places() {
        let mut object: Object = [("a", 1), ("b", 2)]
            .map(|(key, value)| (key.to_owned(), Json::Integer(value.to_string())))
            .into_iter()
            .collect();
        object.update([("c".to_owned(), Json::Null), ("a".to_owned(), Json::Null)]);
        assert_eq!(Json::Object(object).print(), r#"{"a": null, "b": 2, "c": null}"#);
    }

    #[test]
    fn many_entries_are_found_as_few_are() {
        let mut object = Object::default();
        for round in 0..3 {
            object.update(
                (0..100).map(|number| (format!("k{}", number % 40), Json::Integer((round * 100 + number).to_string()))),
            );
        }
        assert_eq!(object.iter().count(), 40);
        assert!(object.iter().enumerate().all(|(place, (key, _))| key == format!("k{place}")));
        assert_eq!(object.get("k39"), Some(&Json::Integer("279".to_owned())));
    }

    proptest! {
        #[test]
        fn agrees_with_serde(text in "[ \\[\\]{}\",:a1.e\\-\\\\u0tn]{0,12}") {
            let strict: Option<serde_json::Value> = serde_json::from_str(&text).ok();
            let printed = Json::parse(&text).map(|value| value.print());
            let again = printed.as_ref().and_then(|printed| serde_json::from_str(printed).ok());
            // What serde reads, this reads the same; and it reads more.
            prop_assert!(strict.is_none() || again == strict, "{:?}", printed);
        }
    }
}
