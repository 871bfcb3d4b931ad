//! Responses of endpoints whose feature is switched off.

use http::StatusCode;
use mlflow_api::{Error, ErrorCode, Request};
use serde_json::json;

use crate::endpoint_response::EndpointResponse;

/// The response of endpoints whose feature MLflow has and this server does not. It is MLflow's
/// response if an operator has switched the feature off. Clients and pages show its message.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// Why the endpoint is not implemented, for `docs/reference/coverage.md`.
    pub reason: &'static str,
    code: ErrorCode,
    message: &'static str,
    is_fastapi: bool,
}

impl Refusal {
    /// The response of endpoints that start jobs, as in MLflow with
    /// `MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false`.
    pub const JOBS: Self = Self::new(
        ErrorCode::InternalError,
        "Mlflow server job execution feature is not enabled, please set environment variable \
         'MLFLOW_SERVER_ENABLE_JOB_EXECUTION' to 'true' to enable it.",
        "disabled: the server runs no jobs",
    );

    /// Creates a refusal in the format of MLflow's errors. In the message, a path parameter's name
    /// in braces is replaced by the value in the request.
    #[must_use]
    pub const fn new(code: ErrorCode, message: &'static str, reason: &'static str) -> Self {
        Self { reason, code, message, is_fastapi: false }
    }

    /// Uses the error format of endpoints that MLflow serves with `FastAPI`.
    #[must_use]
    pub const fn in_fastapi(self) -> Self {
        Self { is_fastapi: true, ..self }
    }

    /// Returns the response to a request. The response is not returned as an error, so no failed
    /// call is logged, even if the status is 500.
    pub(crate) fn response(&self, request: &Request) -> EndpointResponse {
        let mut message = self.message.to_owned();
        for (name, value) in &request.path {
            message = message.replace(&format!("{{{name}}}"), value);
        }
        let body = if self.is_fastapi {
            serde_json::to_vec(&json!({ "detail": message }))
        } else {
            serde_json::to_vec(&Error::new(self.code, message).body())
        };
        EndpointResponse::OtherProtocol {
            status: StatusCode::from_u16(self.code.http_status()).unwrap_or(StatusCode::NOT_IMPLEMENTED),
            content_type: "application/json",
            body: body.unwrap_or_default(),
        }
    }
}
