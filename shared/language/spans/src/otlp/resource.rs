//! The tags that traces get from their sender's resource.

use mlflow_api::{Json, limits};
use opentelemetry_proto::tonic::common::v1::KeyValue;

/// Returns tags for the attributes of a resource, or `None` if it has no attributes. Omits
/// attributes that describe the SDK, are reserved by MLflow, or cannot be tags.
pub(super) fn tags(attributes: &[KeyValue]) -> Option<Vec<(String, String)>> {
    let attributes = crate::values::dictionary(attributes);
    let mut named = attributes.iter().filter(|(key, _)| !key.is_empty()).peekable();
    named.peek()?;
    let own = |key: &str| key.starts_with("telemetry.sdk.") || key.starts_with("mlflow.");
    Some(
        named
            .filter(|(key, _)| !own(key))
            .filter_map(|(key, value)| {
                let value = match value {
                    Json::Text(text) => text.clone(),
                    other => named_only(other.clone()).print(),
                };
                limits::trace_tag(key, &value).ok().map(|value| (key.to_owned(), value))
            })
            .collect(),
    )
}

/// Removes entries without a name from a value at any depth, because OpenTelemetry's SDK omits
/// them.
fn named_only(value: Json) -> Json {
    match value {
        Json::List(items) => Json::List(items.into_iter().map(named_only).collect()),
        Json::Object(object) => {
            let named = object.into_iter().filter(|(key, _)| !key.is_empty());
            Json::Object(named.map(|(key, value)| (key, named_only(value))).collect())
        }
        other => other,
    }
}
