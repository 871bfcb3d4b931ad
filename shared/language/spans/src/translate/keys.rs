//! MLflow's names for the attributes of a span.

/// Input of the span.
pub(crate) const INPUTS: &str = "mlflow.spanInputs";
/// Output of the span.
pub(crate) const OUTPUTS: &str = "mlflow.spanOutputs";
/// Type of the span.
pub(crate) const SPAN_TYPE: &str = "mlflow.spanType";
/// Token counts of a language model.
pub(crate) const USAGE: &str = "mlflow.chat.tokenUsage";
/// Cost of the tokens.
pub(crate) const COST: &str = "mlflow.llm.cost";
/// Name of the model.
pub(crate) const MODEL: &str = "mlflow.llm.model";
/// The provider that runs the model.
pub(crate) const PROVIDER: &str = "mlflow.llm.provider";
/// Format of the messages.
pub(crate) const MESSAGE_FORMAT: &str = "mlflow.message.format";
/// Tools that the model may call.
pub(crate) const TOOLS: &str = "mlflow.chat.tools";

/// Input tokens of a model, in a value of [`USAGE`].
pub(crate) const INPUT_TOKENS: &str = "input_tokens";
/// Output tokens of the model.
pub(crate) const OUTPUT_TOKENS: &str = "output_tokens";
/// All tokens.
pub(crate) const TOTAL_TOKENS: &str = "total_tokens";
/// Tokens read from the provider's cache.
pub(crate) const CACHE_READ: &str = "cache_read_input_tokens";
/// Tokens written to the provider's cache.
pub(crate) const CACHE_CREATION: &str = "cache_creation_input_tokens";
/// Tokens written to the provider's cache that are kept for an hour.
pub(crate) const CACHE_CREATION_1HR: &str = "cache_creation_input_tokens_above_1hr";

/// Cost of a model's input, in a value of [`COST`].
pub(crate) const INPUT_COST: &str = "input_cost";
/// Cost of the model's output.
pub(crate) const OUTPUT_COST: &str = "output_cost";
/// Sum of both costs.
pub(crate) const TOTAL_COST: &str = "total_cost";
