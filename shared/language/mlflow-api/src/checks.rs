//! The checks an endpoint makes of its request's fields, and their messages (`_validate_request_json_with_schema` in MLflow's
//! `handlers.py`).

use serde_json::{Map, Value};

use crate::python;
use crate::{Error, Result};

/// The checks of one field, in their order.
pub type FieldChecks = (&'static str, &'static [Check]);

/// A check of a field's JSON value.
#[derive(Clone, Copy)]
pub enum Check {
    /// It was sent and is not the empty string.
    Required,
    /// It is a string.
    Text,
    /// It reads as an integer.
    Integer,
    /// It reads as a float.
    Float,
    /// It is a bool.
    Bool,
    /// It is a list.
    List,
    /// Its elements are strings.
    TextItems,
    /// Something of this endpoint alone; the error is the message without its last sentence, `None` for the usual one.
    Custom(fn(&Value) -> Result<(), Option<String>>),
}

impl Check {
    /// Type checks are skipped where protobuf could read the whole request.
    const fn is_of_type(self) -> bool {
        matches!(self, Self::Text | Self::Integer | Self::Float | Self::Bool | Self::List | Self::TextItems)
    }

    /// Whether the value passes; the error as in [`Check::Custom`].
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

/// Runs an endpoint's checks; `fitted` says whether protobuf could read the whole request.
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

/// A check that a number, or a text that reads as one, is not too great.
pub fn at_most(value: &Value, limit: i64) -> Result<(), Option<String>> {
    if as_integer(value).is_some_and(|number| number <= limit) { Ok(()) } else { Err(None) }
}

/// The result of Python's `int` for a value, if there is one; beyond 64 bits, the greatest or least
/// of them.
#[must_use]
pub fn as_integer(value: &Value) -> Option<i64> {
    match value {
        // As great as a float may be, in 64 bits it stays on its side of every limit.
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

/// MLflow's sentence about a value it refuses.
#[must_use]
pub fn invalid_value(path: &str, value: &Value, reason: &str) -> String {
    format!("Invalid value {} for parameter '{path}' supplied: {reason}", python::json(value))
}
