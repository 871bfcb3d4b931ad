//! The common part of the SDKs' conventions: attribute names, and how their values are read.

use mlflow_api::Json;
use mlflow_api::json::JsonObject;

use crate::attributes::SpanAttributes;

/// The parts of a span's event that translations use.
pub(crate) struct SpanEvent {
    pub name: String,
    pub attributes: JsonObject,
}

/// Attribute names of a convention. Each list is in order of preference.
pub(super) struct AttributeNames {
    /// Name of the attribute that contains the kind of work, and a table from kinds to MLflow's
    /// types.
    pub kind: Option<&'static str>,
    pub kinds: &'static [(&'static str, &'static str)],
    pub input_tokens: Option<&'static str>,
    pub output_tokens: Option<&'static str>,
    pub total_tokens: Option<&'static str>,
    pub cache_read: Option<&'static str>,
    pub cache_creation: &'static [&'static str],
    pub inputs: &'static [&'static str],
    pub outputs: &'static [&'static str],
    pub models: &'static [&'static str],
    pub provider: Option<&'static str>,
    pub tools: &'static [&'static str],
}

impl AttributeNames {
    pub(super) const NONE: Self = Self {
        kind: None,
        kinds: &[],
        input_tokens: None,
        output_tokens: None,
        total_tokens: None,
        cache_read: None,
        cache_creation: &[],
        inputs: &[],
        outputs: &[],
        models: &[],
        provider: None,
        tools: &[],
    };
}

/// A convention: the attribute names that an SDK, or a family of SDKs, uses for the values that
/// MLflow shows.
pub(super) trait Convention: Sync {
    /// Returns the attribute names. A convention with additional rules overrides other methods.
    fn names(&self) -> &'static AttributeNames;

    /// Returns MLflow's type of the span.
    fn span_type(&self, attributes: &SpanAttributes) -> Option<&'static str> {
        let kind = attributes.get(self.names().kind?)?;
        mapped(self.names().kinds, &parsed(kind))
    }

    fn input_tokens(&self, attributes: &SpanAttributes) -> Option<Json> {
        attributes.get(self.names().input_tokens?).cloned()
    }

    fn output_tokens(&self, attributes: &SpanAttributes) -> Option<Json> {
        attributes.get(self.names().output_tokens?).cloned()
    }

    fn total_tokens(&self, attributes: &SpanAttributes) -> Option<Json> {
        attributes.get(self.names().total_tokens?).cloned()
    }

    fn cache_read(&self, attributes: &SpanAttributes) -> Option<Json> {
        attributes.get(self.names().cache_read?).cloned()
    }

    fn cache_creation(&self, attributes: &SpanAttributes) -> Option<Json> {
        self.names().cache_creation.iter().find_map(|name| attributes.get(*name)).cloned()
    }

    /// Returns the value for the inputs. May also set the format of the messages.
    fn input(&self, attributes: &mut SpanAttributes) -> Option<Json> {
        first(attributes, self.names().inputs)
    }

    fn output(&self, attributes: &SpanAttributes) -> Option<Json> {
        first(attributes, self.names().outputs)
    }

    fn input_of_events(&self, _: &[SpanEvent], _: &SpanAttributes) -> Option<Json> {
        None
    }

    fn output_of_events(&self, _: &[SpanEvent], _: &SpanAttributes) -> Option<Json> {
        None
    }

    fn model(&self, attributes: &SpanAttributes) -> Option<Json> {
        first(attributes, self.names().models).map(|value| parsed(&value))
    }

    fn provider(&self, attributes: &SpanAttributes) -> Option<Json> {
        present(attributes, self.names().provider?).map(parsed)
    }

    fn tools(&self, attributes: &SpanAttributes) -> Option<Json> {
        first(attributes, self.names().tools)
    }

    fn message_format(&self, _: &SpanAttributes) -> Option<&'static str> {
        None
    }
}

/// Returns MLflow's type for a kind of work.
pub(super) fn mapped(kinds: &[(&str, &'static str)], kind: &Json) -> Option<&'static str> {
    let Json::Text(kind) = kind else { return None };
    kinds.iter().find(|(name, _)| name == kind).map(|(_, mapped)| *mapped)
}

/// Parses a JSON text, or returns the value unchanged if it is not JSON.
pub(crate) fn parsed(value: &Json) -> Json {
    match value {
        Json::Text(text) => crate::json_text::read(text).unwrap_or_else(|| value.clone()),
        other => other.clone(),
    }
}

/// Returns the first of the given attributes that is present and not empty.
pub(super) fn first(attributes: &SpanAttributes, names: &[&str]) -> Option<Json> {
    names.iter().find_map(|name| present(attributes, name)).cloned()
}

/// Returns an attribute, unless it is the JSON of null, false, zero or an empty value.
pub(super) fn present<'a>(attributes: &'a SpanAttributes, name: &str) -> Option<&'a Json> {
    attributes.get(name).filter(|value| match value {
        Json::Text(text) => is_something(text),
        other => other.is_true(),
    })
}

fn is_something(json: &str) -> bool {
    let json = json.trim_matches([' ', '\t', '\n', '\r']);
    let then = json.get(1..).unwrap_or_default().trim_start_matches([' ', '\t', '\n', '\r']);
    match json.bytes().next() {
        // The first characters show whether the JSON is an empty text, list or object, so a long
        // text need not be parsed.
        Some(b'"') => json != "\"\"",
        Some(b'[') => !then.starts_with(']'),
        Some(b'{') => !then.starts_with('}'),
        Some(_) => crate::json_text::read(json).is_none_or(|value| value.is_true()),
        None => false,
    }
}

/// Returns an attribute of an event, if it is present and truthy in Python.
pub(super) fn of_event<'a>(event: &'a SpanEvent, name: &str) -> Option<&'a Json> {
    event.attributes.get(name).filter(|value| value.is_true())
}
