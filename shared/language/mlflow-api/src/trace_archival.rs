//! The archival of traces, as MLflow configures it: by tags of an experiment, and by a retention
//! and a location for a workspace or the server.

use serde_json::{Map, Value};

use crate::json::read_value;
use crate::{Error, Result};

/// The experiment tag with the age at which traces are archived, such as
/// `{"type":"duration","value":"30d"}`.
pub const ARCHIVAL_RETENTION_TAG: &str = "mlflow.trace.archivalRetention";
/// The experiment tag that requests the archival of traces at once. Its value is `{}`, or
/// `{"older_than":"1d"}` for traces of at least this age.
pub const ARCHIVE_NOW_TAG: &str = "mlflow.trace.archiveNow";

/// Maximum length of a retention in characters (`MAX_TRACE_ARCHIVAL_RETENTION_LENGTH`).
const MAX_RETENTION_LENGTH: usize = 32;
/// The units, and their lengths in ms.
const UNITS: [(char, i64); 3] = [('m', 60_000), ('h', 3_600_000), ('d', 86_400_000)];

/// The age at which traces are archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivalRetention {
    text: String,
    ms: i64,
}

impl ArchivalRetention {
    /// Parses a retention such as `30d`, `12h` or `90m` (`_validate_trace_archival_retention_string`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        if is_too_long(text) {
            return Err(Error::invalid("Trace archival duration must be at most 32 characters."));
        }
        Self::read(text).ok_or_else(malformed)
    }

    /// Parses a retention like [`ArchivalRetention::parse`]. Errors contain the name of the field.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for any other text.
    pub fn parse_field(field: &str, text: &str) -> Result<Self> {
        if is_too_long(text) {
            return Err(Error::invalid(format!(
                "Invalid value for '{field}'. Maximum length is {MAX_RETENTION_LENGTH} characters."
            )));
        }
        Self::read(text).ok_or_else(|| {
            Error::invalid(format!(
                "Invalid value for '{field}'. Expected a duration in the form `<int><unit>`, where unit is one of 'm', 'h', \
                 or 'd' (for example '30d' or '12h')."
            ))
        })
    }

    /// Parses the value of the tag [`ARCHIVAL_RETENTION_TAG`].
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the value is malformed.
    pub fn of_tag(value: &str) -> Result<Self> {
        const TYPE: &str = "duration";
        let config = object_in(value)?;
        if config.get("type").and_then(Value::as_str) != Some(TYPE) {
            return Err(Error::invalid(format!("Trace archival config must use type '{TYPE}'.")));
        }
        config.get("value").and_then(Value::as_str).map_or_else(|| Err(malformed()), Self::parse)
    }

    /// Returns the text, without surrounding space.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the duration in ms. A duration that overflows is returned as the longest one.
    #[must_use]
    pub fn ms(&self) -> i64 {
        self.ms
    }

    /// Returns the value of the tag [`ARCHIVAL_RETENTION_TAG`] for this retention.
    #[must_use]
    pub fn to_tag(&self) -> String {
        serde_json::json!({ "type": "duration", "value": self.text }).to_string()
    }

    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let (unit, ms) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit))?;
        let digits = text.strip_suffix(unit)?;
        let is_number =
            !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse::<i64>().unwrap_or(i64::MAX);
        is_number.then(|| Self { text: text.to_owned(), ms: number.saturating_mul(ms) })
    }
}

/// A request to archive the traces of an experiment at once: the value of the tag
/// [`ARCHIVE_NOW_TAG`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveNow {
    /// Minimum age of the traces to archive. `None` for all traces.
    pub older_than: Option<ArchivalRetention>,
}

impl ArchiveNow {
    /// Parses the value of the tag.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the value is malformed.
    pub fn of_tag(value: &str) -> Result<Self> {
        let older_than = match object_in(value)?.get("older_than") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(ArchivalRetention::parse(text)?),
            Some(_) => return Err(malformed()),
        };
        Ok(Self { older_than })
    }
}

fn object_in(value: &str) -> Result<Map<String, Value>> {
    match read_value(value.as_bytes()).unwrap_or_default() {
        Value::Object(config) => Ok(config),
        _ => Err(Error::invalid("Trace archival config must be encoded as a JSON object.")),
    }
}

fn is_too_long(text: &str) -> bool {
    text.trim().chars().count() > MAX_RETENTION_LENGTH
}

fn malformed() -> Error {
    Error::invalid("Trace archival retention must be in the form `<int><unit>`, where unit is one of 'm', 'h', or 'd'.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retentions_are_parsed_like_mlflow() {
        for (text, ms) in [("30d", 2_592_000_000), ("12h", 43_200_000), (" 90m ", 5_400_000)] {
            let retention = ArchivalRetention::parse(text).unwrap();
            assert_eq!((retention.as_str(), retention.ms()), (text.trim(), ms));
            assert_eq!(ArchivalRetention::of_tag(&retention.to_tag()).unwrap(), retention);
        }
        let longest = format!("{}d", "9".repeat(31));
        assert_eq!(ArchivalRetention::parse(&longest).unwrap().ms(), i64::MAX);
        for text in ["", "d", "30", "0d", "030d", "-1d", "1.5d", "30 d", "1d2h", "30s", "30D", "off"] {
            assert_eq!(ArchivalRetention::parse(text), Err(malformed()), "{text}");
            let message = ArchivalRetention::parse_field("f", text).unwrap_err().message;
            assert!(message.starts_with("Invalid value for 'f'. Expected a duration"), "{text}: {message}");
        }
        let long = format!("{}d", "9".repeat(32));
        let message = "Trace archival duration must be at most 32 characters.";
        assert_eq!(ArchivalRetention::parse(&long).unwrap_err().message, message);
        let message = "Invalid value for 'f'. Maximum length is 32 characters.";
        assert_eq!(ArchivalRetention::parse_field("f", &long).unwrap_err().message, message);
    }

    #[test]
    fn tags_are_parsed_like_mlflow() {
        for (value, older_than) in
            [("{}", None), (r#"{"older_than":null}"#, None), (r#"{"older_than":"1d"}"#, Some("1d"))]
        {
            let read = ArchiveNow::of_tag(value).unwrap();
            assert_eq!(read.older_than.as_ref().map(ArchivalRetention::as_str), older_than, "{value}");
        }
        for value in ["", "1", "[]", r#"{"older_than":1}"#, r#"{"older_than":"soon"}"#] {
            assert!(ArchiveNow::of_tag(value).is_err(), "{value}");
        }
        for value in ["", "30d", "{}", r#"{"value":"30d"}"#, r#"{"type":"duration"}"#, r#"{"type":"x","value":"30d"}"#]
        {
            assert!(ArchivalRetention::of_tag(value).is_err(), "{value}");
        }
    }
}
