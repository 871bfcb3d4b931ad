//! Conventions that are described completely by their attribute names.

use super::convention::{AttributeNames, Convention};

/// `OpenInference`, used by Arize and Phoenix.
pub(super) struct OpenInference;

impl Convention for OpenInference {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames {
            kind: Some("openinference.span.kind"),
            kinds: &[
                ("TOOL", "TOOL"),
                ("CHAIN", "CHAIN"),
                ("LLM", "LLM"),
                ("RETRIEVER", "RETRIEVER"),
                ("EMBEDDING", "EMBEDDING"),
                ("AGENT", "AGENT"),
                ("RERANKER", "RERANKER"),
                ("UNKNOWN", "UNKNOWN"),
                ("GUARDRAIL", "GUARDRAIL"),
                ("EVALUATOR", "EVALUATOR"),
            ],
            input_tokens: Some("llm.token_count.prompt"),
            output_tokens: Some("llm.token_count.completion"),
            total_tokens: Some("llm.token_count.total"),
            cache_read: Some("llm.token_count.prompt_details.cache_read"),
            cache_creation: &["llm.token_count.prompt_details.cache_write"],
            inputs: &["input.value"],
            outputs: &["output.value"],
            models: &["llm.response.model_name", "llm.model_name", "llm.request.model_name", "embedding.model_name"],
            provider: Some("llm.provider"),
            ..AttributeNames::NONE
        }
    }
}

/// Google's Agent Development Kit, which adds its own attributes to the conventions for
/// generative AI.
pub(super) struct GoogleAdk;

impl Convention for GoogleAdk {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames {
            inputs: &["gcp.vertex.agent.llm_request", "gcp.vertex.agent.tool_call_args"],
            outputs: &["gcp.vertex.agent.llm_response", "gcp.vertex.agent.tool_response"],
            ..AttributeNames::NONE
        }
    }
}

/// Langfuse.
pub(super) struct Langfuse;

impl Convention for Langfuse {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames {
            kind: Some("langfuse.observation.type"),
            kinds: &[
                ("generation", "LLM"),
                ("embedding", "EMBEDDING"),
                ("tool", "TOOL"),
                ("retriever", "RETRIEVER"),
                ("agent", "AGENT"),
                ("chain", "CHAIN"),
                ("evaluator", "EVALUATOR"),
                ("guardrail", "GUARDRAIL"),
                ("span", "UNKNOWN"),
            ],
            inputs: &["langfuse.observation.input"],
            outputs: &["langfuse.observation.output"],
            ..AttributeNames::NONE
        }
    }
}

/// Laminar.
pub(super) struct Laminar;

impl Convention for Laminar {
    fn names(&self) -> &'static AttributeNames {
        &AttributeNames {
            kind: Some("lmnr.span.type"),
            kinds: &[
                ("LLM", "LLM"),
                ("TOOL", "TOOL"),
                ("DEFAULT", "CHAIN"),
                ("PIPELINE", "CHAIN"),
                ("EXECUTOR", "AGENT"),
                ("EVALUATOR", "EVALUATOR"),
                ("HUMAN_EVALUATOR", "EVALUATOR"),
                ("EVALUATION", "EVALUATOR"),
                ("CACHED", "LLM"),
            ],
            input_tokens: Some("gen_ai.usage.input_tokens"),
            output_tokens: Some("gen_ai.usage.output_tokens"),
            inputs: &["lmnr.span.input"],
            outputs: &["lmnr.span.output"],
            models: &["gen_ai.response.model", "gen_ai.request.model"],
            provider: Some("gen_ai.system"),
            ..AttributeNames::NONE
        }
    }

    fn message_format(&self, attributes: &crate::attributes::SpanAttributes) -> Option<&'static str> {
        attributes.contains_key("lmnr.span.type").then_some("openai")
    }
}
