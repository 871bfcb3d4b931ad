//! OpenTelemetry's conventions for generative AI, and two conventions based on them: Gemini CLI and
//! `LiveKit`.

use mlflow_api::Json;
use mlflow_api::json::JsonObject;

use super::convention::{AttributeNames, Convention, SpanEvent, first, mapped, of_event, parsed};
use crate::attributes::SpanAttributes;

const OPERATION: &str = "gen_ai.operation.name";

const NAMES: AttributeNames = AttributeNames {
    kind: Some(OPERATION),
    kinds: &[
        ("chat", "CHAT_MODEL"),
        ("create_agent", "AGENT"),
        ("embeddings", "EMBEDDING"),
        ("execute_tool", "TOOL"),
        ("generate_content", "LLM"),
        ("invoke_agent", "AGENT"),
        ("text_completion", "LLM"),
        ("response", "LLM"),
    ],
    input_tokens: Some("gen_ai.usage.input_tokens"),
    output_tokens: Some("gen_ai.usage.output_tokens"),
    total_tokens: None,
    cache_read: Some("gen_ai.usage.cache_read.input_tokens"),
    // The second name is from an earlier version of the convention.
    cache_creation: &["gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens"],
    inputs: &["gen_ai.input.messages", "gen_ai.tool.call.arguments"],
    outputs: &["gen_ai.output.messages", "gen_ai.tool.call.result"],
    models: &["gen_ai.response.model", "gen_ai.request.model"],
    provider: Some("gen_ai.provider.name"),
    tools: &["gen_ai.tool.definitions"],
};

/// OpenTelemetry's own conventions.
pub(super) struct GenAi;

impl Convention for GenAi {
    fn names(&self) -> &'static AttributeNames {
        &NAMES
    }
}

/// Gemini CLI, whose messages are wrapped so that the UI can show them.
pub(super) struct GeminiCli;

impl GeminiCli {
    fn is_meant(attributes: &SpanAttributes) -> bool {
        attributes.get("gen_ai.agent.name").is_some_and(|name| parsed(name) == Json::from("gemini-cli"))
    }
}

impl Convention for GeminiCli {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames { kinds: &[("llm_call", "LLM"), ("tool_call", "TOOL"), ("agent_call", "AGENT")], ..NAMES }
    }

    fn span_type(&self, attributes: &SpanAttributes) -> Option<&'static str> {
        let kind = attributes.get(OPERATION).filter(|_| Self::is_meant(attributes))?;
        mapped(self.names().kinds, &parsed(kind))
    }

    fn message_format(&self, attributes: &SpanAttributes) -> Option<&'static str> {
        Self::is_meant(attributes).then_some("gemini")
    }

    fn input(&self, attributes: &mut SpanAttributes) -> Option<Json> {
        let value = first(attributes, NAMES.inputs).filter(|_| Self::is_meant(attributes))?;
        match parsed(&value) {
            contents @ (Json::List(_) | Json::Text(_)) => Some(dumped_ascii(&wrapped("contents", contents))),
            _ => Some(value),
        }
    }

    fn output(&self, attributes: &SpanAttributes) -> Option<Json> {
        let value = first(attributes, NAMES.outputs).filter(|_| Self::is_meant(attributes))?;
        let Json::List(items) = parsed(&value) else { return Some(value) };
        // Each chunk of the stream has its own content, but the UI expects all parts in a single
        // content.
        let parts: Vec<Json> = items.iter().filter_map(|item| parts_of(item)).flatten().cloned().collect();
        if parts.is_empty() {
            return Some(value);
        }
        let content = object([("role", Json::from("model")), ("parts", Json::List(parts))]);
        Some(dumped_ascii(&wrapped("candidates", Json::List(vec![wrapped("content", content)]))))
    }
}

fn parts_of(item: &Json) -> Option<&Vec<Json>> {
    match item.object()?.get("parts")? {
        Json::List(parts) => Some(parts),
        _ => None,
    }
}

/// `LiveKit`'s voice agents.
pub(super) struct LiveKit;

impl Convention for LiveKit {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames {
            inputs: &["lk.user_input", "lk.user_transcript", "lk.chat_ctx", "lk.input_text"],
            outputs: &["lk.response.text", "lk.response.function_calls"],
            ..NAMES
        }
    }

    fn span_type(&self, attributes: &SpanAttributes) -> Option<&'static str> {
        if attributes.contains_key("gen_ai.request.model") {
            return Some("LLM");
        }
        let operation = attributes.get(OPERATION).map(|value| Json::Text(parsed(value).to_text().to_lowercase()));
        if let Some(mapped) = operation.and_then(|operation| mapped(NAMES.kinds, &operation)) {
            return Some(mapped);
        }
        attributes.keys().find_map(|key| match key.as_str() {
            "lk.retry_count" => Some("LLM"),
            key if key.starts_with("lk.function_tool") => Some("TOOL"),
            "lk.agent_name" | "lk.instructions" | "lk.generation_id" => Some("AGENT"),
            key if key.starts_with("lk.tts") => Some("UNKNOWN"),
            "lk.input_text" | "lk.user_transcript" | "lk.transcript_confidence" | "lk.transcription_delay" => {
                Some("UNKNOWN")
            }
            _ => None,
        })
    }

    fn message_format(&self, attributes: &SpanAttributes) -> Option<&'static str> {
        attributes.keys().any(|key| key.starts_with("lk.")).then_some("livekit")
    }

    fn input_of_events(&self, events: &[SpanEvent], _: &SpanAttributes) -> Option<Json> {
        let messages = events.iter().filter_map(|event| {
            let role = match event.name.as_str() {
                "gen_ai.system.message" => "system",
                "gen_ai.user.message" => "user",
                "gen_ai.assistant.message" => "assistant",
                _ => return None,
            };
            Some(object([("role", Json::from(role)), ("content", parsed(of_event(event, "content")?))]))
        });
        dumped_list(messages.collect())
    }

    fn output_of_events(&self, events: &[SpanEvent], _: &SpanAttributes) -> Option<Json> {
        let messages = events.iter().filter(|event| event.name == "gen_ai.choice").filter_map(|event| {
            let role = event.attributes.get("role").map_or_else(|| Json::from("assistant"), parsed);
            Some(object([("role", role), ("content", parsed(of_event(event, "content")?))]))
        });
        dumped_list(messages.collect())
    }
}

fn dumped_list(items: Vec<Json>) -> Option<Json> {
    (!items.is_empty()).then(|| dumped_ascii(&Json::List(items)))
}

/// Returns `json.dumps(value)`, which escapes non-ASCII characters.
pub(super) fn dumped_ascii(value: &Json) -> Json {
    Json::Text(value.print())
}

pub(super) fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    Json::Object(fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<JsonObject>())
}

fn wrapped(name: &str, value: Json) -> Json {
    object([(name, value)])
}
