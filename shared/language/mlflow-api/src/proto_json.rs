//! The parts of protobuf's JSON format other than plain fields: the two names of each field, times,
//! and durations.

use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::python::int;

/// The times that protobuf can print, in ms: the years 1 to 9999.
const TIMES_MS: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;
/// The durations that protobuf can print, in ms: up to 10,000 years in either direction.
const DURATIONS_MS: std::ops::RangeInclusive<i64> = -315_576_000_000_000..=315_576_000_000_000;

/// Returns a field by either of its names, or `None` if it was not sent or is null.
#[must_use]
pub fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let found = object.get(name).or_else(|| object.get(&camel_case(name)));
    found.filter(|value| !value.is_null())
}

/// Returns a text field, if it was sent.
#[must_use]
pub fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    field(object, name)?.as_str()
}

/// Returns a message field, if it was sent.
#[must_use]
pub fn message<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    field(object, name)?.as_object()
}

/// Returns the entries of a map of texts.
#[must_use]
pub fn texts(object: &Map<String, Value>, name: &str) -> Vec<(String, String)> {
    let entries = message(object, name).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Returns protobuf's JSON name of a field.
fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut characters = part.chars();
        camel.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        camel.extend(characters);
    }
    camel
}

/// Converts a path of a `FieldMask`, which is in camel case in JSON, to the name of the field.
#[must_use]
pub fn snake_case(path: &str) -> String {
    let mut snake = String::with_capacity(path.len() + 4);
    for character in path.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// Checks whether protobuf can print a time, which is given in ms.
#[must_use]
pub fn is_time(ms: i64) -> bool {
    TIMES_MS.contains(&ms)
}

/// Formats a time, given in ms, like protobuf. A time outside of protobuf's range is replaced with
/// the nearest one in it.
#[must_use]
pub fn time_text(ms: i64) -> String {
    let ms = ms.clamp(*TIMES_MS.start(), *TIMES_MS.end());
    let nanos = i128::from(ms) * 1_000_000;
    // The time is within the range of the library.
    let time = OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, clock, millis) = (time.date(), time.time(), time.millisecond());
    let (year, month, day) = date.to_calendar_date();
    let (hour, minute, second) = clock.as_hms();
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z", u8::from(month))
}

/// Parses a time in protobuf's format. Returns ms.
#[must_use]
pub fn parse_time(text: &str) -> Option<i64> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let ms = i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000)).ok()?;
    is_time(ms).then_some(ms)
}

/// Formats a duration, given in ms, like protobuf. A duration outside of protobuf's range is
/// replaced with the nearest one in it.
#[must_use]
pub fn duration_text(ms: i64) -> String {
    let ms = ms.clamp(*DURATIONS_MS.start(), *DURATIONS_MS.end());
    let sign = if ms < 0 { "-" } else { "" };
    let (seconds, millis) = (ms.unsigned_abs() / 1_000, ms.unsigned_abs() % 1_000);
    if millis == 0 { format!("{sign}{seconds}s") } else { format!("{sign}{seconds}.{millis:03}s") }
}

/// Parses a duration in protobuf's format. Returns ms.
///
/// The fraction may have any number of digits. It is rounded to nanoseconds, as in Python's
/// protobuf, and then truncated to ms. The seconds are parsed like Python's `int`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('s')?;
    let sign = if digits.starts_with('-') { -1 } else { 1 };
    let (seconds, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds: i64 = int(seconds)?.parse::<i64>().ok()?.checked_mul(sign).filter(|seconds| *seconds >= 0)?;
    let ten: i64 = format!("{fraction:0<10}").get(..10)?.parse().ok()?;
    let ms = seconds.checked_mul(1_000)?.checked_add((ten + 5) / 10 / 1_000_000)? * sign;
    DURATIONS_MS.contains(&ms).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_printed() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2025-04-15T08:49:18.699Z", 1_744_706_958_699),
            ("1969-12-31T23:59:59.999Z", -1),
            ("0001-01-01T00:00:00Z", -62_135_596_800_000),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ] {
            assert_eq!(parse_time(text), Some(ms), "{text}");
            assert_eq!(time_text(ms), text);
        }
        assert_eq!(parse_time("2025-04-15T10:49:18.699999999+02:00"), Some(1_744_706_958_699));
        assert_eq!((parse_time(""), parse_time("yesterday")), (None, None));
        assert_eq!(time_text(i64::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn durations_are_read_and_printed() {
        for (text, ms) in [("0s", 0), ("1.500s", 1_500), ("-0.007s", -7), ("86400s", 86_400_000)] {
            assert_eq!(parse_duration(text), Some(ms), "{text}");
            assert_eq!(duration_text(ms), text);
        }
        assert_eq!(parse_duration("1.5s"), Some(1_500));
        for (text, ms) in [
            ("1.123456789s", 1_123),
            ("0.012345678901234s", 12),
            ("-1.0019999s", -1_001),
            ("1.s", 1_000),
            ("+1s", 1_000),
            (" 1_0.5s", 10_500),
            // Durations that are rounded to the nearest nanosecond before they are truncated to ms.
            ("0.0129999999996s", 13),
            ("0.0129999994s", 12),
            ("1.99999999996s", 2_000),
        ] {
            assert_eq!(parse_duration(text), Some(ms), "{text}");
        }
        for text in ["", "s", "1", "1.s5", "1e3s", "-s", ".5s", "--1s", "-+1s", "1.5e1s", "1.-5s", "99999999999999s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn fields_have_two_names() {
        let object = serde_json::json!({"traceId": "a", "span_id": null, "tags": {"k": "v", "n": 1}});
        let object = object.as_object().unwrap();
        assert_eq!((text(object, "trace_id"), text(object, "span_id")), (Some("a"), None));
        assert_eq!(texts(object, "tags"), [("k".to_owned(), "v".to_owned())]);
        assert_eq!(snake_case("assessmentName"), "assessment_name");
    }
}
