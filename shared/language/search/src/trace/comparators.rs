//! The comparators that are valid for each field of a trace.

use mlflow_api::{Error, Result};

use super::identifier::TraceFieldFamily;
use super::value_tests::listed;
use crate::literals::FilterLiteral;
use crate::python_repr;

const KEYED: [&str; 7] = ["!=", "=", "ILIKE", "IS NOT NULL", "IS NULL", "LIKE", "RLIKE"];
const TEXTS: [&str; 7] = ["!=", "=", "ILIKE", "IN", "LIKE", "NOT IN", "RLIKE"];
const NUMBERS: [&str; 6] = ["!=", "<", "<=", "=", ">", ">="];
const CONTENT: [&str; 2] = ["ILIKE", "LIKE"];
const ASSESSMENTS: [&str; 11] = ["!=", "<", "<=", "=", ">", ">=", "ILIKE", "IS NOT NULL", "IS NULL", "LIKE", "RLIKE"];

/// The fields of a span, except its attributes and its content.
const SPAN_FIELDS: [&str; 3] = ["name", "status", "type"];

/// Checks the comparator of a tag. MLflow omits the closing quote in this message.
pub(super) fn tag(comparator: &str) -> Result<()> {
    expect(&KEYED, comparator, |listed| format!("Invalid comparator '{comparator}' not one of '{listed}"))
}

pub(super) fn metadata(comparator: &str) -> Result<()> {
    expect(&KEYED, comparator, |listed| format!("Invalid comparator '{comparator}' not one of '{listed}'"))
}

pub(super) fn text_attribute(comparator: &str) -> Result<()> {
    expect(&TEXTS, comparator, |listed| format!("Invalid comparator '{comparator}' not one of '{listed}'"))
}

/// Checks the comparator of a numeric attribute. MLflow lists the comparators of texts in this
/// message, and omits the closing quote.
pub(super) fn number_attribute(comparator: &str) -> Result<()> {
    let listed = python_repr::set(&TEXTS);
    expect(&NUMBERS, comparator, |_| format!("Invalid comparator '{comparator}' not one of '{listed}"))
}

/// Checks the comparator of a field of spans (`is_span`).
pub(super) fn span(key: &str, comparator: &str) -> Result<()> {
    let refusal = |listed: String| format!("span.{key} comparator '{comparator}' not one of '{listed}'");
    match key.strip_prefix("attributes.") {
        Some("") => Err(Error::invalid("Span attribute name cannot be empty after 'attributes.'")),
        Some(_) => expect(&TEXTS, comparator, refusal),
        None if SPAN_FIELDS.contains(&key) => expect(&TEXTS, comparator, refusal),
        None if key == "content" => expect(&CONTENT, comparator, refusal),
        None => Err(Error::invalid(format!(
            "Invalid span attribute '{key}'. Supported attributes: {}, attributes.<attribute_name>.",
            SPAN_FIELDS.join(", ")
        ))),
    }
}

/// Checks the comparator of an assessment (`is_assessment`).
pub(super) fn assessment(name: &str, comparator: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("Assessment field name cannot be empty"));
    }
    let refusal = |listed| format!("assessment.{name} comparator '{comparator}' not one of '{listed}'");
    expect(&ASSESSMENTS, comparator, refusal)
}

/// Checks the comparator of an issue (`is_issue`).
pub(super) fn issue(key: &str, comparator: &str) -> Result<()> {
    if key != "id" {
        return Err(Error::invalid(format!("Invalid issue attribute '{key}'. Supported attributes: id")));
    }
    expect(&["="], comparator, |listed| format!("issue.{key} comparator '{comparator}' not one of '{listed}'"))
}

/// Checks the comparator of a metadata entry that MLflow stores as a number
/// (`get_trace_analytics_metadata_filter`).
pub(super) fn aggregates(key: &str, comparator: &str) -> Result<()> {
    if matches!(comparator, "=" | "!=" | "IS NULL" | "IS NOT NULL") {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Comparator '{comparator}' is not supported for reserved metadata '{key}'. Only '=', '!=', 'IS NULL', and \
         'IS NOT NULL' are supported."
    )))
}

/// Returns the prompt that a condition on linked prompts names. The condition must name a single
/// prompt, by name and version.
pub(super) fn prompt(comparator: &str, value: Option<FilterLiteral>) -> Result<String> {
    if comparator != "=" {
        return Err(Error::invalid(format!(
            "Invalid comparator '{comparator}' for prompts filter. Only '=' is supported with format: prompt = \
             \"name/version\""
        )));
    }
    let written = match value {
        Some(FilterLiteral::Text(text)) if text.matches('/').count() == 1 => return Ok(text),
        Some(FilterLiteral::Text(text)) => text,
        Some(FilterLiteral::List(texts)) => listed(&texts),
        Some(FilterLiteral::Number(_)) | None => String::new(),
    };
    let message = format!("Invalid prompts filter value '{written}'. Expected format: prompt = \"name/version\"");
    Err(Error::invalid(message))
}

/// Rejects kinds of fields that traces cannot be sorted by.
pub(super) fn order(family: TraceFieldFamily) -> Result<()> {
    match family {
        TraceFieldFamily::Attribute | TraceFieldFamily::Tag | TraceFieldFamily::Metadata => Ok(()),
        _ => Err(Error::invalid(format!("Invalid identifier type '{family}'"))),
    }
}

fn expect(valid: &[&str], comparator: &str, refusal: impl FnOnce(String) -> String) -> Result<()> {
    if valid.contains(&comparator) { Ok(()) } else { Err(Error::invalid(refusal(python_repr::set(valid)))) }
}
