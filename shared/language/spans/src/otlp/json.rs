//! OTLP in JSON. The format is protobuf's JSON mapping, as MLflow parses it with
//! `google.protobuf.json_format`, except that IDs are in hex.
//!
//! Names are accepted in camel case and as in the `.proto` file. Unknown fields are ignored, and
//! null is treated as a missing field. A number may be a string, and an integer may be written as a
//! float. Parsing functions return `None` for a message that is rejected.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use mlflow_api::json::without_halves;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, TracesData, span};
use serde_json::{Map, Value};

/// Configuration of base64 without required padding, because Python adds missing padding.
const LENIENT_CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT_CONFIG);
const URL_SAFE_BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT_CONFIG);

/// Parses a message.
pub(super) fn parse(body: &[u8]) -> Option<TracesData> {
    // JavaScript writes half a surrogate pair when it truncates a text. The half is replaced, so
    // that the other spans are not rejected.
    let value: Value = serde_json::from_slice(body).or_else(|_| serde_json::from_slice(&without_halves(body))).ok()?;
    let message = Message::of(&value)?;
    Some(TracesData { resource_spans: message.list("resourceSpans", "resource_spans", resource_spans)? })
}

/// A JSON object that is read as a protobuf message.
#[derive(Clone, Copy)]
struct Message<'a>(&'a Map<String, Value>);

impl<'a> Message<'a> {
    fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    /// Returns a field if it is present. `other` is its name as in the `.proto` file.
    fn field(self, name: &str, other: &str) -> Option<&'a Value> {
        let given = |name: &str| self.0.get(name).filter(|value| !value.is_null());
        given(name).or_else(|| given(other))
    }

    fn read<T: Default>(self, name: &str, other: &str, read: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
        self.field(name, other).map_or_else(|| Some(T::default()), read)
    }

    fn list<T>(self, name: &str, other: &str, read: impl Fn(Message<'a>) -> Option<T>) -> Option<Vec<T>> {
        self.read(name, other, |value| value.as_array()?.iter().map(|item| read(Message::of(item)?)).collect())
    }

    fn text(self, name: &str) -> Option<String> {
        self.read(name, name, |value| value.as_str().map(str::to_owned))
    }

    fn id(self, name: &str, other: &str) -> Option<Vec<u8>> {
        self.read(name, other, |value| id(value.as_str()?))
    }

    fn attributes(self) -> Option<Vec<KeyValue>> {
        self.list("attributes", "attributes", key_value)
    }
}

fn resource_spans(message: Message<'_>) -> Option<ResourceSpans> {
    let resource = message
        .field("resource", "resource")
        .map(|value| Some(Resource { attributes: Message::of(value)?.attributes()?, ..Resource::default() }));
    let resource = match resource {
        Some(resource) => Some(resource?),
        None => None,
    };
    let scope_spans = message.list("scopeSpans", "scope_spans", |scope| {
        Some(ScopeSpans { spans: scope.list("spans", "spans", read_span)?, ..ScopeSpans::default() })
    })?;
    Some(ResourceSpans { resource, scope_spans, ..ResourceSpans::default() })
}

fn read_span(object: Message<'_>) -> Option<Span> {
    Some(Span {
        trace_id: object.id("traceId", "trace_id")?,
        span_id: object.id("spanId", "span_id")?,
        parent_span_id: object.id("parentSpanId", "parent_span_id")?,
        name: object.text("name")?,
        start_time_unix_nano: object.read("startTimeUnixNano", "start_time_unix_nano", unsigned)?,
        end_time_unix_nano: object.read("endTimeUnixNano", "end_time_unix_nano", unsigned)?,
        attributes: object.attributes()?,
        events: object.list("events", "events", |event| {
            Some(span::Event {
                time_unix_nano: event.read("timeUnixNano", "time_unix_nano", unsigned)?,
                name: event.text("name")?,
                attributes: event.attributes()?,
                ..span::Event::default()
            })
        })?,
        links: object.list("links", "links", |link| {
            Some(span::Link {
                trace_id: link.id("traceId", "trace_id")?,
                span_id: link.id("spanId", "span_id")?,
                attributes: link.attributes()?,
                ..span::Link::default()
            })
        })?,
        status: object.read("status", "status", |value| {
            let status = Message::of(value)?;
            // An unknown name is ignored, like an unknown field.
            let code = status.read("code", "code", status_code)?;
            Some(Some(Status { message: status.text("message")?, code }))
        })?,
        ..Span::default()
    })
}

fn status_code(value: &Value) -> Option<i32> {
    match value.as_str() {
        Some(name) => StatusCode::from_str_name(name).map(i32::from).or_else(|| Some(name.parse().unwrap_or_default())),
        None => i32::try_from(signed(value)?).ok(),
    }
}

fn key_value(attribute: Message<'_>) -> Option<KeyValue> {
    let value = attribute.read("value", "value", |value| any(Message::of(value)?).map(Some))?;
    Some(KeyValue { key: attribute.text("key")?, value, ..KeyValue::default() })
}

fn any(message: Message<'_>) -> Option<AnyValue> {
    let mut found: Option<Any> = None;
    for (name, value) in message.0.iter().filter(|(_, value)| !value.is_null()) {
        let read = match name.as_str() {
            "stringValue" | "string_value" => Any::StringValue(value.as_str()?.to_owned()),
            "boolValue" | "bool_value" => Any::BoolValue(value.as_bool()?),
            "intValue" | "int_value" => Any::IntValue(signed(value)?),
            "doubleValue" | "double_value" => Any::DoubleValue(double(value)?),
            "bytesValue" | "bytes_value" => Any::BytesValue(bytes(value.as_str()?)?),
            "arrayValue" | "array_value" => {
                Any::ArrayValue(ArrayValue { values: Message::of(value)?.list("values", "values", any)? })
            }
            "kvlistValue" | "kvlist_value" => {
                Any::KvlistValue(KeyValueList { values: Message::of(value)?.list("values", "values", key_value)? })
            }
            _ => continue,
        };
        // A value has exactly one type.
        if found.replace(read).is_some() {
            return None;
        }
    }
    Some(AnyValue { value: found })
}

/// Parses an ID in hex. Whitespace between its bytes is ignored.
fn id(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    };
    digits.chunks(2).map(byte).collect()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let engine = if text.contains(['-', '_']) { &URL_SAFE_BASE64 } else { &BASE64 };
    engine.decode(text).ok()
}

fn signed(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_i64().or_else(|| {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0)?;
            format!("{whole:.0}").parse().ok()
        }),
        _ => None,
    }
}

fn unsigned(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_u64().or_else(|| {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0)?;
            format!("{whole:.0}").parse().ok()
        }),
        _ => None,
    }
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            other => other.parse().ok().filter(|number: &f64| number.is_finite()),
        },
        _ => None,
    }
}
