//! Requests that the API did not answer, and what their senders can do.

use std::fmt::Display;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::json;

/// Bytes of a request's body that API Gateway takes.
pub(crate) const LONGEST_BODY: usize = 10 << 20;

/// The reason. What else is known of it is in the log.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Credentials were there when the proxy started.
    NoCredentials,
    /// The credentials have expired, and there are no others.
    Expired,
    /// API Gateway does not take the signature, which is for this region.
    Forbidden { region: String },
    /// No connection to this origin, or none that lasts.
    Unreachable { origin: String },
    /// No answer from this origin in time.
    Late { origin: String },
    /// The request cannot be signed as it is.
    Unsigned,
    /// The body is longer than the API takes.
    TooLong,
    /// The body ended too early.
    CutOff,
    /// Requests of this method are not passed on.
    Method,
    /// The API leads to an address that is not asked.
    LedAstray,
    /// The bucket refuses a URL that the stack has signed.
    Bucket(StatusCode),
}

impl Refusal {
    /// The request cannot be signed, for this reason.
    pub(crate) fn unsigned(error: impl Display) -> Self {
        tracing::debug!(%error, "a request cannot be signed");
        Self::Unsigned
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::NoCredentials | Self::Expired | Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::Unreachable { .. } | Self::LedAstray => StatusCode::BAD_GATEWAY,
            Self::Late { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Unsigned | Self::CutOff => StatusCode::BAD_REQUEST,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Bucket(status) => *status,
        }
    }

    /// As MLflow's errors are called.
    fn code(&self) -> &'static str {
        match self {
            Self::NoCredentials | Self::Expired | Self::Forbidden { .. } => "PERMISSION_DENIED",
            Self::Unreachable { .. } | Self::Late { .. } | Self::LedAstray => "TEMPORARILY_UNAVAILABLE",
            Self::Unsigned | Self::TooLong | Self::CutOff | Self::Method => "BAD_REQUEST",
            Self::Bucket(StatusCode::NOT_FOUND) => "RESOURCE_DOES_NOT_EXIST",
            Self::Bucket(_) => "INTERNAL_ERROR",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::NoCredentials => "The AWS credentials cannot be renewed. Sign in to AWS again, end the proxy, and start it again.".to_owned(),
            Self::Expired => "The AWS credentials of the proxy have expired. Sign in to AWS again, end the proxy, and start it again.".to_owned(),
            Self::Forbidden { region } => format!(
                "API Gateway refused the signature. The AWS credentials of the proxy need execute-api:Invoke on this API and must not have \
                 expired, the region of the API has to be {region} (--region), and the clock of this machine has to be right."
            ),
            Self::Unreachable { origin } => {
                format!("{origin} cannot be reached. Look whether the tracking URI is right, and whether this machine is online.")
            }
            Self::Late { origin } => format!("{origin} did not answer in time. Try again."),
            Self::Unsigned => "This request cannot be signed: its path or its parameters are no text.".to_owned(),
            Self::TooLong => format!(
                "The API takes {LONGEST_BODY} bytes in a request, and this one is longer. Send longer files with MLflow's client, in parts."
            ),
            Self::CutOff => "The request ended before its body was complete.".to_owned(),
            Self::Method => "Requests of this method are not passed on.".to_owned(),
            Self::LedAstray => "The API leads to an address that this proxy does not ask: without TLS, or by too many redirects.".to_owned(),
            Self::Bucket(StatusCode::NOT_FOUND) => "The file is not in the bucket.".to_owned(),
            Self::Bucket(status) => format!("The bucket answered {} to the URL that the stack has signed. Try again.", status.as_u16()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error_code": self.code(), "message": self.message() });
        let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
        (self.status(), headers, body.to_string()).into_response()
    }
}
