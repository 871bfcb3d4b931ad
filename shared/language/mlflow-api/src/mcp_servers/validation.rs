//! Validation of JSON bodies, with the error messages of `pydantic`.

use crate::json::JsonObject;
use crate::{Error, Json, Request, Result, json};

const NO_OBJECT: &str = "Input should be a valid dictionary or object to extract fields from";

/// Collects the mistakes in a body. Each has the path of its field.
#[derive(Debug, Default)]
pub(crate) struct Validation {
    mistakes: Vec<String>,
}

/// Returns the error for a single mistake in a request.
pub(crate) fn invalid_request(mistake: &str) -> Error {
    Error::invalid(format!("Invalid request: {mistake}"))
}

/// Parses the body of a request, which has to be a JSON object.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE`, as `FastAPI` reports it.
pub(crate) fn body(request: &Request) -> Result<JsonObject> {
    if request.body.is_empty() {
        return Err(invalid_request("Field required"));
    }
    let content_type = request.content_type.as_deref().unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = content_type == "application/json"
        || (content_type.starts_with("application/") && content_type.ends_with("+json"));
    if !is_json {
        return Err(invalid_request(NO_OBJECT));
    }
    let no_json = || invalid_request("JSON decode error");
    let text = json::to_utf8(&request.body).map_err(|_| no_json())?;
    let text = std::str::from_utf8(&text).map_err(|_| no_json())?;
    let value = Json::read(text).map_err(|unreadable| match unreadable {
        json::JsonError::NoJson => no_json(),
        json::JsonError::TooDeep | json::JsonError::TooMany => {
            invalid_request("The body has too many JSON values, or too many levels of nested arrays and objects")
        }
    })?;
    match value {
        Json::Object(object) if is_finite(&object) => Ok(object),
        Json::Object(_) => Err(invalid_request("NaN and infinities are not valid JSON values")),
        _ => Err(invalid_request(NO_OBJECT)),
    }
}

/// Parses an integer like `pydantic`, which ignores white space around it, single underscores
/// between digits, and a fraction of zero. Returns its digits without leading zeros, with a sign if
/// it is negative.
pub(crate) fn integer(text: &str) -> Option<String> {
    let text = text.trim();
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    };
    let unsigned = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !unsigned.split('_').all(is_number) {
        return None;
    }
    let digits = unsigned.replace('_', "");
    let significant = digits.trim_start_matches('0');
    let significant = if significant.is_empty() { "0" } else { significant };
    let sign = if whole.starts_with('-') && significant != "0" { "-" } else { "" };
    Some(format!("{sign}{significant}"))
}

/// Compares an integer, given by its digits, with a limit. The integer may have any number of
/// digits.
pub(crate) fn is_greater(digits: &str, limit: i64) -> bool {
    digits.parse::<i64>().map_or(!digits.starts_with('-'), |number| number > limit)
}

/// Checks whether an object contains neither NaN nor an infinity, which a response could not
/// contain.
fn is_finite(object: &JsonObject) -> bool {
    fn is_finite_value(value: &Json) -> bool {
        match value {
            Json::Float(number) => number.is_finite(),
            Json::List(items) => items.iter().all(is_finite_value),
            Json::Object(object) => is_finite(object),
            Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Text(_) => true,
        }
    }
    object.iter().all(|(_, value)| is_finite_value(value))
}

/// Returns the path of a field or an element within another.
pub(crate) fn within(at: &str, part: impl std::fmt::Display) -> String {
    if at.is_empty() { part.to_string() } else { format!("{at}.{part}") }
}

impl Validation {
    /// Records a mistake at a path.
    pub(crate) fn fail(&mut self, at: &str, message: &str) {
        self.mistakes.push(if at.is_empty() { message.to_owned() } else { format!("{at}: {message}") });
    }

    /// Checks that there are no mistakes.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE`, and lists all mistakes.
    pub(crate) fn finish(self) -> Result<()> {
        if self.mistakes.is_empty() { Ok(()) } else { Err(invalid_request(&self.mistakes.join("; "))) }
    }

    /// Checks a text that is required.
    pub(crate) fn required_text(&mut self, at: &str, object: &JsonObject, key: &str) -> Option<String> {
        match object.get(key) {
            Some(Json::Text(text)) => Some(text.clone()),
            Some(_) => {
                self.fail(&within(at, key), "Input should be a valid string");
                None
            }
            None => {
                self.fail(&within(at, key), "Field required");
                None
            }
        }
    }

    /// Checks a text that may be missing or null.
    pub(crate) fn optional_text(&mut self, at: &str, object: &JsonObject, key: &str) -> Option<String> {
        match object.get(key) {
            None | Some(Json::Null) => None,
            Some(_) => self.required_text(at, object, key),
        }
    }

    /// Checks an object that may be missing or null.
    pub(crate) fn optional_object<'a>(
        &mut self,
        at: &str,
        object: &'a JsonObject,
        key: &str,
    ) -> Option<&'a JsonObject> {
        match object.get(key) {
            None | Some(Json::Null) => None,
            Some(Json::Object(inner)) => Some(inner),
            Some(_) => {
                self.fail(&within(at, key), "Input should be a valid dictionary");
                None
            }
        }
    }

    /// Checks a list that may be missing or null, with an optional maximum length.
    pub(crate) fn optional_list(
        &mut self,
        at: &str,
        object: &JsonObject,
        key: &str,
        most: Option<usize>,
    ) -> Option<Vec<Json>> {
        match object.get(key) {
            None | Some(Json::Null) => None,
            Some(Json::List(items)) => match most.filter(|most| items.len() > *most) {
                None => Some(items.clone()),
                Some(most) => {
                    let count = items.len();
                    let message = format!("List should have at most {most} items after validation, not {count}");
                    self.fail(&within(at, key), &message);
                    None
                }
            },
            Some(_) => {
                self.fail(&within(at, key), "Input should be a valid list");
                None
            }
        }
    }

    /// Checks that a value is an object with fields.
    pub(crate) fn model(&mut self, at: &str, value: Json) -> Option<JsonObject> {
        if let Json::Object(object) = value {
            return Some(object);
        }
        self.fail(at, NO_OBJECT);
        None
    }

    /// Checks a truth value, which may be written in several ways.
    pub(crate) fn boolean(&mut self, at: &str, value: &Json) -> bool {
        let (as_text, message) = match value {
            Json::Bool(value) => return *value,
            Json::Integer(digits) => (digits.clone(), "Input should be a valid boolean, unable to interpret input"),
            Json::Float(0.0) => return false,
            Json::Float(1.0) => return true,
            Json::Text(text) => (text.to_lowercase(), "Input should be a valid boolean, unable to interpret input"),
            _ => (String::new(), "Input should be a valid boolean"),
        };
        match as_text.as_str() {
            "1" | "true" | "t" | "yes" | "y" | "on" => true,
            "0" | "false" | "f" | "no" | "n" | "off" => false,
            _ => {
                self.fail(at, message);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_pydantic() {
        for (text, digits) in [
            (" 07 ", "7"),
            ("-0", "0"),
            ("+2.0", "2"),
            ("1_0", "10"),
            ("-1_0.00", "-10"),
            ("99999999999999999999", "99999999999999999999"),
        ] {
            assert_eq!(integer(text).as_deref(), Some(digits), "{text}");
        }
        for text in ["", "x", "1__0", "_1", "1_", "1.5", "1.", "1e1", "--1", "\u{663}"] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert!(is_greater("99999999999999999999", 5) && is_greater("6", 5) && !is_greater("5", 5));
        assert!(!is_greater("-99999999999999999999", 5));
    }
}
