//! Conventions with additional rules: Spring AI, Traceloop, Vercel's AI SDK and `VoltAgent`.

use mlflow_api::Json;
use mlflow_api::json::JsonObject;

use super::convention::{AttributeNames, Convention, SpanEvent, first, mapped, of_event, parsed, present};
use super::gen_ai::dumped_ascii;
use super::keys::MESSAGE_FORMAT;
use crate::attributes::SpanAttributes;

/// Spring AI, which stores prompts and completions in events.
pub(super) struct SpringAi;

impl SpringAi {
    fn content(events: &[SpanEvent], name: &str, attribute: &str) -> Option<Json> {
        events.iter().filter(|event| event.name == name).find_map(|event| of_event(event, attribute)).cloned()
    }
}

impl Convention for SpringAi {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames {
            kind: Some("gen_ai.operation.name"),
            kinds: &[("chat", "CHAT_MODEL"), ("embeddings", "EMBEDDING")],
            input_tokens: Some("gen_ai.usage.input_tokens"),
            output_tokens: Some("gen_ai.usage.output_tokens"),
            ..AttributeNames::NONE
        }
    }

    fn input_of_events(&self, events: &[SpanEvent], _: &SpanAttributes) -> Option<Json> {
        Self::content(events, "gen_ai.content.prompt", "gen_ai.prompt")
    }

    fn output_of_events(&self, events: &[SpanEvent], _: &SpanAttributes) -> Option<Json> {
        Self::content(events, "gen_ai.content.completion", "gen_ai.completion")
    }
}

/// Traceloop, also called `OpenLLMetry`, which stores messages in numbered attributes. The first
/// message is shown.
pub(super) struct Traceloop;

/// Checks whether a name begins with a pattern of words and numbers. `#` stands for a number.
fn matches(name: &str, pattern: &[&str]) -> bool {
    let mut rest = name;
    for piece in pattern {
        let after = if *piece == "#" {
            let after = rest.trim_start_matches(|character: char| character.is_ascii_digit());
            (after.len() < rest.len()).then_some(after)
        } else {
            rest.strip_prefix(piece)
        };
        match after {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

fn first_matching(attributes: &SpanAttributes, pattern: &[&str]) -> Option<Json> {
    let mut names = attributes.keys().filter(|name| matches(name, pattern));
    names.find_map(|name| present(attributes, name)).cloned()
}

impl Convention for Traceloop {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames {
            kind: Some("traceloop.span.kind"),
            kinds: &[
                ("workflow", "WORKFLOW"),
                ("task", "TASK"),
                ("agent", "AGENT"),
                ("tool", "TOOL"),
                ("unknown", "UNKNOWN"),
            ],
            input_tokens: Some("gen_ai.usage.prompt_tokens"),
            output_tokens: Some("gen_ai.usage.completion_tokens"),
            total_tokens: Some("llm.usage.total_tokens"),
            inputs: &["traceloop.entity.input"],
            outputs: &["traceloop.entity.output"],
            provider: Some("gen_ai.system"),
            ..AttributeNames::NONE
        }
    }

    fn input(&self, attributes: &mut SpanAttributes) -> Option<Json> {
        first(attributes, self.names().inputs)
            .or_else(|| first_matching(attributes, &["gen_ai.prompt.", "#", ".content"]))
            .or_else(|| first_matching(attributes, &["gen_ai.completion.", "#", ".tool_calls.", "#", ".arguments"]))
    }

    fn output(&self, attributes: &SpanAttributes) -> Option<Json> {
        first(attributes, self.names().outputs)
            .or_else(|| first_matching(attributes, &["gen_ai.completion.", "#", ".content"]))
    }
}

/// Vercel's AI SDK.
pub(super) struct VercelAi;

impl VercelAi {
    /// Checks whether the span is a model call, whose inputs and outputs are spread over several
    /// attributes.
    fn is_chat(attributes: &SpanAttributes) -> bool {
        let kind = attributes.get("ai.operationId").map(|kind| unwrapped(kind.clone()));
        matches!(kind, Some(Json::Text(kind)) if ["ai.generateText.doGenerate", "ai.streamText.doStream"].contains(&kind.as_str()))
    }

    fn gathered(attributes: &SpanAttributes, prefix: &str) -> JsonObject {
        let entries = attributes
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(prefix)?.to_owned(), unwrapped(value.clone()))));
        entries.collect()
    }
}

/// Parses a text as JSON, up to three times if the result is a text again. Returns a value that
/// is not JSON text unchanged.
fn unwrapped(value: Json) -> Json {
    let mut value = value;
    for _ in 0..3 {
        let Json::Text(text) = &value else { break };
        match crate::json_text::read(text) {
            Some(inner) => value = inner,
            None => break,
        }
    }
    value
}

impl Convention for VercelAi {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames {
            kind: Some("ai.operationId"),
            kinds: &[
                ("ai.generateText", "LLM"),
                ("ai.generateText.doGenerate", "LLM"),
                ("ai.toolCall", "TOOL"),
                ("ai.streamText", "LLM"),
                ("ai.streamText.doStream", "LLM"),
                ("ai.generateObject", "LLM"),
                ("ai.generateObject.doGenerate", "LLM"),
                ("ai.streamObject", "LLM"),
                ("ai.streamObject.doStream", "LLM"),
                ("ai.embed", "EMBEDDING"),
                ("ai.embed.doEmbed", "EMBEDDING"),
                ("ai.embedMany", "EMBEDDING"),
            ],
            inputs: &["ai.prompt", "ai.toolCall.args", "ai.value", "ai.values"],
            outputs: &["ai.response.text", "ai.toolCall.result", "ai.response.object", "ai.embedding", "ai.embeddings"],
            ..AttributeNames::NONE
        }
    }

    fn input(&self, attributes: &mut SpanAttributes) -> Option<Json> {
        if !Self::is_chat(attributes) {
            return first(attributes, self.names().inputs);
        }
        let mut inputs = Self::gathered(attributes, "ai.prompt.");
        if let Some(Json::List(tools)) = inputs.get("tools") {
            let tools = Json::List(tools.iter().cloned().map(unwrapped).collect());
            inputs.update([("tools".to_owned(), tools)]);
        }
        // The value is not encoded as JSON. This is also the case in MLflow.
        attributes.insert(MESSAGE_FORMAT.to_owned(), Json::from("vercel_ai"));
        (!inputs.is_empty()).then(|| dumped_ascii(&Json::Object(inputs)))
    }

    fn output(&self, attributes: &SpanAttributes) -> Option<Json> {
        if !Self::is_chat(attributes) {
            return first(attributes, self.names().outputs);
        }
        let outputs = Self::gathered(attributes, "ai.response.");
        (!outputs.is_empty()).then(|| dumped_ascii(&Json::Object(outputs)))
    }
}

/// `VoltAgent`.
pub(super) struct VoltAgent;

fn either(attributes: &SpanAttributes, names: [&str; 2]) -> Option<Json> {
    names.into_iter().find_map(|name| attributes.get(name)).cloned()
}

impl Convention for VoltAgent {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames {
            kinds: &[("agent", "AGENT"), ("llm", "LLM"), ("tool", "TOOL"), ("memory", "MEMORY")],
            inputs: &["agent.messages", "llm.messages", "input"],
            outputs: &["output"],
            ..AttributeNames::NONE
        }
    }

    /// Returns the span's type. `span.type` takes precedence, because a span below an agent has the
    /// agent's `entity.type`.
    fn span_type(&self, attributes: &SpanAttributes) -> Option<&'static str> {
        let kinds = ["span.type", "entity.type"].into_iter().filter_map(|name| attributes.get(name));
        kinds.map(parsed).find_map(|kind| mapped(self.names().kinds, &kind))
    }

    fn message_format(&self, attributes: &SpanAttributes) -> Option<&'static str> {
        let known = ["voltagent.operation_id", "voltagent.conversation_id"];
        known.into_iter().any(|name| attributes.contains_key(name)).then_some("voltagent")
    }

    fn input_tokens(&self, attributes: &SpanAttributes) -> Option<Json> {
        either(attributes, ["usage.prompt_tokens", "llm.usage.prompt_tokens"])
    }

    fn output_tokens(&self, attributes: &SpanAttributes) -> Option<Json> {
        either(attributes, ["usage.completion_tokens", "llm.usage.completion_tokens"])
    }

    fn total_tokens(&self, attributes: &SpanAttributes) -> Option<Json> {
        either(attributes, ["usage.total_tokens", "llm.usage.total_tokens"])
    }
}
