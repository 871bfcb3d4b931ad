//! Responses to exports that cannot be read.

use serde_json::json;

/// MLflow's response to an export that it does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportError {
    /// HTTP status.
    pub status: u16,
    /// Reason for the rejection.
    pub detail: String,
}

impl ExportError {
    pub(crate) fn new(status: u16, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    /// Returns the response to a body that cannot be parsed.
    pub(crate) fn format() -> Self {
        Self::new(400, "Invalid OpenTelemetry format")
    }

    /// Returns the body of the response, which is JSON.
    #[must_use]
    pub fn body(&self) -> String {
        json!({ "detail": self.detail }).to_string()
    }
}
