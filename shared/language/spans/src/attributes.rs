//! The attributes of a span in the form that MLflow has in memory while it stores the span: a
//! Python dictionary from names to JSON texts.

use indexmap::IndexMap;
use mlflow_api::Json;
use opentelemetry_proto::tonic::common::v1::KeyValue;

use crate::Span;
use crate::values::{decoded, entry, message};

/// ID of the trace in MLflow's form.
pub(crate) const REQUEST_ID: &str = "mlflow.traceRequestId";

/// Attributes in insertion order. A `Json::Text` has the content of a Python `str`, which is
/// usually JSON. Other values were copied unchanged from an event.
pub(crate) type SpanAttributes = IndexMap<String, Json>;

/// Returns the JSON text that MLflow writes for a value.
pub(crate) fn dumped(value: &Json) -> Json {
    Json::Text(value.print_unicode())
}

/// Reads an exporter's attributes, with each value as a JSON text.
pub(crate) fn received(attributes: &[KeyValue]) -> SpanAttributes {
    attributes.iter().map(|attribute| (attribute.key.clone(), dumped_once(decoded(attribute.value.as_ref())))).collect()
}

/// Returns the JSON text of a value. A text that already is the JSON of a text, a list or a
/// dictionary is kept unchanged (`sanitize_attributes`). A text that is the JSON of a number is
/// encoded again, because a client that sends "1" means the text.
fn dumped_once(value: Json) -> Json {
    match value {
        Json::Text(text) if is_dumped(&text) => Json::Text(text),
        other => dumped(&other),
    }
}

fn is_dumped(text: &str) -> bool {
    // Most texts are not JSON and do not have to be parsed.
    let begins = text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with(['"', '[', '{']);
    begins && crate::json_text::read(text).is_some()
}

/// Returns the attributes in their stored form.
pub(crate) fn kept(attributes: SpanAttributes) -> Vec<KeyValue> {
    attributes.into_iter().map(|(key, value)| entry(key, message(value))).collect()
}

/// Returns the value of a stored attribute.
pub(crate) fn value_of(span: &Span, key: &str) -> Option<Json> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    Some(decoded(found.value.as_ref()))
}

/// Returns a stored attribute as a text: the text that its JSON contains, or otherwise the JSON
/// itself.
pub(crate) fn text_of(span: &Span, key: &str) -> Option<String> {
    value_of(span, key).map(text)
}

/// Returns a stored value as a text: the text that its JSON contains, or otherwise the JSON itself.
pub(crate) fn text(value: Json) -> String {
    match value {
        Json::Text(text) => match crate::json_text::read(&text) {
            Some(Json::Text(inner)) => inner,
            _ => text,
        },
        other => other.print(),
    }
}
