//! JSON values, and their formatting as in Python.

use std::collections::HashMap;

use crate::python;

/// Maximum number of entries in an object for which keys are found by a linear search.
const LINEAR_SEARCH_LIMIT: usize = 16;

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
    Object(JsonObject),
}

/// The entries of a JSON object, in insertion order. Keys are unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonObject(Vec<(String, Json)>);

impl JsonObject {
    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Removes a key, and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let place = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(place).1)
    }

    /// Sets entries. Existing keys keep their positions, as in Python's `dict.update`.
    pub fn update(&mut self, entries: impl IntoIterator<Item = (String, Json)>) {
        // Most objects have few entries. In objects with many entries, keys are looked up in a map,
        // because a linear search for each would be quadratic.
        let mut places: HashMap<String, usize> = HashMap::new();
        for (key, value) in entries {
            if self.0.len() > LINEAR_SEARCH_LIMIT && places.len() < self.0.len() {
                let known = self.0.iter().enumerate().skip(places.len());
                places.extend(known.map(|(place, (key, _))| (key.clone(), place)));
            }
            let place = if self.0.len() > LINEAR_SEARCH_LIMIT {
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

    /// Appends entries whose keys must not exist yet.
    pub fn extend(&mut self, new: impl IntoIterator<Item = (String, Json)>) {
        self.0.extend(new);
    }

    /// Checks whether the object has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the entries.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

impl IntoIterator for JsonObject {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<(String, Json)> for JsonObject {
    fn from_iter<T: IntoIterator<Item = (String, Json)>>(entries: T) -> Self {
        let mut object = Self::default();
        object.update(entries);
        object
    }
}

impl Json {
    /// Formats the value like Python's `json.dumps(value)`.
    #[must_use]
    pub fn print(&self) -> String {
        let mut printed = String::new();
        self.write(Print { sorted: false, unicode: false }, &mut printed);
        printed
    }

    /// Formats the value like Python's `json.dumps(value, ensure_ascii=False)`.
    #[must_use]
    pub fn print_unicode(&self) -> String {
        let mut printed = String::new();
        self.write(Print { sorted: false, unicode: true }, &mut printed);
        printed
    }

    /// Formats the value like Python's `json.dumps(value, sort_keys=True)`. The result is equal for
    /// objects that only differ in the order of their keys.
    #[must_use]
    pub fn print_sorted(&self) -> String {
        let mut printed = String::new();
        self.write(Print { sorted: true, unicode: false }, &mut printed);
        printed
    }

    /// Returns the object, if the value is one.
    #[must_use]
    pub fn object(&self) -> Option<&JsonObject> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }

    /// Checks whether the value is true in Python, which means that it is not null, false, zero or
    /// empty.
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

    /// Returns the name of the value's Python type.
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

    /// Formats the value like Python's `str(value)`.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => other.repr(),
        }
    }

    /// Formats the value like Python's `repr(value)`.
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

    fn write(&self, print: Print, printed: &mut String) {
        match self {
            Self::Null => printed.push_str("null"),
            Self::Bool(value) => printed.push_str(if *value { "true" } else { "false" }),
            Self::Integer(digits) => printed.push_str(digits),
            Self::Float(number) if number.is_nan() => printed.push_str("NaN"),
            Self::Float(number) if number.is_infinite() => {
                printed.push_str(if *number > 0.0 { "Infinity" } else { "-Infinity" });
            }
            Self::Float(number) => printed.push_str(&python::float(*number)),
            Self::Text(text) => print.text(text, printed),
            Self::List(items) => {
                printed.push('[');
                for (position, item) in items.iter().enumerate() {
                    printed.push_str(if position > 0 { ", " } else { "" });
                    item.write(print, printed);
                }
                printed.push(']');
            }
            Self::Object(object) => {
                let mut entries: Vec<_> = object.iter().collect();
                if print.sorted {
                    entries.sort_unstable_by_key(|(key, _)| *key);
                }
                printed.push('{');
                for (position, (key, value)) in entries.into_iter().enumerate() {
                    printed.push_str(if position > 0 { ", " } else { "" });
                    print.text(key, printed);
                    printed.push_str(": ");
                    value.write(print, printed);
                }
                printed.push('}');
            }
        }
    }
}

/// The format of a printed value.
#[derive(Clone, Copy)]
struct Print {
    /// Whether keys are sorted.
    sorted: bool,
    /// Whether characters outside ASCII are printed as they are instead of being escaped.
    unicode: bool,
}

impl Print {
    fn text(self, text: &str, printed: &mut String) {
        if self.unicode { python::write_unicode_text(text, printed) } else { python::write_json_text(text, printed) }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
