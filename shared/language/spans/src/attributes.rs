//! The attributes of a span as MLflow has them while it stores it: a Python dictionary from names to JSON texts.

use indexmap::IndexMap;
use mlflow_api::Json;
use opentelemetry_proto::tonic::common::v1::KeyValue;

use crate::Span;
use crate::values::{decoded, entry, message};

/// The trace's id, in MLflow's form.
pub(crate) const REQUEST_ID: &str = "mlflow.traceRequestId";

/// Attributes in their order. A text is the content of Python's `str`, as a rule JSON; anything
/// else was taken over from an event as it was.
pub(crate) type Attributes = IndexMap<String, Json>;

/// The JSON text that MLflow makes of a value.
pub(crate) fn dumped(value: &Json) -> Json {
    Json::Text(value.print_unicode())
}

/// The attributes of an exporter, each value as a JSON text.
pub(crate) fn received(attributes: &[KeyValue]) -> Attributes {
    attributes.iter().map(|attribute| (attribute.key.clone(), dumped_once(decoded(attribute.value.as_ref())))).collect()
}

/// The JSON text of a value. A text that is JSON of a text, a list or a dictionary already stays as
/// it is (`sanitize_attributes`). The JSON of a number does not: a client that sends "1" means the
/// text.
fn dumped_once(value: Json) -> Json {
    match value {
        Json::Text(text) if is_dumped(&text) => Json::Text(text),
        other => dumped(&other),
    }
}

fn is_dumped(text: &str) -> bool {
    // Most texts are no JSON, and are not worth reading.
    let begins = text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with(['"', '[', '{']);
    begins && crate::text::read(text).is_some()
}

/// The attributes as they are kept.
pub(crate) fn kept(attributes: Attributes) -> Vec<KeyValue> {
    attributes.into_iter().map(|(key, value)| entry(key, message(value))).collect()
}

/// A kept attribute.
pub(crate) fn value_of(span: &Span, key: &str) -> Option<Json> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    Some(decoded(found.value.as_ref()))
}

/// A kept attribute as a text: the text that its JSON holds, or else the JSON itself.
pub(crate) fn text_of(span: &Span, key: &str) -> Option<String> {
    value_of(span, key).map(text)
}

/// A kept value as a text, likewise.
pub(crate) fn text(value: Json) -> String {
    match value {
        Json::Text(text) => match crate::text::read(&text) {
            Some(Json::Text(inner)) => inner,
            _ => text,
        },
        other => other.print(),
    }
}
