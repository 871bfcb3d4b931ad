//! Assessments of traces, which are feedback, expectations, and references to issues
//! (`assessments.proto` and `assessment.py`).

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::json::{Json, read_value};
use crate::proto_json::{field, message, parse_time, text, texts, time_text};
use crate::{AssessmentId, Error, Result, TraceId};

/// Maximum length, in characters, of the stack trace of an error. A longer stack trace is cut off
/// at the front and begins with [`STACK_TRACE_CUT`].
const MAX_STACK_TRACE_LENGTH: usize = 10_000;
const STACK_TRACE_CUT: &str = "[Stack trace is truncated]\n...\n";
/// The description of an expectation in error messages.
const EXPECTATION_DESCRIPTION: &str = "The value of an expectation";
/// The kinds of sources of an assessment.
const SOURCE_TYPES: [&str; 4] = ["SOURCE_TYPE_UNSPECIFIED", "HUMAN", "LLM_JUDGE", "CODE"];

/// The judgement of an assessment. Each variant contains the value of its field in the response.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// An opinion about the trace.
    Feedback(Value),
    /// The expected result.
    Expectation(Value),
    /// An issue that the trace exhibits.
    Issue(Value),
}

impl Judgement {
    /// Returns the name of the field.
    const fn name(&self) -> &'static str {
        match self {
            Self::Feedback(_) => "feedback",
            Self::Expectation(_) => "expectation",
            Self::Issue(_) => "issue",
        }
    }

    /// Returns the value of the field.
    #[must_use]
    pub const fn value(&self) -> &Value {
        match self {
            Self::Feedback(value) | Self::Expectation(value) | Self::Issue(value) => value,
        }
    }

    /// Reads the judgement from the message of an assessment.
    fn read(assessment: &Map<String, Value>) -> Result<Self> {
        if let Some(feedback) = message(assessment, "feedback") {
            let mut value = Map::new();
            value.insert("value".to_owned(), as_doubles(feedback.get("value").unwrap_or(&Value::Null)));
            if let Some(error) = message(feedback, "error") {
                value.insert("error".to_owned(), error_json(error));
            }
            return Ok(Self::Feedback(Value::Object(value)));
        }
        if let Some(expectation) = message(assessment, "expectation") {
            return expectation_json(expectation).map(Self::Expectation);
        }
        match message(assessment, "issue") {
            Some(issue) => Ok(Self::Issue(json!({"issue_name": text(issue, "issue_name").unwrap_or_default()}))),
            None => Err(Error::invalid("Unknown assessment type: None")),
        }
    }
}

/// Converts a value as protobuf's type `Value` does, in which all numbers are doubles.
fn as_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.iter().map(as_doubles).collect(),
        Value::Object(entries) => entries.iter().map(|(key, value)| (key.clone(), as_doubles(value))).collect(),
        other => other.clone(),
    }
}

fn error_json(error: &Map<String, Value>) -> Value {
    let mut printed = Map::new();
    printed.insert("error_code".to_owned(), text(error, "error_code").unwrap_or_default().into());
    if let Some(message) = text(error, "error_message").filter(|message| !message.is_empty()) {
        printed.insert("error_message".to_owned(), message.into());
    }
    if let Some(stack) = text(error, "stack_trace").filter(|stack| !stack.is_empty()) {
        let characters = stack.chars().count();
        let stack = if characters > MAX_STACK_TRACE_LENGTH {
            let kept = MAX_STACK_TRACE_LENGTH - STACK_TRACE_CUT.chars().count();
            let end: String = stack.chars().skip(characters - kept).collect();
            format!("{STACK_TRACE_CUT}{end}")
        } else {
            stack.to_owned()
        };
        printed.insert("stack_trace".to_owned(), stack.into());
    }
    Value::Object(printed)
}

/// Returns the JSON of an expectation. A value that is not a scalar is stored as JSON in a text.
fn expectation_json(expectation: &Map<String, Value>) -> Result<Value> {
    let json = match message(expectation, "serialized_value") {
        None => {
            let value = as_doubles(expectation.get("value").unwrap_or(&Value::Null));
            if matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_)) {
                return Ok(json!({ "value": value }));
            }
            Json::of(EXPECTATION_DESCRIPTION, &value.to_string())?
        }
        Some(serialized) => {
            let format = text(serialized, "serialization_format").unwrap_or_default();
            if format != "JSON_FORMAT" {
                return Err(Error::invalid(format!(
                    "Unknown serialization format: {format}. Only JSON_FORMAT is supported."
                )));
            }
            Json::of(EXPECTATION_DESCRIPTION, text(serialized, "value").unwrap_or_default())?
        }
    };
    Ok(match json {
        Json::Null => return Err(Error::invalid("The `value` field must be specified.")),
        Json::Text(text) => json!({ "value": text }),
        Json::Bool(value) => json!({ "value": value }),
        Json::Float(number) => json!({ "value": number }),
        Json::Integer(digits) => json!({"value": digits.parse::<f64>().unwrap_or_default()}),
        other => json!({"serialized_value": {"serialization_format": "JSON_FORMAT", "value": other.print()}}),
    })
}

/// An assessment, without its id and the id of its trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// The name.
    pub name: String,
    /// The id of the span that the assessment refers to, if there is one.
    pub span: Option<String>,
    /// The source: the name of its kind, and its id.
    pub source: (String, Option<String>),
    /// The creation time, in ms.
    pub created: i64,
    /// The time of the last change, in ms.
    pub updated: i64,
    /// The judgement.
    pub judgement: Judgement,
    /// The rationale.
    pub rationale: Option<String>,
    /// The metadata.
    pub metadata: Vec<(String, String)>,
    /// The id of the assessment that this one overrides.
    pub overrides: Option<String>,
    /// Whether no other assessment overrides this one.
    pub is_valid: bool,
}

impl Assessment {
    /// Reads an assessment from the message in a request, with the id if the client has chosen one.
    ///
    /// # Errors
    /// Fails with MLflow's error if the assessment contains no judgement, or cannot be parsed.
    pub fn read(assessment: &Map<String, Value>, now: i64) -> Result<(Option<AssessmentId>, Self)> {
        let sent = |name: &str| text(assessment, name).filter(|text| !text.is_empty()).map(str::to_owned);
        let judgement = Judgement::read(assessment)?;
        let source = message(assessment, "source");
        let kind = source.and_then(|source| match field(source, "source_type")? {
            Value::String(name) => SOURCE_TYPES.into_iter().find(|known| known == name),
            other => SOURCE_TYPES.get(usize::try_from(other.as_u64()?).ok()?).copied(),
        });
        let source_id = source.and_then(|source| text(source, "source_id")).filter(|id| !id.is_empty());
        let time = |name: &str| -> Result<i64> {
            let Some(value) = field(assessment, name) else { return Ok(now) };
            let time = value.as_str().and_then(parse_time);
            let time = time.ok_or_else(|| Error::invalid(format!("The value of '{name}' is not a time.")))?;
            Ok(if time == 0 { now } else { time })
        };
        let (is_feedback, is_expectation) =
            (matches!(judgement, Judgement::Feedback(_)), matches!(judgement, Judgement::Expectation(_)));
        let id = match sent("assessment_id") {
            None => None,
            Some(id) => Some(
                AssessmentId::parse(&id)
                    .ok_or_else(|| Error::invalid("The id of an assessment has more than 50 characters."))?,
            ),
        };
        let read = Self {
            name: text(assessment, "assessment_name").unwrap_or_default().to_owned(),
            span: sent("span_id"),
            source: (kind.unwrap_or(SOURCE_TYPES[0]).to_owned(), source_id.map(str::to_owned)),
            created: time("create_time")?,
            updated: time("last_update_time")?,
            // MLflow ignores both fields in expectations, and `overrides` in everything but
            // feedback.
            rationale: sent("rationale").filter(|_| !is_expectation),
            overrides: sent("overrides").filter(|_| is_feedback),
            metadata: texts(assessment, "metadata"),
            judgement,
            is_valid: true,
        };
        Ok((id, read))
    }

    /// Returns the JSON in which the assessment is stored and returned, without the ids.
    #[must_use]
    pub fn to_stored(&self) -> Value {
        let mut printed = Map::new();
        printed.insert("assessment_name".to_owned(), self.name.as_str().into());
        printed.extend(self.span.iter().map(|span| ("span_id".to_owned(), span.as_str().into())));
        let mut source = json!({ "source_type": self.source.0 });
        if let Some(id) = &self.source.1 {
            source["source_id"] = id.as_str().into();
        }
        printed.insert("source".to_owned(), source);
        printed.insert("create_time".to_owned(), time_text(self.created).into());
        printed.insert("last_update_time".to_owned(), time_text(self.updated).into());
        printed.insert(self.judgement.name().to_owned(), self.judgement.value().clone());
        printed.extend(self.rationale.iter().map(|why| ("rationale".to_owned(), why.as_str().into())));
        if !self.metadata.is_empty() {
            let entries = self.metadata.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
            printed.insert("metadata".to_owned(), Value::Object(entries.collect()));
        }
        printed.extend(self.overrides.iter().map(|id| ("overrides".to_owned(), id.as_str().into())));
        printed.insert("valid".to_owned(), self.is_valid.into());
        Value::Object(printed)
    }

    /// Parses a text that was created by [`Assessment::to_stored`]. Returns `None` for any other text.
    #[must_use]
    pub fn from_stored(stored: &str) -> Option<Self> {
        let Value::Object(stored) = read_value(stored.as_bytes()).ok()? else { return None };
        let source = message(&stored, "source")?;
        let judgement = if let Some(value) = stored.get("feedback") {
            Judgement::Feedback(value.clone())
        } else if let Some(value) = stored.get("expectation") {
            Judgement::Expectation(value.clone())
        } else {
            Judgement::Issue(stored.get("issue")?.clone())
        };
        let owned = |name: &str| text(&stored, name).map(str::to_owned);
        Some(Self {
            name: owned("assessment_name")?,
            span: owned("span_id"),
            source: (text(source, "source_type")?.to_owned(), text(source, "source_id").map(str::to_owned)),
            created: parse_time(text(&stored, "create_time")?)?,
            updated: parse_time(text(&stored, "last_update_time")?)?,
            judgement,
            rationale: owned("rationale"),
            metadata: texts(&stored, "metadata"),
            overrides: owned("overrides"),
            is_valid: stored.get("valid")?.as_bool()?,
        })
    }

    /// Returns the JSON in a response.
    #[must_use]
    pub fn json(&self, trace: &TraceId, id: &AssessmentId) -> Value {
        let mut printed = Map::new();
        printed.insert("assessment_id".to_owned(), id.as_str().into());
        printed.insert("trace_id".to_owned(), trace.as_str().into());
        if let Value::Object(stored) = self.to_stored() {
            printed.extend(stored);
        }
        Value::Object(printed)
    }
}

/// A change of an assessment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssessmentChange {
    /// The new name.
    pub name: Option<String>,
    /// The new feedback.
    pub feedback: Option<Judgement>,
    /// The new expectation.
    pub expectation: Option<Judgement>,
    /// The new rationale.
    pub rationale: Option<String>,
    /// The entries of the metadata to set.
    pub metadata: Vec<(String, String)>,
}

impl AssessmentChange {
    /// Reads a change from a message and the paths of the fields to change (`_update_assessment` in
    /// MLflow's `handlers.py`).
    ///
    /// # Errors
    /// Fails under the same conditions as [`Assessment::read`].
    pub fn read<'a>(assessment: &Map<String, Value>, paths: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut change = Self::default();
        // If a path names a field that was not sent, MLflow reads an empty message.
        let of = |kind: &str| {
            let value = message(assessment, kind).cloned().unwrap_or_default();
            Judgement::read(&Map::from_iter([(kind.to_owned(), Value::Object(value))]))
        };
        for path in paths {
            match path {
                "assessment_name" => {
                    change.name = Some(text(assessment, path).unwrap_or_default().to_owned());
                }
                "expectation" => change.expectation = Some(of(path)?),
                "feedback" => change.feedback = Some(of(path)?),
                "rationale" => change.rationale = Some(text(assessment, path).unwrap_or_default().to_owned()),
                "metadata" => change.metadata = texts(assessment, path),
                _ => {}
            }
        }
        Ok(change)
    }

    /// Applies the change to an assessment.
    ///
    /// # Errors
    /// Fails with MLflow's error if the assessment has a value of a different kind.
    pub fn apply(self, to: &mut Assessment, now: i64) -> Result<()> {
        let is_expectation = matches!(to.judgement, Judgement::Expectation(_));
        if self.expectation.is_some() && self.feedback.is_some() {
            return Err(Error::invalid("Cannot specify both `expectation` and `feedback` parameters."));
        }
        if self.expectation.is_some() && !is_expectation {
            return Err(Error::invalid("Cannot update expectation value on a Feedback assessment."));
        }
        if self.feedback.is_some() && !matches!(to.judgement, Judgement::Feedback(_)) {
            return Err(Error::invalid("Cannot update feedback value on an Expectation assessment."));
        }
        to.name = self.name.unwrap_or_else(|| to.name.clone());
        to.judgement = self.expectation.or(self.feedback).unwrap_or_else(|| to.judgement.clone());
        if !is_expectation {
            to.rationale = self.rationale.or_else(|| to.rationale.clone());
        }
        for (key, value) in self.metadata {
            match to.metadata.iter_mut().find(|(known, _)| *known == key) {
                Some(entry) => entry.1 = value,
                None => to.metadata.push((key, value)),
            }
        }
        to.updated = now;
        Ok(())
    }
}

/// The response with a single assessment.
#[derive(Debug, Serialize)]
pub struct AssessmentResponse {
    /// The assessment.
    pub assessment: Value,
}
