//! A span in MLflow's answers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mlflow_api::Json;
use mlflow_api::json::Object;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use serde_json::{Map, Value, json};

use crate::Span;
use crate::ids::hex;
use crate::values::{decoded, dictionary};

/// The span as `traces/get` and `traces/batchGet` answer it: OpenTelemetry's message in JSON, with the names of the `.proto` file, ids
/// in base64, integers as numbers. What has its default value is not there.
#[must_use]
pub fn json(span: &Span) -> Value {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("trace_id", STANDARD.encode(&span.trace_id).into());
    set("span_id", STANDARD.encode(&span.span_id).into());
    if !span.parent_span_id.is_empty() {
        set("parent_span_id", STANDARD.encode(&span.parent_span_id).into());
    }
    if !span.name.is_empty() {
        set("name", span.name.clone().into());
    }
    if span.start_time_unix_nano != 0 {
        set("start_time_unix_nano", span.start_time_unix_nano.into());
    }
    if span.end_time_unix_nano != 0 {
        set("end_time_unix_nano", span.end_time_unix_nano.into());
    }
    if !span.attributes.is_empty() {
        let attributes = span.attributes.iter().map(|attribute| key_value(&attribute.key, loaded(attribute)));
        set("attributes", attributes.collect());
    }
    if !span.events.is_empty() {
        let events = span.events.iter().map(|event| {
            let mut fields = Map::new();
            if event.time_unix_nano != 0 {
                fields.insert("time_unix_nano".to_owned(), event.time_unix_nano.into());
            }
            if !event.name.is_empty() {
                fields.insert("name".to_owned(), event.name.clone().into());
            }
            with_attributes(fields, &event.attributes)
        });
        set("events", events.collect());
    }
    // MLflow leaves out links to what is no trace's and no span's id.
    let links = span.links.iter().filter(|link| link.trace_id.len() == 16 && link.span_id.len() == 8);
    let links: Vec<Value> = links
        .map(|link| {
            let mut fields = Map::new();
            fields.insert("trace_id".to_owned(), STANDARD.encode(&link.trace_id).into());
            fields.insert("span_id".to_owned(), STANDARD.encode(&link.span_id).into());
            with_attributes(fields, &link.attributes)
        })
        .collect();
    if !links.is_empty() {
        set("links", links.into());
    }
    let mut status = Map::new();
    if let Some(kept) = &span.status {
        if !kept.message.is_empty() {
            status.insert("message".to_owned(), kept.message.clone().into());
        }
        status.insert("code".to_owned(), kept.code().as_str_name().into());
    }
    set("status", status.into());
    fields.into()
}

fn with_attributes(mut fields: Map<String, Value>, attributes: &[KeyValue]) -> Value {
    if !attributes.is_empty() {
        let attributes =
            attributes.iter().map(|attribute| key_value(&attribute.key, decoded(attribute.value.as_ref())));
        fields.insert("attributes".to_owned(), attributes.collect());
    }
    fields.into()
}

/// What a kept attribute is the JSON text of. What is no JSON stays as it is, and what is empty is nothing.
fn loaded(attribute: &KeyValue) -> Json {
    match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) if text.is_empty() => Json::Null,
        Some(Any::StringValue(text)) => crate::text::read(text).unwrap_or_else(|| Json::Text(text.clone())),
        _ => Some(decoded(attribute.value.as_ref())).filter(Json::is_true).unwrap_or(Json::Null),
    }
}

/// One entry of a list of attributes.
fn key_value(key: &str, value: Json) -> Value {
    let mut fields = Map::new();
    if !key.is_empty() {
        fields.insert("key".to_owned(), key.into());
    }
    if value != Json::Null {
        fields.insert("value".to_owned(), any(value));
    }
    fields.into()
}

fn any(value: Json) -> Value {
    match value {
        Json::Null => json!({}),
        Json::Bool(value) => json!({ "bool_value": value }),
        // Python fails where an integer has more than 64 bits; here it is answered as a text.
        Json::Integer(digits) => match digits.parse::<i64>() {
            Ok(number) => json!({ "int_value": number }),
            Err(_) => json!({ "string_value": digits }),
        },
        Json::Float(number) => json!({ "double_value": double(number) }),
        Json::Text(text) => json!({ "string_value": text }),
        Json::List(items) if items.is_empty() => json!({ "array_value": {} }),
        Json::List(items) => {
            let values: Vec<Value> = items.into_iter().map(any).collect();
            json!({ "array_value": { "values": values } })
        }
        Json::Object(object) if object.is_empty() => json!({ "kvlist_value": {} }),
        Json::Object(object) => {
            let values: Vec<Value> = object.into_iter().map(|(key, value)| key_value(&key, value)).collect();
            json!({ "kvlist_value": { "values": values } })
        }
    }
}

/// Protobuf's JSON has words for what JSON has no numbers for.
fn double(number: f64) -> Value {
    if number.is_nan() {
        "NaN".into()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else {
        number.into()
    }
}

/// The span as MLflow stores it and as its file `traces.json` has it: the text that filters on a span's content search.
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
    Json::Object(entries.into_iter().collect::<Object>())
}
