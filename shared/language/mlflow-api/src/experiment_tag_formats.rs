//! The experiment tags with a required format. They configure how long traces are kept and how they
//! are archived.

use serde_json::Value;

use crate::json::read_value;
use crate::trace_retention::{TRACE_RETENTION_TAG, TraceRetention};
use crate::{Error, Result};

/// Maximum number of traces on a page of a search.
pub(crate) const SEARCH_RESULTS: i64 = 500;

/// Checks the value of an experiment tag, if the tag requires a format. All other tags pass.
pub(crate) fn experiment_tag(key: &str, value: &str) -> Result<()> {
    let (field, wanted_type) = match key {
        "mlflow.trace.archivalRetention" => ("value", Some("duration")),
        "mlflow.trace.archiveNow" => ("older_than", None),
        TRACE_RETENTION_TAG => return TraceRetention::parse(value).map(|_| ()),
        _ => return Ok(()),
    };
    let config = read_value(value.as_bytes()).unwrap_or_default();
    let Value::Object(config) = config else {
        return Err(Error::invalid("Trace archival config must be encoded as a JSON object."));
    };
    if let Some(wanted) = wanted_type
        && config.get("type").and_then(Value::as_str) != Some(wanted)
    {
        return Err(Error::invalid(format!("Trace archival config must use type '{wanted}'.")));
    }
    match config.get(field) {
        None | Some(Value::Null) if wanted_type.is_none() => Ok(()),
        duration => check_duration(duration.and_then(Value::as_str)),
    }
}

/// Checks a duration of the form `<int><unit>`, where the unit is minutes, hours or days.
fn check_duration(duration: Option<&str>) -> Result<()> {
    let duration = duration.map(str::trim);
    if duration.is_some_and(|text| text.chars().count() > 32) {
        return Err(Error::invalid("Trace archival duration must be at most 32 characters."));
    }
    let well_formed = duration.and_then(|text| text.strip_suffix(['m', 'h', 'd'])).is_some_and(|digits| {
        !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    if well_formed {
        return Ok(());
    }
    let message = "Trace archival retention must be in the form `<int><unit>`, where unit is one of 'm', 'h', or 'd'.";
    Err(Error::invalid(message))
}
