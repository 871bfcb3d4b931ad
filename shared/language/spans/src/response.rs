//! Spans in MLflow's responses.

use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use mlflow_api::Json;
use mlflow_api::json::JsonObject;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::span;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::Span;
use crate::ids::hex;
use crate::values::{decoded, dictionary};

/// Returns the span as `traces/get` and `traces/batchGet` return it: OpenTelemetry's message in
/// JSON, with the field names of the `.proto` file, IDs in base64, and integers as numbers. Fields
/// with default values are omitted.
///
/// The JSON text of an attribute is parsed only while that attribute is being written. The parsed
/// value may be about ten times as large as the text, so it is not kept in memory.
pub fn json(span: &Span) -> impl Serialize {
    // MLflow leaves out links whose trace or span ID is invalid.
    let links = span.links.iter().filter(|link| link.trace_id.len() == 16 && link.span_id.len() == 8);
    let status = span.status.as_ref();
    SpanResponse {
        trace_id: Base64(&span.trace_id),
        span_id: Base64(&span.span_id),
        parent_span_id: Base64(&span.parent_span_id),
        name: &span.name,
        start_time_unix_nano: span.start_time_unix_nano,
        end_time_unix_nano: span.end_time_unix_nano,
        attributes: span.attributes.iter().map(ParsedAttribute).collect(),
        events: span.events.iter().map(EventResponse::of).collect(),
        links: links.map(LinkResponse::of).collect(),
        status: StatusResponse {
            message: status.map(|status| status.message.as_str()).unwrap_or_default(),
            code: status.map(|status| status.code().as_str_name()),
        },
    }
}

#[derive(Serialize)]
struct SpanResponse<'a> {
    trace_id: Base64<'a>,
    span_id: Base64<'a>,
    #[serde(skip_serializing_if = "Base64::is_empty")]
    parent_span_id: Base64<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    start_time_unix_nano: u64,
    #[serde(skip_serializing_if = "is_zero")]
    end_time_unix_nano: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<ParsedAttribute<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<EventResponse<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<LinkResponse<'a>>,
    status: StatusResponse<'a>,
}

#[derive(Serialize)]
struct EventResponse<'a> {
    #[serde(skip_serializing_if = "is_zero")]
    time_unix_nano: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<PlainAttribute<'a>>,
}

impl<'a> EventResponse<'a> {
    fn of(event: &'a span::Event) -> Self {
        let attributes = event.attributes.iter().map(PlainAttribute).collect();
        Self { time_unix_nano: event.time_unix_nano, name: &event.name, attributes }
    }
}

#[derive(Serialize)]
struct LinkResponse<'a> {
    trace_id: Base64<'a>,
    span_id: Base64<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<PlainAttribute<'a>>,
}

impl<'a> LinkResponse<'a> {
    fn of(link: &'a span::Link) -> Self {
        let attributes = link.attributes.iter().map(PlainAttribute).collect();
        Self { trace_id: Base64(&link.trace_id), span_id: Base64(&link.span_id), attributes }
    }
}

#[derive(Serialize)]
struct StatusResponse<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

/// Bytes that are serialized in base64, such as an ID.
struct Base64<'a>(&'a [u8]);

impl Base64<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An attribute of a span, serialized as the value of its JSON text. A text that is not valid JSON
/// is kept unchanged, and an empty text becomes null.
struct ParsedAttribute<'a>(&'a KeyValue);

impl Serialize for ParsedAttribute<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = match self.0.value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(Any::StringValue(text)) if text.is_empty() => Json::Null,
            Some(Any::StringValue(text)) => crate::json_text::read(text).unwrap_or_else(|| Json::Text(text.clone())),
            _ => Some(decoded(self.0.value.as_ref())).filter(Json::is_true).unwrap_or(Json::Null),
        };
        Entry::of(&self.0.key, &value).serialize(serializer)
    }
}

/// An attribute of an event or a link, serialized unchanged.
struct PlainAttribute<'a>(&'a KeyValue);

impl Serialize for PlainAttribute<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Entry::of(&self.0.key, &decoded(self.0.value.as_ref())).serialize(serializer)
    }
}

/// One entry of a list of attributes.
#[derive(Serialize)]
struct Entry<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value<'a>>,
}

impl<'a> Entry<'a> {
    fn of(key: &'a str, value: &'a Json) -> Self {
        Self { key, value: Some(Value(value)).filter(|value| *value.0 != Json::Null) }
    }
}

/// Serializes a value as OpenTelemetry's message `AnyValue`.
struct Value<'a>(&'a Json);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        match self.0 {
            Json::Null => {}
            Json::Bool(value) => fields.serialize_entry("bool_value", value)?,
            // Python fails on integers of more than 64 bits. Here they are returned as text.
            Json::Integer(digits) => match digits.parse::<i64>() {
                Ok(number) => fields.serialize_entry("int_value", &number)?,
                Err(_) => fields.serialize_entry("string_value", digits)?,
            },
            Json::Float(number) => match word(*number) {
                Some(word) => fields.serialize_entry("double_value", word)?,
                None => fields.serialize_entry("double_value", number)?,
            },
            Json::Text(text) => fields.serialize_entry("string_value", text)?,
            Json::List(items) => fields.serialize_entry("array_value", &Values(items))?,
            Json::Object(object) => fields.serialize_entry("kvlist_value", &Entries(object))?,
        }
        fields.end()
    }
}

/// Returns the word that protobuf's JSON uses for a value that JSON numbers cannot represent.
fn word(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// The message that contains the values of a list.
struct Values<'a>(&'a [Json]);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map((!self.0.is_empty()).then_some(("values", StreamedList(|| self.0.iter().map(Value)))))
    }
}

/// The message that contains the entries of an object.
struct Entries<'a>(&'a JsonObject);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = || self.0.iter().map(|(key, value)| Entry::of(key, value));
        serializer.collect_map((!self.0.is_empty()).then_some(("values", StreamedList(entries))))
    }
}

/// A list whose items are created one by one during serialization.
struct StreamedList<M>(M);

impl<M: Fn() -> I, I: IntoIterator<Item: Serialize>> Serialize for StreamedList<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0())
    }
}

/// Returns the span as MLflow stores it, and as its file `traces.json` contains it. Filters on the
/// content of spans search this text.
#[must_use]
pub fn artifact_json(span: &Span) -> String {
    let text = |text: &str| Json::Text(text.to_owned());
    let base64 = |id: &[u8]| Json::Text(STANDARD.encode(id));
    let number = |number: u64| Json::Integer(number.to_string());
    let parent = if span.parent_span_id.is_empty() { Json::Null } else { base64(&span.parent_span_id) };
    let events = span.events.iter().map(|event| {
        object([
            ("name", text(&event.name)),
            ("time_unix_nano", number(event.time_unix_nano)),
            ("attributes", Json::Object(dictionary(&event.attributes))),
        ])
    });
    let links = span.links.iter().map(|link| {
        let attributes = dictionary(&link.attributes);
        object([
            ("trace_id", Json::Text(format!("tr-{}", hex(&link.trace_id)))),
            ("span_id", Json::Text(hex(&link.span_id))),
            ("attributes", if attributes.is_empty() { Json::Null } else { Json::Object(attributes) }),
        ])
    });
    let status = span.status.clone().unwrap_or_default();
    let value = object([
        ("trace_id", base64(&span.trace_id)),
        ("span_id", base64(&span.span_id)),
        ("parent_span_id", parent),
        ("name", text(&span.name)),
        ("start_time_unix_nano", number(span.start_time_unix_nano)),
        ("end_time_unix_nano", number(span.end_time_unix_nano)),
        ("events", Json::List(events.collect())),
        ("status", object([("code", text(status.code().as_str_name())), ("message", text(&status.message))])),
        ("attributes", Json::Object(dictionary(&span.attributes))),
        ("links", Json::List(links.collect())),
    ]);
    value.print_unicode()
}

fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    let entries = fields.map(|(name, value)| (name.to_owned(), value));
    Json::Object(entries.into_iter().collect::<JsonObject>())
}
