//! Names that MLflow has for attributes of a span.

/// The input of the span.
pub(crate) const INPUTS: &str = "mlflow.spanInputs";
/// Its output.
pub(crate) const OUTPUTS: &str = "mlflow.spanOutputs";
/// The kind of its work.
pub(crate) const SPAN_TYPE: &str = "mlflow.spanType";
/// Tokens of a language model.
pub(crate) const USAGE: &str = "mlflow.chat.tokenUsage";
/// Their cost.
pub(crate) const COST: &str = "mlflow.llm.cost";
/// Name of the model.
pub(crate) const MODEL: &str = "mlflow.llm.model";
/// The provider that runs the model.
pub(crate) const PROVIDER: &str = "mlflow.llm.provider";
/// In which form the messages are.
pub(crate) const MESSAGE_FORMAT: &str = "mlflow.message.format";
/// Tools that the model may call.
pub(crate) const TOOLS: &str = "mlflow.chat.tools";

/// Tokens given to a model, in a value of [`USAGE`].
pub(crate) const INPUT_TOKENS: &str = "input_tokens";
/// Tokens that it made.
pub(crate) const OUTPUT_TOKENS: &str = "output_tokens";
/// All tokens.
pub(crate) const TOTAL_TOKENS: &str = "total_tokens";
/// Tokens read from the provider's cache.
pub(crate) const CACHE_READ: &str = "cache_read_input_tokens";
/// Tokens written to it.
pub(crate) const CACHE_CREATION: &str = "cache_creation_input_tokens";
/// Of these, those that stay for an hour.
pub(crate) const CACHE_CREATION_1HR: &str = "cache_creation_input_tokens_above_1hr";

/// Cost of a model's input, in a value of [`COST`].
pub(crate) const INPUT_COST: &str = "input_cost";
/// Cost of its output.
pub(crate) const OUTPUT_COST: &str = "output_cost";
/// Their sum.
pub(crate) const TOTAL_COST: &str = "total_cost";
