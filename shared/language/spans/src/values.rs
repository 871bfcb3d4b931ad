//! Attribute values: OpenTelemetry's messages, and the JSON that Python derives from them.

use mlflow_api::{Json, python};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList};

/// Returns the JSON value that MLflow decodes from a message. Bytes, which JSON cannot represent,
/// become the text that Python prints for them.
pub(crate) fn decoded(value: Option<&AnyValue>) -> Json {
    match value.and_then(|value| value.value.as_ref()) {
        None => Json::Null,
        Some(Value::StringValue(text)) => Json::Text(text.clone()),
        Some(Value::BoolValue(value)) => Json::Bool(*value),
        Some(Value::IntValue(number)) => Json::Integer(number.to_string()),
        Some(Value::DoubleValue(number)) => Json::Float(*number),
        Some(Value::ArrayValue(array)) => Json::List(array.values.iter().map(|value| decoded(Some(value))).collect()),
        Some(Value::KvlistValue(list)) => {
            Json::Object(list.values.iter().map(|entry| (entry.key.clone(), decoded(entry.value.as_ref()))).collect())
        }
        Some(Value::BytesValue(bytes)) => Json::Text(python::repr_bytes(bytes)),
        Some(Value::StringValueStrindex(index)) => Json::Integer(index.to_string()),
    }
}

/// Returns the message for a JSON value. An integer of more than 64 bits becomes a text.
pub(crate) fn message(value: Json) -> AnyValue {
    let value = match value {
        Json::Null => return AnyValue::default(),
        Json::Bool(value) => Value::BoolValue(value),
        Json::Integer(digits) => digits.parse().map_or(Value::StringValue(digits), Value::IntValue),
        Json::Float(number) => Value::DoubleValue(number),
        Json::Text(text) => Value::StringValue(text),
        Json::List(items) => Value::ArrayValue(ArrayValue { values: items.into_iter().map(message).collect() }),
        Json::Object(object) => Value::KvlistValue(KeyValueList {
            values: object.into_iter().map(|(key, value)| entry(key, message(value))).collect(),
        }),
    };
    AnyValue { value: Some(value) }
}

/// Creates an entry of a list of attributes.
pub(crate) fn entry(key: String, value: AnyValue) -> KeyValue {
    KeyValue { key, value: Some(value), ..KeyValue::default() }
}

/// Converts attributes to a Python dictionary. A repeated key has its last value, at the position
/// of its first occurrence.
pub(crate) fn dictionary(attributes: &[KeyValue]) -> mlflow_api::json::JsonObject {
    attributes.iter().map(|attribute| (attribute.key.clone(), decoded(attribute.value.as_ref()))).collect()
}
