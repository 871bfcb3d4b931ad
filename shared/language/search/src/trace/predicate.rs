//! Conditions in filters of traces.

use mlflow_api::Result;
use mlflow_api::json::unescaped;
use mlflow_api::python::json_spaced;
use serde_json::Value;

use super::value_tests::{NumberTest, TraceKeyTest, TraceTextTest, listed};
use crate::filter::Comparator;
use crate::identifier::between;
use crate::literals::{FilterLiteral, FilterNumber};

/// A condition on a trace. A missing value only meets the condition IS NULL.
#[derive(Clone, Debug, PartialEq)]
pub enum TracePredicate {
    /// A condition on a text attribute.
    Text {
        /// The attribute.
        attribute: TraceText,
        /// The test of its value.
        test: TraceTextTest,
    },
    /// A condition on a numeric attribute.
    Number {
        /// The attribute.
        attribute: TraceNumber,
        /// The test of its value.
        test: NumberTest,
    },
    /// A condition on a tag.
    Tag {
        /// The name of the tag.
        key: String,
        /// The test of the tag.
        test: TraceKeyTest,
    },
    /// A condition on an entry of the metadata.
    Metadata {
        /// The name of the entry.
        key: String,
        /// The test of the entry.
        test: TraceKeyTest,
    },
    /// The run in which the trace was created, or to which it is linked.
    Run(String),
    /// The prompt to which the trace is linked, as `name/version`.
    Prompt(String),
    /// The issue to which the trace refers.
    Issue(String),
    /// The presence or absence of an assessment.
    Assessment(AssessmentPredicate),
}

/// The text attributes of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceText {
    /// The id.
    Id,
    /// The state.
    State,
    /// The id that the client assigned to the request.
    ClientRequestId,
}

impl TraceText {
    pub(super) fn parse(key: &str) -> Option<Self> {
        match key {
            "request_id" => Some(Self::Id),
            "status" => Some(Self::State),
            "client_request_id" => Some(Self::ClientRequestId),
            _ => None,
        }
    }
}

/// The numeric attributes of a trace, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceNumber {
    /// The time when the trace began.
    RequestTime,
    /// The duration.
    Duration,
    /// The end time, or the start time if the duration is unknown.
    EndTime,
}

impl TraceNumber {
    pub(super) fn parse(key: &str) -> Option<Self> {
        match key {
            "timestamp_ms" => Some(Self::RequestTime),
            "execution_time_ms" => Some(Self::Duration),
            "end_time_ms" => Some(Self::EndTime),
            _ => None,
        }
    }
}

/// A condition on a span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanPredicate {
    /// The field of the span.
    pub field: SpanField,
    /// The test of its value.
    pub test: TraceTextTest,
    /// A second test, for conditions on the content, that is applied to the stored JSON with its
    /// escapes. The condition is met if either test passes.
    pub json: Option<TraceTextTest>,
}

/// The fields that spans can be searched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanField {
    /// The name.
    Name,
    /// The type.
    Kind,
    /// The status code.
    Status,
    /// The complete span, as the JSON that MLflow stores, but with its escapes resolved
    /// ([`mlflow_api::json::unescaped`]).
    Content,
}

impl SpanPredicate {
    /// Creates the condition for a key and a comparator that have already been checked. As in
    /// MLflow, attributes are searched for in the content of the span.
    ///
    /// MLflow compares the JSON with its escapes. A pattern that contains a backslash may have been
    /// written to match escapes, so it is also compared with the JSON in which escapes are not
    /// resolved.
    pub(super) fn new(key: &str, comparator: &str, value: Option<FilterLiteral>) -> Result<Self> {
        let field = match key {
            "name" => SpanField::Name,
            "type" => SpanField::Kind,
            "status" => SpanField::Status,
            _ => SpanField::Content,
        };
        let Some(attribute) = key.strip_prefix("attributes.") else {
            let test = TraceTextTest::new(comparator, value)?;
            let json = (field == SpanField::Content && test.has_backslash()).then(|| test.clone());
            return Ok(Self { field, test, json });
        };
        let attribute = between(attribute, '`').unwrap_or(attribute);
        let value = match value {
            // MLflow inserts the list into the pattern as if it were a text, formatted like a
            // Python tuple.
            Some(FilterLiteral::List(texts)) if !comparator.ends_with("IN") => {
                Some(FilterLiteral::Text(listed(&texts)))
            }
            value => value,
        };
        match value {
            Some(FilterLiteral::Text(text)) if comparator == "RLIKE" => {
                let expression = |written| TraceTextTest::new(comparator, Some(FilterLiteral::Text(written)));
                let json = Some(expression(json_expression(attribute, &text))?);
                Ok(Self { field, test: expression(content_expression(attribute, &text))?, json })
            }
            Some(FilterLiteral::Text(pattern)) => {
                let test =
                    TraceTextTest::new(comparator, Some(FilterLiteral::Text(format!("%\"{attribute}\"{pattern}%"))))?;
                let json = test.has_backslash().then(|| test.clone());
                Ok(Self { field, test, json })
            }
            _ => Ok(Self { field, test: TraceTextTest::new(comparator, None)?, json: None }),
        }
    }
}

/// Returns the regular expression that finds the value of an attribute in the JSON of a span, in
/// which the quotes of the value are escaped.
fn json_expression(attribute: &str, written: &str) -> String {
    let (begins, written) = written.strip_prefix('^').map_or(("\"\\\\\".*", written), |rest| ("\"\\\\\"", rest));
    let (ends, written) = written.strip_suffix('$').map_or(("", written), |rest| ("\\\\\"", rest));
    format!("\"{attribute}\": {begins}{written}{ends}")
}

/// Returns the regular expression that finds the value of an attribute in the content of a span. In
/// the content, escapes are resolved, so it contains plain quotes and line breaks.
fn content_expression(attribute: &str, written: &str) -> String {
    let (begins, written) = written.strip_prefix('^').map_or(("\"\"(?s:.*)", written), |rest| ("\"\"", rest));
    let (ends, written) = written.strip_suffix('$').map_or(("", written), |rest| ("\"\"", rest));
    format!("\"{attribute}\": {begins}{written}{ends}")
}

/// A condition on the assessments of a trace, or on those of its session.
#[derive(Clone, Debug, PartialEq)]
pub struct AssessmentPredicate {
    /// The kind of the assessment.
    pub kind: AssessmentKind,
    /// The name.
    pub name: String,
    /// The test of the value.
    pub test: AssessmentTest,
}

/// The kinds of assessments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssessmentKind {
    /// Feedback.
    Feedback,
    /// An expectation.
    Expectation,
    /// A reference to an issue, whose id is the name of the assessment.
    Issue,
}

/// A test of the value of an assessment.
#[derive(Clone, Debug, PartialEq)]
pub enum AssessmentTest {
    /// The trace has an assessment of this kind and name.
    Present,
    /// The trace has no assessment of this kind and name.
    Absent,
    /// The value is a number that passes this comparison.
    Number(Comparator, FilterNumber),
    /// The JSON of the value is this text, or is the JSON string that represents this text.
    Equal(String),
    /// The JSON of the value is neither this text, nor the JSON string that represents this text.
    NotEqual(String),
    /// The JSON of the value passes the test with its escapes resolved. If the test contains a
    /// backslash, it is also sufficient that the JSON passes with its escapes.
    Json(TraceTextTest),
}

impl AssessmentPredicate {
    pub(super) fn new(
        kind: AssessmentKind,
        name: String,
        comparator: &str,
        value: Option<FilterLiteral>,
    ) -> Result<Self> {
        let test = match (comparator, value) {
            ("IS NULL", _) => AssessmentTest::Absent,
            ("IS NOT NULL", _) => AssessmentTest::Present,
            ("=", Some(FilterLiteral::Text(text))) => AssessmentTest::Equal(text),
            ("!=", Some(FilterLiteral::Text(text))) => AssessmentTest::NotEqual(text),
            (comparator, Some(FilterLiteral::Number(number)))
                if let Some(comparator) = Comparator::parse(comparator) =>
            {
                AssessmentTest::Number(comparator, number)
            }
            (comparator, value) => AssessmentTest::Json(TraceTextTest::new(comparator, value)?),
        };
        Ok(Self { kind, name, test })
    }
}

impl AssessmentTest {
    /// Checks whether a value passes, given its JSON, and the value as a number if it is one. For
    /// `IS NULL`, the result is that of `IS NOT NULL`, and the caller negates it.
    pub(super) fn passes(&self, json: &str, number: Option<f64>) -> bool {
        let is = |text: &str| json == text || json == json_spaced(&Value::String(text.to_owned()));
        match self {
            Self::Present | Self::Absent => true,
            Self::Number(comparator, value) => {
                number.is_some_and(|stored| comparator.holds(value.compare_float(stored)))
            }
            Self::Equal(text) => is(text),
            Self::NotEqual(text) => !is(text),
            Self::Json(test) => test.passes(&unescaped(json)) || (test.has_backslash() && test.passes(json)),
        }
    }
}
