//! Rows of `assessments`.

use mlflow_api::assessments::{Assessment, Judgement};
use mlflow_api::{AssessmentId, Json};
use serde_json::{Map, Value, json};

use crate::Failure;
use crate::transfer::database::Row;

/// The columns, in the order in which [`parse`] reads them. The first two are ids: of the assessment,
/// and of its trace.
pub(super) const COLUMNS: [&str; 15] = [
    "assessment_id",
    "trace_id",
    "name",
    "assessment_type",
    "value",
    "error",
    "created_timestamp",
    "last_updated_timestamp",
    "source_type",
    "source_id",
    "span_id",
    "rationale",
    "overrides",
    "valid",
    "assessment_metadata",
];

/// Returns an assessment as this server stores it, or the reason why this server cannot store it.
pub(super) fn parse(row: &Row) -> Result<Assessment, String> {
    let failed = |failure: Failure| format!("because {failure}");
    let text = |column| row.optional_text(column).map_err(failed);
    if AssessmentId::parse(&text(0)?.unwrap_or_default()).is_none() {
        return Err("because its id is not valid".to_owned());
    }
    let value = text(4)?.unwrap_or_default();
    let mut message = Map::new();
    let kind = text(3)?.unwrap_or_default();
    match kind.as_str() {
        "feedback" => {
            let mut feedback = Map::from_iter([("value".to_owned(), to_value(&value)?)]);
            if let Some(error) = text(5)? {
                feedback.insert("error".to_owned(), to_value(&error)?);
            }
            message.insert(kind, Value::Object(feedback));
        }
        "expectation" => {
            let parsed = to_value(&value)?;
            let expectation = if matches!(parsed, Value::Array(_) | Value::Object(_) | Value::Null) {
                json!({"serialized_value": {"serialization_format": "JSON_FORMAT", "value": value}})
            } else {
                json!({ "value": parsed })
            };
            message.insert(kind, expectation);
        }
        "issue" => drop(message.insert(kind, to_value(&value)?)),
        other => return Err(format!("because their type is {other}")),
    }
    message.insert("assessment_name".to_owned(), text(2)?.into());
    let source = match text(8)?.as_deref() {
        // Earlier versions of MLflow use this name.
        Some("AI_JUDGE") => "LLM_JUDGE".to_owned(),
        other => other.unwrap_or_default().to_owned(),
    };
    message.insert("source".to_owned(), json!({"source_type": source, "source_id": text(9)?}));
    let (_, read) = Assessment::read(&message, 0).map_err(|error| format!("because: {}", error.message))?;
    Ok(Assessment {
        span: text(10)?,
        created: row.integer(6).map_err(failed)?,
        updated: row.integer(7).map_err(failed)?,
        rationale: text(11)?,
        overrides: text(12)?.filter(|id| !id.is_empty()),
        is_valid: row.boolean(13).map_err(failed)?,
        metadata: text(14)?.map(|metadata| to_metadata(&metadata)).unwrap_or_default(),
        ..read
    })
}

/// Parses JSON as Python writes it, which may contain numbers that JSON does not have, such as
/// `NaN`. Returns the reason if the value cannot be stored.
fn to_value(text: &str) -> Result<Value, String> {
    let unreadable = || "because their value is not valid JSON".to_owned();
    convert(&Json::parse(text).ok_or_else(unreadable)?)
}

fn convert(json: &Json) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => (*value).into(),
        Json::Integer(digits) => match digits.parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) => digits.parse::<f64>().map_or(Value::Null, Value::from),
        },
        Json::Float(number) if number.is_finite() => (*number).into(),
        Json::Float(_) => return Err("because their value is not a finite number".to_owned()),
        Json::Text(text) => text.as_str().into(),
        Json::List(items) => items.iter().map(convert).collect::<Result<Value, _>>()?,
        Json::Object(object) => {
            let entries = object.iter().map(|(key, value)| Ok::<_, String>((key.to_owned(), convert(value)?)));
            Value::Object(entries.collect::<Result<_, _>>()?)
        }
    })
}

/// Returns metadata with its values as texts, as Python's `str` prints them.
fn to_metadata(text: &str) -> Vec<(String, String)> {
    let Some(Json::Object(object)) = Json::parse(text) else { return Vec::new() };
    let print = |value: Json| match value {
        Json::Text(text) => text,
        Json::Null => "None".to_owned(),
        Json::Bool(value) => if value { "True" } else { "False" }.to_owned(),
        other => other.print_unicode(),
    };
    object.into_iter().map(|(key, value)| (key, print(value))).collect()
}

/// The columns of an assessment that depend on its judgement.
#[derive(Debug, PartialEq)]
pub(super) struct JudgementColumns {
    /// `feedback`, `expectation` or `issue`.
    pub(super) kind: &'static str,
    /// The value as JSON.
    pub(super) value: String,
    /// The error as JSON.
    pub(super) error: Option<String>,
    /// The value as a number, if it has one.
    pub(super) number: Option<f64>,
    /// Whether the value is a number.
    pub(super) is_number: bool,
}

/// Returns the columns of a judgement.
pub(super) fn columns_of(judgement: &Judgement) -> JudgementColumns {
    let field = judgement.value();
    let (kind, value) = match judgement {
        Judgement::Feedback(_) => ("feedback", field.get("value").cloned().unwrap_or_default()),
        Judgement::Expectation(_) => match field.pointer("/serialized_value/value").and_then(Value::as_str) {
            Some(serialized) => {
                let (kind, value) = ("expectation", serialized.to_owned());
                return JudgementColumns { kind, value, error: None, number: None, is_number: false };
            }
            None => ("expectation", field.get("value").cloned().unwrap_or_default()),
        },
        Judgement::Issue(_) => ("issue", field.clone()),
    };
    let error = field.get("error").filter(|_| kind == "feedback").map(|error| {
        let part = |name: &str| (name.to_owned(), error.get(name).cloned().unwrap_or_default());
        print(&Value::Object(["error_code", "error_message", "stack_trace"].map(part).into_iter().collect()))
    });
    let number = match &value {
        Value::Bool(value) => Some(if *value { 1.0 } else { 0.0 }),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "yes" => Some(1.0),
            "no" => Some(0.0),
            _ => None,
        },
        _ => None,
    };
    JudgementColumns { kind, value: print(&value), error, number, is_number: value.is_number() }
}

/// Prints JSON as Python does.
pub(super) fn print(value: &Value) -> String {
    let text = value.to_string();
    Json::parse(&text).map_or(text, |json| json.print())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::database::SqlValue;

    fn row(kind: &str, value: &str, error: Option<&str>) -> Row {
        let null = || SqlValue::Null;
        let error = error.map_or_else(null, SqlValue::from);
        let times = [SqlValue::Integer(5), SqlValue::Integer(6)];
        let [created, updated] = times;
        let (text, valid) = (|text: &str| SqlValue::from(text), SqlValue::Integer(0));
        let metadata = text(r#"{"b": 1, "a": "é"}"#);
        let ids = [text("a-1"), text("tr-1"), text("name"), text(kind), text(value)];
        let rest =
            [error, created, updated, text("AI_JUDGE"), text("m"), null(), text("why"), text("a-0"), valid, metadata];
        Row(ids.into_iter().chain(rest).collect())
    }

    #[test]
    fn rows_are_read_and_written_as_they_were() {
        let error = r#"{"error_code": "E", "error_message": "\u00e9", "stack_trace": null}"#;
        for (kind, value, error) in [
            ("feedback", "0.5", None),
            ("feedback", "\"yes\"", Some(error)),
            ("feedback", "{\"a\": [true, null]}", None),
            ("expectation", "\"x\"", None),
            ("expectation", "[1, {\"a\": 2}]", None),
            ("issue", "{\"issue_name\": \"slow\"}", None),
        ] {
            let read = parse(&row(kind, value, error)).unwrap();
            assert_eq!(
                (read.created, read.updated, read.is_valid, read.overrides.as_deref()),
                (5, 6, false, Some("a-0"))
            );
            assert_eq!((read.source.0.as_str(), read.rationale.as_deref()), ("LLM_JUDGE", Some("why")), "{kind}");
            assert_eq!(read.metadata[0], ("b".to_owned(), "1".to_owned()));
            let columns = columns_of(&read.judgement);
            assert_eq!((columns.kind, columns.value.as_str(), columns.error.as_deref()), (kind, value, error));
            assert_eq!(Assessment::from_stored(&read.to_stored().to_string()), Some(read));
        }
        assert_eq!(columns_of(&parse(&row("feedback", "\"No \"", None)).unwrap().judgement).number, Some(0.0));
        assert!(parse(&row("feedback", "NaN", None)).unwrap_err().contains("finite"));
        assert!(parse(&row("opinion", "1", None)).is_err());
    }
}
