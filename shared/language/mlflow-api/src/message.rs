//! Request messages: JSON that is parsed into the fields of a protobuf message, as in MLflow's
//! server.
//!
//! MLflow passes the request to protobuf's JSON parser, which processes the fields in the order of
//! the JSON object. If a value does not fit its field, parsing stops. Fields before it are kept,
//! and fields after it are treated as not sent. This is not an error by itself, but it enables the
//! type checks of [`crate::checks`]. Unknown fields and unknown enum names are ignored.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::python;
use crate::{Error, Result};

/// A field of a message.
#[derive(Debug)]
pub struct Field {
    /// The name in snake case. Requests may also use its camel case form.
    pub name: &'static str,
    /// The kind.
    pub kind: Kind,
    /// Whether the field is a list.
    pub repeated: bool,
}

/// The kind of a field.
#[derive(Debug)]
pub enum Kind {
    /// A string.
    Text,
    /// A 64-bit integer.
    Int64,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit float.
    Double,
    /// A bool.
    Bool,
    /// An enum, with its names and numbers.
    Enum(&'static [(&'static str, i64)]),
    /// A message.
    Message(&'static [Field]),
    /// A message of which only one field can be set (`oneof`). Another field does not fit.
    OneOf(&'static [Field]),
}

/// A string field.
#[cfg(test)]
pub(crate) const fn text(name: &'static str) -> Field {
    Field { name, kind: Kind::Text, repeated: false }
}

/// A list of strings.
#[cfg(test)]
pub(crate) const fn texts(name: &'static str) -> Field {
    Field { name, kind: Kind::Text, repeated: true }
}

/// A field of this kind that is not a list.
#[cfg(test)]
pub(crate) const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, repeated: false }
}

/// A list of messages.
#[cfg(test)]
pub(crate) const fn messages(name: &'static str, fields: &'static [Field]) -> Field {
    Field { name, kind: Kind::Message(fields), repeated: true }
}

/// A parsed message, which only contains the fields that were sent and fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message(BTreeMap<&'static str, Content>);

/// The parsed content of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A string.
    Text(String),
    /// An integer, or the number of an enum value.
    Int(i64),
    /// A float.
    Double(f64),
    /// A bool.
    Bool(bool),
    /// A message.
    Message(Message),
    /// A list, with the elements that were parsed.
    List(Vec<Content>),
}

/// The error for a value that does not fit its field.
struct FieldTypeMismatch;

impl Message {
    /// Parses a JSON object. Returns the fields that could be parsed, and whether that is every
    /// field that was sent.
    #[must_use]
    pub fn parse(fields: &'static [Field], json: &Map<String, Value>) -> (Self, bool) {
        let mut message = Self::default();
        let fitted = message.read(fields, json, false).is_ok();
        (message, fitted)
    }

    fn read(
        &mut self,
        fields: &'static [Field],
        json: &Map<String, Value>,
        is_one_of: bool,
    ) -> Result<(), FieldTypeMismatch> {
        for (key, value) in json {
            let Some(field) = fields.iter().find(|field| field.name == key || is_camel_case_of(field.name, key)) else {
                continue;
            };
            self.0.remove(field.name);
            if value.is_null() {
                continue;
            }
            if is_one_of && !self.0.is_empty() {
                return Err(FieldTypeMismatch);
            }
            if !field.repeated {
                self.read_single(field, value)?;
                continue;
            }
            // Elements that have been parsed are kept even if a later element does not fit.
            self.0.insert(field.name, Content::List(Vec::new()));
            for element in value.as_array().ok_or(FieldTypeMismatch)? {
                let (content, outcome) = match &field.kind {
                    Kind::Message(fields) | Kind::OneOf(fields) => {
                        let mut message = Self::default();
                        let outcome = message.read_value(fields, element, matches!(field.kind, Kind::OneOf(_)));
                        (Some(Content::Message(message)), outcome)
                    }
                    kind => match scalar(kind, element) {
                        Ok(content) => (content, Ok(())),
                        Err(misfit) => (None, Err(misfit)),
                    },
                };
                if let Some(Content::List(list)) = self.0.get_mut(field.name) {
                    list.extend(content);
                }
                outcome?;
            }
        }
        Ok(())
    }

    fn read_single(&mut self, field: &'static Field, value: &Value) -> Result<(), FieldTypeMismatch> {
        if let Kind::Message(fields) | Kind::OneOf(fields) = &field.kind {
            let mut message = Self::default();
            let outcome = message.read_value(fields, value, matches!(field.kind, Kind::OneOf(_)));
            self.0.insert(field.name, Content::Message(message));
            return outcome;
        }
        if let Some(content) = scalar(&field.kind, value)? {
            self.0.insert(field.name, content);
        }
        Ok(())
    }

    fn read_value(
        &mut self,
        fields: &'static [Field],
        value: &Value,
        is_one_of: bool,
    ) -> Result<(), FieldTypeMismatch> {
        self.read(fields, value.as_object().ok_or(FieldTypeMismatch)?, is_one_of)
    }

    /// Removes a field from the message, and returns its content, or `None` if it was not sent.
    pub fn take(&mut self, field: &str) -> Option<Content> {
        self.0.remove(field)
    }
}

/// Access to fields by name, for the tests of this crate. All other code declares messages.
#[cfg(test)]
impl Message {
    /// Checks whether a field was sent.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.0.contains_key(field)
    }

    /// Returns a string field, which is empty if it was not sent, as in protobuf.
    pub(crate) fn string(&self, field: &str) -> &str {
        match self.0.get(field) {
            Some(Content::Text(text)) => text,
            _ => "",
        }
    }

    /// Returns a list of strings.
    pub(crate) fn texts(&self, field: &str) -> Vec<String> {
        self.list(field)
            .iter()
            .filter_map(|content| if let Content::Text(text) = content { Some(text.clone()) } else { None })
            .collect()
    }

    /// Returns an integer or the number of an enum value, which is 0 if the field was not sent.
    pub(crate) fn int(&self, field: &str) -> i64 {
        self.optional_int(field).unwrap_or_default()
    }

    /// Returns an integer or the number of an enum value, if the field was sent.
    pub(crate) fn optional_int(&self, field: &str) -> Option<i64> {
        match self.0.get(field) {
            Some(Content::Int(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns a float, which is 0 if the field was not sent.
    pub(crate) fn double(&self, field: &str) -> f64 {
        match self.0.get(field) {
            Some(Content::Double(number)) => *number,
            _ => 0.0,
        }
    }

    /// Returns a bool, if the field was sent.
    pub(crate) fn optional_bool(&self, field: &str) -> Option<bool> {
        match self.0.get(field) {
            Some(Content::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// Returns a list of messages.
    pub(crate) fn messages(&self, field: &str) -> impl Iterator<Item = &Message> {
        self.list(field)
            .iter()
            .filter_map(|content| if let Content::Message(message) = content { Some(message) } else { None })
    }

    fn list(&self, field: &str) -> &[Content] {
        match self.0.get(field) {
            Some(Content::List(list)) => list,
            _ => &[],
        }
    }
}

/// Parses a value that is not a list or a message. Returns `None` for an unknown name of an enum
/// value, which is treated as if the field had not been sent.
fn scalar(kind: &Kind, value: &Value) -> Result<Option<Content>, FieldTypeMismatch> {
    match kind {
        Kind::Text => value.as_str().map(|text| Some(Content::Text(text.to_owned()))).ok_or(FieldTypeMismatch),
        Kind::Int64 => integer(value).map(|number| Some(Content::Int(number))),
        Kind::Int32 => {
            let number = integer(value)?;
            i32::try_from(number).map(|number| Some(Content::Int(i64::from(number)))).map_err(|_| FieldTypeMismatch)
        }
        Kind::Double => double(value).map(|number| Some(Content::Double(number))),
        Kind::Bool => value.as_bool().map(|value| Some(Content::Bool(value))).ok_or(FieldTypeMismatch),
        Kind::Enum(names) => enumeration(names, value),
        Kind::Message(_) | Kind::OneOf(_) => Err(FieldTypeMismatch),
    }
}

fn integer(value: &Value) -> Result<i64, FieldTypeMismatch> {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Ok(number),
            (None, Some(number)) if !number.is_nan() => whole(number),
            _ => Err(FieldTypeMismatch),
        },
        Value::String(text) if !text.contains(' ') => match python::int(text) {
            Some(digits) => digits.parse().map_err(|_| FieldTypeMismatch),
            None => python::parse_float(text).ok_or(FieldTypeMismatch).and_then(whole),
        },
        _ => Err(FieldTypeMismatch),
    }
}

/// Converts a float to an equal 64-bit integer, if there is one.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn whole(number: f64) -> Result<i64, FieldTypeMismatch> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number) { Ok(number as i64) } else { Err(FieldTypeMismatch) }
}

fn double(value: &Value) -> Result<f64, FieldTypeMismatch> {
    match value {
        Value::Number(number) => number.as_f64().ok_or(FieldTypeMismatch),
        // Python's `float(True)` is 1.
        Value::Bool(value) => Ok(f64::from(u8::from(*value))),
        Value::String(text) if text != "nan" => python::parse_float(text).ok_or(FieldTypeMismatch),
        _ => Err(FieldTypeMismatch),
    }
}

fn enumeration(names: &[(&str, i64)], value: &Value) -> Result<Option<Content>, FieldTypeMismatch> {
    let number = match value {
        Value::String(text) => match names.iter().find(|(name, _)| name == text) {
            Some((_, number)) => *number,
            None => match python::int(text) {
                Some(digits) => digits.parse().map_err(|_| FieldTypeMismatch)?,
                None => return Ok(None),
            },
        },
        // Python's `int` discards the fraction.
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => whole(float.trunc())?,
            _ => number.as_i64().ok_or(FieldTypeMismatch)?,
        },
        Value::Bool(value) => i64::from(*value),
        _ => return Err(FieldTypeMismatch),
    };
    if names.iter().any(|(_, known)| *known == number) {
        Ok(Some(Content::Int(number)))
    } else {
        Err(FieldTypeMismatch)
    }
}

/// Rejects an object that contains a field under both of its names, because the order of the two
/// would determine which one is used.
pub(crate) fn reject_both_names(fields: &[Field], json: &Value) -> Result<()> {
    let Some(object) = json.as_object() else { return Ok(()) };
    for field in fields {
        let camel = camel_case(field.name);
        if camel != field.name && object.contains_key(field.name) && object.contains_key(&camel) {
            return Err(Error::invalid(format!(
                "Request specifies both '{}' and '{camel}'; provide only one of them.",
                field.name
            )));
        }
        if let Kind::Message(fields) | Kind::OneOf(fields) = &field.kind {
            match object.get(field.name).or_else(|| object.get(&camel)) {
                Some(Value::Array(items)) => items.iter().try_for_each(|item| reject_both_names(fields, item))?,
                Some(value) => reject_both_names(fields, value)?,
                None => {}
            }
        }
    }
    Ok(())
}

/// Checks whether `key` is protobuf's JSON name of a field. A request may have a million keys, so
/// this function does not allocate.
fn is_camel_case_of(name: &str, key: &str) -> bool {
    let mut key = key.bytes();
    let mut upper = false;
    for byte in name.bytes() {
        if byte == b'_' {
            upper = true;
            continue;
        }
        let expected = if upper { byte.to_ascii_uppercase() } else { byte };
        if key.next() != Some(expected) {
            return false;
        }
        upper = false;
    }
    key.next().is_none()
}

/// Returns protobuf's JSON name of a field.
fn camel_case(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut upper = false;
    for character in name.chars() {
        if character == '_' {
            upper = true;
        } else {
            camel.push(if upper { character.to_ascii_uppercase() } else { character });
            upper = false;
        }
    }
    camel
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TAG: &[Field] = &[text("key"), text("value")];
    const FIELDS: &[Field] = &[
        text("run_id"),
        field("step", Kind::Int64),
        field("small", Kind::Int32),
        field("value", Kind::Double),
        field("flag", Kind::Bool),
        field("status", Kind::Enum(&[("RUNNING", 1), ("FINISHED", 3)])),
        messages("tags", TAG),
        texts("order_by"),
    ];

    fn parse(json: &Value) -> (Message, bool) {
        Message::parse(FIELDS, json.as_object().unwrap())
    }

    #[test]
    fn integers_come_in_many_forms() {
        for (value, number) in [
            (json!(7), 7),
            (json!(7.0), 7),
            (json!("7"), 7),
            (json!("7.0"), 7),
            (json!("1e3"), 1000),
            (json!("\t7"), 7),
            (json!(-9_223_372_036_854_775_808_i64), i64::MIN),
        ] {
            let (message, fitted) = parse(&json!({ "step": value }));
            assert!(fitted, "{value}");
            assert_eq!(message.int("step"), number);
        }
        for value in
            [json!(7.5), json!("7 "), json!("x"), json!(true), json!([1]), json!(1e19), json!("9223372036854775808")]
        {
            assert!(!parse(&json!({ "step": value })).1, "{value}");
        }
        assert!(!parse(&json!({ "small": 2_147_483_648_i64 })).1);
    }

    #[test]
    fn floats_come_in_many_forms() {
        for (value, number) in
            [(json!("1e3"), 1000.0), (json!(true), 1.0), (json!(" 2.5"), 2.5), (json!("Infinity"), f64::INFINITY)]
        {
            let (message, fitted) = parse(&json!({ "value": value }));
            assert!(fitted, "{value}");
            assert_eq!(message.double("value").to_bits(), f64::to_bits(number));
        }
        assert!(parse(&json!({ "value": "NaN" })).0.double("value").is_nan());
        assert!(!parse(&json!({ "value": "nan" })).1);
    }

    #[test]
    fn enums_are_names_or_numbers_and_unknown_names_are_ignored() {
        assert_eq!(parse(&json!({ "status": "FINISHED" })).0.int("status"), 3);
        assert_eq!(parse(&json!({ "status": "3" })).0.int("status"), 3);
        assert_eq!(parse(&json!({ "status": 3 })).0.int("status"), 3);
        let (message, fitted) = parse(&json!({ "status": "BOGUS", "step": 1 }));
        assert!(fitted && !message.has("status") && message.int("step") == 1);
        assert!(!parse(&json!({ "status": 9 })).1);
    }

    #[test]
    fn a_misfit_stops_the_reading_and_keeps_what_came_before() {
        let (message, fitted) =
            parse(&json!({ "run_id": "r", "tags": [{ "key": "a" }, { "key": 5 }, { "key": "c" }], "step": 4 }));
        assert!(!fitted && !message.has("step"));
        assert_eq!(message.string("run_id"), "r");
        assert_eq!(message.messages("tags").map(|tag| tag.string("key")).collect::<Vec<_>>(), ["a", ""]);
    }

    #[test]
    fn both_spellings_are_known_but_not_together() {
        assert_eq!(parse(&json!({ "runId": "r" })).0.string("run_id"), "r");
        assert_eq!(parse(&json!({ "run_id": null, "unknown": 1 })).0, Message::default());
        let error = reject_both_names(FIELDS, &json!({ "run_id": "a", "runId": "b" })).unwrap_err();
        assert_eq!(error.message, "Request specifies both 'run_id' and 'runId'; provide only one of them.");
    }
}
