//! The attributes that MLflow adds to a span when it stores it, derived from the attributes of
//! other SDKs (`mlflow/tracing/otel/translation`).
//!
//! The conventions are tried in MLflow's order, and the first one with a value is used.

mod claude_code;
mod convention;
mod custom_conventions;
mod gen_ai;
pub(crate) mod keys;
mod name_conventions;

use mlflow_api::Json;
use mlflow_api::json::JsonObject;
use mlflow_api::python;

use crate::attributes::{SpanAttributes, dumped};
use crate::prices;
use convention::Convention;
pub(crate) use convention::{SpanEvent, parsed};

static CONVENTIONS: [&dyn Convention; 12] = [
    &name_conventions::OpenInference,
    &gen_ai::GeminiCli,
    &claude_code::ClaudeCode,
    &gen_ai::GenAi,
    &custom_conventions::SpringAi,
    &custom_conventions::Traceloop,
    &name_conventions::GoogleAdk,
    &custom_conventions::VercelAi,
    &custom_conventions::VoltAgent,
    &gen_ai::LiveKit,
    &name_conventions::Laminar,
    &name_conventions::Langfuse,
];

/// Conventions that store inputs and outputs in events.
static EVENT_CONVENTIONS: [&dyn Convention; 3] =
    [&custom_conventions::SpringAi, &gen_ai::LiveKit, &claude_code::ClaudeCode];

/// Adds MLflow's attributes that the span does not have, derived from the attributes and events of
/// other SDKs.
pub(crate) fn translate(attributes: &mut SpanAttributes, events: &[SpanEvent]) {
    set_type(attributes);
    if !attributes.contains_key(keys::INPUTS)
        && let Some(value) = input(attributes, events)
    {
        attributes.insert(keys::INPUTS.to_owned(), value);
    }
    set(attributes, keys::OUTPUTS, |attributes| {
        found(|convention| convention.output(attributes).filter(Json::is_true))
            .or_else(|| of_events(events, |convention| convention.output_of_events(events, attributes)))
    });
    set(attributes, keys::USAGE, |attributes| usage(attributes).map(|usage| dumped(&Json::Object(usage))));
    set(attributes, keys::MESSAGE_FORMAT, |attributes| {
        found(|convention| convention.message_format(attributes)).map(|format| dumped(&Json::from(format)))
    });
    set(attributes, keys::TOOLS, |attributes| found(|convention| convention.tools(attributes)));
    set(attributes, keys::MODEL, |attributes| model(attributes).map(|model| dumped(&model)));
    set(attributes, keys::PROVIDER, |attributes| {
        found(|convention| convention.provider(attributes).filter(Json::is_true)).map(|provider| dumped(&provider))
    });
    set(attributes, keys::COST, |attributes| {
        let loaded = |key| attributes.get(key).map(parsed);
        let cost = prices::cost(&loaded(keys::MODEL)?, &loaded(keys::USAGE)?, loaded(keys::PROVIDER).as_ref())?;
        Some(dumped(&cost))
    });
}

fn set(attributes: &mut SpanAttributes, key: &str, value: impl Fn(&SpanAttributes) -> Option<Json>) {
    if !attributes.contains_key(key)
        && let Some(value) = value(attributes)
    {
        attributes.insert(key.to_owned(), value);
    }
}

fn found<T>(ask: impl FnMut(&'static dyn Convention) -> Option<T>) -> Option<T> {
    CONVENTIONS.into_iter().find_map(ask)
}

fn of_events(events: &[SpanEvent], ask: impl FnMut(&'static dyn Convention) -> Option<Json>) -> Option<Json> {
    if events.is_empty() { None } else { EVENT_CONVENTIONS.into_iter().find_map(ask) }
}

/// Sets the span's type if it has none. The types null and `UNKNOWN` count as none.
pub(crate) fn set_type(attributes: &mut SpanAttributes) {
    let sent = attributes.get(keys::SPAN_TYPE).map(parsed);
    let says_nothing = |sent: Json| sent == Json::Null || sent == Json::from("UNKNOWN");
    if sent.is_none_or(says_nothing)
        && let Some(found) = found(|convention| convention.span_type(attributes))
    {
        attributes.insert(keys::SPAN_TYPE.to_owned(), dumped(&Json::from(found)));
    }
}

fn input(attributes: &mut SpanAttributes, events: &[SpanEvent]) -> Option<Json> {
    let found = CONVENTIONS.into_iter().find_map(|convention| convention.input(attributes).filter(Json::is_true));
    found.or_else(|| of_events(events, |convention| convention.input_of_events(events, attributes)))
}

/// Returns the token counts of the first convention that has any.
fn usage(attributes: &SpanAttributes) -> Option<JsonObject> {
    found(|convention| {
        let input = convention.input_tokens(attributes).and_then(|value| count(&value));
        let output = convention.output_tokens(attributes).and_then(|value| count(&value));
        let total = convention.total_tokens(attributes).and_then(|value| count(&value));
        let sum = || Some(Json::Integer(whole(input.as_ref()?)?.checked_add(whole(output.as_ref()?)?)?.to_string()));
        let total = total.or_else(sum);
        if input.is_none() && output.is_none() && total.is_none() {
            return None;
        }
        let cache_read = convention.cache_read(attributes).and_then(|value| count(&value));
        let cache_creation = convention.cache_creation(attributes).and_then(|value| count(&value));
        let counts = [
            (keys::INPUT_TOKENS, input),
            (keys::OUTPUT_TOKENS, output),
            (keys::TOTAL_TOKENS, total),
            (keys::CACHE_READ, cache_read),
            (keys::CACHE_CREATION, cache_creation),
        ];
        Some(counts.into_iter().filter_map(|(key, count)| Some((key.to_owned(), count?))).collect())
    })
}

/// Returns a count, which may be a text. To Python, a boolean is a number.
fn count(value: &Json) -> Option<Json> {
    match value {
        Json::Integer(_) | Json::Bool(_) => Some(value.clone()),
        Json::Text(text) => match crate::json_text::read(text) {
            Some(number @ (Json::Integer(_) | Json::Bool(_))) => Some(number),
            Some(Json::Text(inner)) => python::int(&inner).map(Json::Integer),
            _ => python::int(text).map(Json::Integer),
        },
        _ => None,
    }
}

fn whole(count: &Json) -> Option<i128> {
    match count {
        Json::Integer(digits) => digits.parse().ok(),
        Json::Bool(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Returns the model's name from a convention, or else from the field `model` of the inputs or
/// outputs.
fn model(attributes: &SpanAttributes) -> Option<Json> {
    if let Some(model) = found(|convention| convention.model(attributes).filter(Json::is_true)) {
        return Some(model);
    }
    let values = [keys::INPUTS, keys::OUTPUTS].into_iter().filter_map(|key| attributes.get(key));
    let values = values.filter(|value| may_name_model(value)).map(parsed);
    let mut models = values.filter_map(|value| value.object()?.get("model").filter(|model| model.is_true()).cloned());
    models.next().filter(|model| matches!(model, Json::Text(_)))
}

/// Checks whether a value may contain the name of a model. Inputs and outputs may be long, and most
/// contain none.
fn may_name_model(value: &Json) -> bool {
    match value {
        Json::Text(text) => text.contains("\"model\"") || text.contains("\\u"),
        _ => true,
    }
}
