//! Identifiers of trace searches: the left side of a comparison, or the field of an ordering
//! (`SearchTraceUtils._get_identifier`).

use std::fmt;

use mlflow_api::{Error, Result};

use crate::identifier::{between, unquoted_key};
use crate::python_repr;

/// The keys of tags and metadata that the grammar treats specially.
pub(crate) mod keys {
    pub(crate) const NAME: &str = "mlflow.traceName";
    pub(crate) const PROMPTS: &str = "mlflow.linkedPrompts";
    pub(crate) const RUN: &str = mlflow_api::traces::SOURCE_RUN;
    pub(crate) const SESSION: &str = "mlflow.trace.session";
    pub(crate) const TOKEN_USAGE: &str = "mlflow.trace.tokenUsage";
    pub(crate) const COST: &str = "mlflow.trace.cost";
}

/// The attributes that a filter can refer to.
pub(super) const ATTRIBUTES: [&str; 13] = [
    "client_request_id",
    "end_time",
    "end_time_ms",
    "execution_time",
    "execution_time_ms",
    "name",
    "prompt",
    "request_id",
    "run_id",
    "status",
    "text",
    "timestamp",
    "timestamp_ms",
];

/// The attributes that an ordering can refer to.
pub(super) const ORDER_ATTRIBUTES: [&str; 11] = [
    "end_time",
    "end_time_ms",
    "execution_time",
    "execution_time_ms",
    "experiment_id",
    "name",
    "request_id",
    "run_id",
    "status",
    "timestamp",
    "timestamp_ms",
];

const FAMILIES: [&str; 11] = [
    "attribute",
    "attributes",
    "expectation",
    "feedback",
    "issue",
    "metadata",
    "request_metadata",
    "span",
    "tag",
    "tags",
    "trace",
];

/// The kinds of fields that a trace can be searched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TraceFieldFamily {
    Attribute,
    Tag,
    Metadata,
    Span,
    Feedback,
    Expectation,
    Issue,
}

impl TraceFieldFamily {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "attribute" | "attributes" | "trace" => Self::Attribute,
            "tag" | "tags" => Self::Tag,
            "request_metadata" | "metadata" => Self::Metadata,
            "span" => Self::Span,
            "feedback" => Self::Feedback,
            "expectation" => Self::Expectation,
            "issue" => Self::Issue,
            _ => return None,
        })
    }
}

impl fmt::Display for TraceFieldFamily {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Attribute => "attribute",
            Self::Tag => "tag",
            Self::Metadata => "request_metadata",
            Self::Span => "span",
            Self::Feedback => "feedback",
            Self::Expectation => "expectation",
            Self::Issue => "issue",
        })
    }
}

/// An identifier: a family, and a key within it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TraceIdentifier {
    pub(super) family: TraceFieldFamily,
    pub(super) key: String,
}

impl TraceIdentifier {
    /// Parses an identifier. `attributes` lists the valid attributes.
    pub(super) fn read(text: &str, attributes: &[&str]) -> Result<Self> {
        let (family, key) = match text.split_once('.') {
            None => (TraceFieldFamily::Attribute, text),
            Some((written, key)) => {
                let name = between(written, '`').unwrap_or(written);
                let family = TraceFieldFamily::parse(name).ok_or_else(|| {
                    let valid = python_repr::set(&FAMILIES);
                    Error::invalid(format!("Invalid entity type '{name}'. Valid values are {valid}"))
                })?;
                (family, key)
            }
        };
        let key = unquoted_key(key);
        if family == TraceFieldFamily::Attribute && !attributes.contains(&key) {
            let valid = python_repr::set(attributes);
            return Err(Error::invalid(format!("Invalid attribute key '{key}' specified. Valid keys are '{valid}'")));
        }
        Ok(Self { family, key: key.to_owned() })
    }

    /// Replaces keys that are aliases of a tag, of metadata or of the content of spans
    /// (`_replace_key_to_tag_or_metadata`). MLflow only checks the key, so `feedback.name` is also
    /// replaced with the name of the trace.
    pub(super) fn resolved(self) -> Self {
        let replaced = |family, key: &str| Self { family, key: key.to_owned() };
        if self.family == TraceFieldFamily::Span {
            return self;
        }
        match self.key.to_lowercase().as_str() {
            "name" => replaced(TraceFieldFamily::Tag, keys::NAME),
            "prompt" => replaced(TraceFieldFamily::Tag, keys::PROMPTS),
            "run_id" => replaced(TraceFieldFamily::Metadata, keys::RUN),
            "text" => replaced(TraceFieldFamily::Span, "content"),
            "timestamp" => replaced(self.family, "timestamp_ms"),
            "execution_time" => replaced(self.family, "execution_time_ms"),
            "end_time" => replaced(self.family, "end_time_ms"),
            _ => self,
        }
    }
}
