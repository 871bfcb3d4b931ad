//! Answers to exports that cannot be read.

use serde_json::json;

/// MLflow's answer to an export that it does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The reason.
    pub detail: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    /// Nothing that could be parsed.
    pub(crate) fn format() -> Self {
        Self::new(400, "Invalid OpenTelemetry format")
    }

    /// The answer's body, which is JSON.
    #[must_use]
    pub fn body(&self) -> String {
        json!({ "detail": self.detail }).to_string()
    }
}
