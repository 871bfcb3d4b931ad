//! The fields of a span that filters, metrics and lists need.

use mlflow_api::Json;
use mlflow_api::limits::truncated;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;

use crate::Span;
use crate::attributes::{text_of, value_of};
use crate::ids::hex;
use crate::translate::{keys, parsed};

/// Maximum number of characters in the name of a model or of its provider.
const MAX_MODEL_NAME_LENGTH: usize = 500;

/// The fields for which MLflow's store has columns.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanColumns<'a> {
    /// ID of the span in hex.
    pub span_id: String,
    /// ID of the parent span in hex. `None` for a root.
    pub parent_id: Option<String>,
    /// Name of the span.
    pub name: &'a str,
    /// Type of the span as the UI shows it, including types that were derived from attributes of
    /// other SDKs. Filters find the derived types as well, which MLflow's filters do not.
    pub span_type: Option<String>,
    /// Status: `OK`, `ERROR` or `UNSET`.
    pub status: &'static str,
    /// Start time in nanoseconds since 1970.
    pub start_ns: u64,
    /// End time in nanoseconds since 1970.
    pub end_ns: Option<u64>,
    /// The model that the span called.
    pub model: Option<String>,
    /// The provider that runs the model.
    pub provider: Option<String>,
    /// Cost in US dollars of the model's input, of its output, and of both.
    pub cost: [Option<f64>; 3],
}

/// Reads the [`SpanColumns`] of a span.
#[must_use]
pub fn facts(span: &Span) -> SpanColumns<'_> {
    let name = |key: &str| match value_of(span, key).map(|value| parsed(&value)) {
        Some(Json::Text(name)) => Some(truncated(MAX_MODEL_NAME_LENGTH, &name).into_owned()),
        Some(_) => text_of(span, key).map(|text| truncated(MAX_MODEL_NAME_LENGTH, &text).into_owned()),
        None => None,
    };
    let cost = value_of(span, keys::COST).map(|value| parsed(&value));
    let part = |name: &str| {
        let number = match cost.as_ref()?.object()?.get(name)? {
            Json::Float(number) => *number,
            Json::Integer(text) | Json::Text(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        number.is_finite().then_some(number)
    };
    SpanColumns {
        span_id: hex(&span.span_id),
        parent_id: (!span.parent_span_id.is_empty()).then(|| hex(&span.parent_span_id)),
        name: &span.name,
        span_type: text_of(span, keys::SPAN_TYPE).filter(|text| text != "null"),
        status: match span.status.as_ref().map(opentelemetry_proto::tonic::trace::v1::Status::code) {
            Some(StatusCode::Ok) => "OK",
            Some(StatusCode::Error) => "ERROR",
            _ => "UNSET",
        },
        start_ns: span.start_time_unix_nano,
        end_ns: Some(span.end_time_unix_nano).filter(|end| *end > 0),
        model: name(keys::MODEL),
        provider: name(keys::PROVIDER),
        cost: [part(keys::INPUT_COST), part(keys::OUTPUT_COST), part(keys::TOTAL_COST)],
    }
}
