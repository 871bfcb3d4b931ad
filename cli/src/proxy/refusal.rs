//! Responses to requests that fail in the proxy, with advice for their senders.

use std::fmt::Display;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::json;

/// Maximum length of a request body in API Gateway, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 10 << 20;

/// Reason of a failure. Further details are only logged.
#[derive(Debug)]
pub(crate) enum ProxyRefusal {
    /// Credentials were available when the proxy started, but no longer are.
    NoCredentials,
    /// The credentials have expired, and no new ones are available.
    Expired,
    /// API Gateway rejects the signature. The field has the region that it was made for.
    Forbidden { region: String },
    /// The connection to the origin in the field failed or broke.
    Unreachable { origin: String },
    /// The origin in the field did not respond in time.
    Timeout { origin: String },
    /// The request cannot be signed.
    Unsigned,
    /// The body is longer than API Gateway accepts.
    TooLong,
    /// The body ended prematurely.
    IncompleteBody,
    /// Requests of this method are not forwarded.
    Method,
    /// The API redirects to a URL that the proxy does not follow for security reasons.
    ForbiddenRedirect,
    /// The bucket rejects a URL that the stack has signed.
    Bucket(StatusCode),
}

impl ProxyRefusal {
    /// Returns the refusal of a request that cannot be signed, and logs the error.
    pub(crate) fn unsigned(error: impl Display) -> Self {
        tracing::debug!(%error, "a request cannot be signed");
        Self::Unsigned
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::NoCredentials | Self::Expired | Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::Unreachable { .. } | Self::ForbiddenRedirect => StatusCode::BAD_GATEWAY,
            Self::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Unsigned | Self::IncompleteBody => StatusCode::BAD_REQUEST,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Bucket(status) => *status,
        }
    }

    /// Returns the error code in MLflow's terms.
    fn code(&self) -> &'static str {
        match self {
            Self::NoCredentials | Self::Expired | Self::Forbidden { .. } => "PERMISSION_DENIED",
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::ForbiddenRedirect => "TEMPORARILY_UNAVAILABLE",
            Self::Unsigned | Self::TooLong | Self::IncompleteBody | Self::Method => "BAD_REQUEST",
            Self::Bucket(StatusCode::NOT_FOUND) => "RESOURCE_DOES_NOT_EXIST",
            Self::Bucket(_) => "INTERNAL_ERROR",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::NoCredentials => "The AWS credentials cannot be renewed. Sign in to AWS again, and restart the proxy.".to_owned(),
            Self::Expired => "The AWS credentials of the proxy have expired. Sign in to AWS again, and restart the proxy.".to_owned(),
            Self::Forbidden { region } => format!(
                "API Gateway refused the signature. Check that the AWS credentials of the proxy allow execute-api:Invoke on this API and \
                 have not expired, that the region of the API is {region} (--region), and that the clock of this machine is right."
            ),
            Self::Unreachable { origin } => {
                format!("{origin} cannot be reached. Check the tracking URI and the network connection.")
            }
            Self::Timeout { origin } => format!("{origin} did not respond in time. Try again."),
            Self::Unsigned => "This request cannot be signed: its path or a parameter is not valid UTF-8.".to_owned(),
            Self::TooLong => format!(
                "The request is longer than {MAX_BODY_BYTES} bytes, the API's limit. Upload larger files with MLflow's client, which sends them in parts."
            ),
            Self::IncompleteBody => "The request ended before its body was complete.".to_owned(),
            Self::Method => "Requests of this method are not forwarded.".to_owned(),
            Self::ForbiddenRedirect => "The API redirects to a URL that this proxy does not follow: it lacks TLS, or there are too many redirects.".to_owned(),
            Self::Bucket(StatusCode::NOT_FOUND) => "The file is not in the bucket.".to_owned(),
            Self::Bucket(status) => format!("The bucket returned {} for a URL that the stack has signed. Try again.", status.as_u16()),
        }
    }
}

impl IntoResponse for ProxyRefusal {
    fn into_response(self) -> Response {
        let body = json!({ "error_code": self.code(), "message": self.message() });
        let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
        (self.status(), headers, body.to_string()).into_response()
    }
}
