//! The conditions that filters of traces are made of.

use mlflow_api::Result;
use mlflow_api::json::unescaped;
use mlflow_api::python::json_spaced;
use serde_json::Value;

use super::test::{KeyTest, NumberTest, Test, listed};
use crate::filter::Comparator;
use crate::identifier::between;
use crate::value::{Literal, Number};

/// A condition on a trace. A missing value passes none but IS NULL.
#[derive(Clone, Debug, PartialEq)]
pub enum TracePredicate {
    /// On an attribute that is a text.
    Text {
        /// Which.
        attribute: TraceText,
        /// The test of it.
        test: Test,
    },
    /// On an attribute that is a number.
    Number {
        /// Which.
        attribute: TraceNumber,
        /// The test of it.
        test: NumberTest,
    },
    /// On a tag.
    Tag {
        /// The tag's name.
        key: String,
        /// The test of its value.
        test: KeyTest,
    },
    /// On metadata.
    Metadata {
        /// Its name.
        key: String,
        /// The test of its value.
        test: KeyTest,
    },
    /// The trace is of this run, or was linked to it.
    Run(String),
    /// It was linked to this prompt, by name and version.
    Prompt(String),
    /// It refers to this issue.
    Issue(String),
    /// It has, or lacks, such an assessment.
    Assessment(AssessmentPredicate),
}

/// A trace's attributes that are texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceText {
    /// The id.
    Id,
    /// The state.
    State,
    /// The id that the client gave it.
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

/// A trace's attributes that are numbers, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceNumber {
    /// When it began.
    RequestTime,
    /// How long it took.
    Duration,
    /// When it ended; when it began, if that is not known.
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
    /// The test of it.
    pub test: Test,
    /// Of the content: the test of the JSON itself. The predicate is met if either test passes.
    pub json: Option<Test>,
}

/// The fields that spans are searched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanField {
    /// The name.
    Name,
    /// The type.
    Kind,
    /// The code of the status.
    Status,
    /// All of it: the JSON that MLflow keeps, without its escapes ([`mlflow_api::json::unescaped`]).
    Content,
}

impl SpanPredicate {
    /// The condition that a checked key and comparator make. An attribute is looked for in the
    /// span's content, as MLflow does.
    ///
    /// MLflow compares the JSON with its escapes. A pattern with a backslash may be written for
    /// that, so it is compared with the JSON, too.
    pub(super) fn new(key: &str, comparator: &str, value: Option<Literal>) -> Result<Self> {
        let field = match key {
            "name" => SpanField::Name,
            "type" => SpanField::Kind,
            "status" => SpanField::Status,
            _ => SpanField::Content,
        };
        let Some(attribute) = key.strip_prefix("attributes.") else {
            let test = Test::new(comparator, value)?;
            let json = (field == SpanField::Content && test.has_backslash()).then(|| test.clone());
            return Ok(Self { field, test, json });
        };
        let attribute = between(attribute, '`').unwrap_or(attribute);
        let value = match value {
            // MLflow fails to make a list of its pattern.
            Some(Literal::List(texts)) if !comparator.ends_with("IN") => Some(Literal::Text(listed(&texts))),
            value => value,
        };
        match value {
            Some(Literal::Text(text)) if comparator == "RLIKE" => {
                let expression = |written| Test::new(comparator, Some(Literal::Text(written)));
                let json = Some(expression(json_expression(attribute, &text))?);
                Ok(Self { field, test: expression(content_expression(attribute, &text))?, json })
            }
            Some(Literal::Text(pattern)) => {
                let test = Test::new(comparator, Some(Literal::Text(format!("%\"{attribute}\"{pattern}%"))))?;
                let json = test.has_backslash().then(|| test.clone());
                Ok(Self { field, test, json })
            }
            _ => Ok(Self { field, test: Test::new(comparator, None)?, json: None }),
        }
    }
}

/// The expression that finds an attribute's value in the span's JSON, where it is in escaped
/// quotes.
fn json_expression(attribute: &str, written: &str) -> String {
    let (begins, written) = written.strip_prefix('^').map_or(("\"\\\\\".*", written), |rest| ("\"\\\\\"", rest));
    let (ends, written) = written.strip_suffix('$').map_or(("", written), |rest| ("\\\\\"", rest));
    format!("\"{attribute}\": {begins}{written}{ends}")
}

/// The expression that finds an attribute's value in the span's content, where its quotes are not
/// escaped, and line breaks are themselves.
fn content_expression(attribute: &str, written: &str) -> String {
    let (begins, written) = written.strip_prefix('^').map_or(("\"\"(?s:.*)", written), |rest| ("\"\"", rest));
    let (ends, written) = written.strip_suffix('$').map_or(("", written), |rest| ("\"\"", rest));
    format!("\"{attribute}\": {begins}{written}{ends}")
}

/// A condition on the assessments of a trace, or on those of its session.
#[derive(Clone, Debug, PartialEq)]
pub struct AssessmentPredicate {
    /// Which kind.
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
    /// A reference to an issue, whose id is its name.
    Issue,
}

/// A test of an assessment's value.
#[derive(Clone, Debug, PartialEq)]
pub enum AssessmentTest {
    /// There is one.
    Present,
    /// There is none.
    Absent,
    /// It is a number like this.
    Number(Comparator, Number),
    /// Its JSON is this text, or that of this text.
    Equal(String),
    /// Its JSON is neither.
    NotEqual(String),
    /// Its JSON, without escapes, is like this.
    Json(Test),
}

impl AssessmentPredicate {
    pub(super) fn new(kind: AssessmentKind, name: String, comparator: &str, value: Option<Literal>) -> Result<Self> {
        let test = match (comparator, value) {
            ("IS NULL", _) => AssessmentTest::Absent,
            ("IS NOT NULL", _) => AssessmentTest::Present,
            ("=", Some(Literal::Text(text))) => AssessmentTest::Equal(text),
            ("!=", Some(Literal::Text(text))) => AssessmentTest::NotEqual(text),
            (comparator, Some(Literal::Number(number))) if let Some(comparator) = Comparator::parse(comparator) => {
                AssessmentTest::Number(comparator, number)
            }
            (comparator, value) => AssessmentTest::Json(Test::new(comparator, value)?),
        };
        Ok(Self { kind, name, test })
    }
}

impl AssessmentTest {
    /// Whether a value passes: its JSON, and the number that it is. IS NULL asks which there are, as IS NOT NULL does.
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
