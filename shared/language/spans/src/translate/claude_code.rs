//! Spans of Claude Code.

use mlflow_api::{Json, python};

use super::convention::{AttributeNames, Convention, SpanEvent, parsed, present};
use super::gen_ai::dumped_ascii;
use crate::attributes::{SpanAttributes, dumped};

const REDACTED: &str = "<REDACTED>";

/// The convention of Claude Code. Its spans have special types, and the attribute names of tokens
/// and contents have no prefix.
pub(super) struct ClaudeCode;

#[derive(Clone, Copy, PartialEq)]
enum ClaudeSpanKind {
    Interaction,
    Request,
    Tool,
}

impl ClaudeSpanKind {
    fn of(attributes: &SpanAttributes) -> Option<Self> {
        let Json::Text(kind) = parsed(attributes.get("span.type")?) else { return None };
        // Some versions omit the prefix.
        match kind.strip_prefix("claude_code.").unwrap_or(&kind) {
            "interaction" => Some(Self::Interaction),
            "llm_request" => Some(Self::Request),
            "tool" => Some(Self::Tool),
            _ => None,
        }
    }
}

/// Returns a token count of a request to the model.
fn count(attributes: &SpanAttributes, name: &str) -> Option<i128> {
    if ClaudeSpanKind::of(attributes) != Some(ClaudeSpanKind::Request) {
        return None;
    }
    match parsed(attributes.get(name)?) {
        Json::Integer(digits) => digits.parse().ok(),
        Json::Text(text) => python::int(&text)?.parse().ok(),
        Json::Bool(value) => Some(i128::from(value)),
        #[expect(clippy::cast_possible_truncation, reason = "Python truncates the fraction, too")]
        Json::Float(number) if number.is_finite() => Some(number as i128),
        _ => None,
    }
}

fn integer(number: i128) -> Json {
    Json::Integer(number.to_string())
}

/// Returns an attribute, unless the user has chosen to redact it.
fn content(attributes: &SpanAttributes, name: &str) -> Option<Json> {
    present(attributes, name).filter(|value| parsed(value) != Json::from(REDACTED)).cloned()
}

impl Convention for ClaudeCode {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames::NONE
    }

    fn span_type(&self, attributes: &SpanAttributes) -> Option<&'static str> {
        Some(match ClaudeSpanKind::of(attributes)? {
            ClaudeSpanKind::Interaction => "AGENT",
            ClaudeSpanKind::Request => "LLM",
            ClaudeSpanKind::Tool => "TOOL",
        })
    }

    /// Returns the input tokens including cached ones, as MLflow counts them. Claude Code's own
    /// count excludes cached tokens.
    fn input_tokens(&self, attributes: &SpanAttributes) -> Option<Json> {
        let others = ["cache_read_tokens", "cache_creation_tokens"];
        let cached: i128 = others.into_iter().filter_map(|name| count(attributes, name)).fold(0, i128::saturating_add);
        count(attributes, "input_tokens").map(|tokens| integer(tokens.saturating_add(cached)))
    }

    fn output_tokens(&self, attributes: &SpanAttributes) -> Option<Json> {
        count(attributes, "output_tokens").map(integer)
    }

    fn cache_read(&self, attributes: &SpanAttributes) -> Option<Json> {
        count(attributes, "cache_read_tokens").map(integer)
    }

    fn cache_creation(&self, attributes: &SpanAttributes) -> Option<Json> {
        count(attributes, "cache_creation_tokens").map(integer)
    }

    fn input(&self, attributes: &mut SpanAttributes) -> Option<Json> {
        match ClaudeSpanKind::of(attributes)? {
            ClaudeSpanKind::Interaction => {
                content(attributes, "user_prompt").or_else(|| content(attributes, "new_context"))
            }
            ClaudeSpanKind::Request => content(attributes, "new_context"),
            ClaudeSpanKind::Tool => content(attributes, "tool_input").or_else(|| {
                let details = ["full_command", "file_path", "skill_name", "subagent_type"].into_iter();
                let details: mlflow_api::json::JsonObject =
                    details.filter_map(|name| Some((name.to_owned(), parsed(&content(attributes, name)?)))).collect();
                (!details.is_empty()).then(|| dumped_ascii(&Json::Object(details)))
            }),
        }
    }

    fn output(&self, attributes: &SpanAttributes) -> Option<Json> {
        match ClaudeSpanKind::of(attributes)? {
            ClaudeSpanKind::Interaction => None,
            ClaudeSpanKind::Request => content(attributes, "response.model_output"),
            ClaudeSpanKind::Tool => content(attributes, "new_context"),
        }
    }

    fn output_of_events(&self, events: &[SpanEvent], attributes: &SpanAttributes) -> Option<Json> {
        if ClaudeSpanKind::of(attributes) != Some(ClaudeSpanKind::Tool) {
            return None;
        }
        let outputs = events.iter().filter(|event| event.name == "tool.output");
        let values = outputs.flat_map(|event| {
            ["output", "content", "diff"].into_iter().filter_map(|name| event.attributes.get(name)).map(parsed)
        });
        let mut shown = values.filter(|value| value.is_true() && *value != Json::from(REDACTED));
        shown.next().map(|value| dumped(&value))
    }
}
