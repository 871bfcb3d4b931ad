//! The checks that an endpoint performs on the fields of its request, and their messages
//! (`_validate_request_json_with_schema` in MLflow's `handlers.py`).

use serde_json::{Map, Value};

use crate::python;
use crate::{Error, Result};

/// The checks of a field, in the order in which they run.
pub type FieldChecks = (&'static str, &'static [Check]);

/// A check of the JSON value of a field.
#[derive(Clone, Copy)]
pub enum Check {
    /// The field was sent, and is not the empty string.
    Required,
    /// The value is a string.
    Text,
    /// The value can be converted to an integer.
    Integer,
    /// The value can be converted to a float.
    Float,
    /// The value is a bool.
    Bool,
    /// The value is a list.
    List,
    /// The elements of the list are strings.
    TextItems,
    /// A check that is specific to the endpoint. The error is the error message, or `None` for
    /// MLflow's default message about an invalid value. A hint to the API docs is appended to the
    /// message.
    Custom(fn(&Value) -> Result<(), Option<String>>),
}

impl Check {
    /// Checks whether this is a type check. Type checks are skipped if protobuf was able to parse
    /// the whole request.
    const fn is_of_type(self) -> bool {
        matches!(self, Self::Text | Self::Integer | Self::Float | Self::Bool | Self::List | Self::TextItems)
    }

    /// Checks a value. Errors have the form that [`Check::Custom`] describes.
    fn run(self, field: &str, value: &Value) -> Result<(), Option<String>> {
        let passes = match self {
            Self::Required => {
                return if value.is_null() || value == "" {
                    Err(Some(format!("Missing value for required parameter '{field}'.")))
                } else {
                    Ok(())
                };
            }
            Self::Custom(check) => return check(value),
            Self::Text => value.is_string(),
            Self::Integer => match value {
                Value::Number(_) | Value::Bool(_) => true,
                Value::String(text) => python::int(text).is_some(),
                _ => false,
            },
            Self::Float => match value {
                Value::Number(_) | Value::Bool(_) => true,
                Value::String(text) => python::parse_float(text).is_some(),
                _ => false,
            },
            Self::Bool => value.is_boolean(),
            Self::List => value.is_array(),
            Self::TextItems => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
        };
        if passes { Ok(()) } else { Err(None) }
    }
}

/// Runs the checks of an endpoint. `fitted` is `true` if protobuf was able to parse the whole
/// request.
pub(crate) fn run(checks: &[FieldChecks], request: &Map<String, Value>, fitted: bool) -> Result<()> {
    for (field, checks) in checks {
        let required = checks.iter().any(|check| matches!(check, Check::Required));
        if !request.contains_key(*field) && !required {
            continue;
        }
        let mut value = request.get(*field).unwrap_or(&Value::Null);
        if *field == "run_id" && value.is_null() {
            value = request.get("run_uuid").unwrap_or(&Value::Null);
        }
        for check in *checks {
            if check.is_of_type() && fitted {
                continue;
            }
            check.run(field, value).map_err(|message| {
                let message = message.unwrap_or_else(|| {
                    let hint = format!(" Hint: Value was of type '{}'.", python::type_name(value));
                    invalid_value(field, value, &hint)
                });
                Error::invalid(format!("{message} See the API docs for more information about request parameters."))
            })?;
        }
    }
    Ok(())
}

/// Checks that a number, or a text that represents one, is at most `limit`.
pub fn at_most(value: &Value, limit: i64) -> Result<(), Option<String>> {
    if as_integer(value).is_some_and(|number| number <= limit) { Ok(()) } else { Err(None) }
}

/// Converts a value like Python's `int`, or returns `None` if Python fails. Numbers that do not fit
/// into 64 bits are converted to the nearest number that does.
#[must_use]
pub fn as_integer(value: &Value) -> Option<i64> {
    match value {
        // Saturation keeps floats beyond 64 bits on the same side of every limit.
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|float| float.trunc() as i64)),
        Value::String(text) => {
            let digits = python::int(text)?;
            let beyond = if digits.starts_with('-') { i64::MIN } else { i64::MAX };
            Some(digits.parse().unwrap_or(beyond))
        }
        Value::Bool(value) => Some(i64::from(*value)),
        _ => None,
    }
}

/// Returns MLflow's sentence about an invalid value.
#[must_use]
pub fn invalid_value(path: &str, value: &Value, reason: &str) -> String {
    format!("Invalid value {} for parameter '{path}' supplied: {reason}", python::json(value))
}
