//! Errors in MLflow's terms.
//!
//! All crates share one small enum of codes and one error type. An [`Error`] has two texts. The
//! message is returned to the client, and is MLflow's own wherever MLflow has one. The internal
//! cause is logged and never leaves the server.

use std::fmt;

use serde::Serialize;

/// The result of an operation that can fail with an MLflow error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error codes of MLflow that this server uses (`ERROR_CODE_TO_HTTP_STATUS` in MLflow's
/// `exceptions.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// MLflow rejects a value. This is also the code of most other validation failures. 400.
    InvalidParameterValue,
    /// There is no attribute with this name. The code in the response is that of an invalid value.
    /// Only the error class in the response differs. 400.
    AttributeNotFound,
    /// The request is longer than the server accepts. MLflow has neither such a limit nor a code
    /// for it, so the code in the response is that of an invalid value. 413.
    RequestTooLarge,
    /// The request was not received completely in time. 408, which stock clients retry. MLflow
    /// waits forever and has no such code.
    RequestTimeout,
    /// The request is malformed, or the store cannot carry it out, for example because it violates
    /// a uniqueness constraint. MLflow's store returns some of these errors as unmodified database
    /// errors. 400.
    BadRequest,
    /// The outcome of the request is unknown, or its workspace is being deleted. 409, which stock
    /// clients do not retry automatically.
    Aborted,
    /// The name is already in use. 400.
    ResourceAlreadyExists,
    /// The entity does not exist. 404.
    ResourceDoesNotExist,
    /// The path does not exist. 404.
    EndpointNotFound,
    /// The caller is not authenticated. 401.
    Unauthenticated,
    /// The caller is not permitted to do this. 403.
    PermissionDenied,
    /// There are more requests of this kind than the table or the server allows. 429, which stock
    /// clients retry.
    ResourceExhausted,
    /// The entity is in a state that does not allow the operation. 500, as in MLflow.
    InvalidState,
    /// An unexpected failure. 500.
    InternalError,
    /// This server does not support the request. 501.
    NotImplemented,
    /// The feature is disabled on this server. Only workspaces can be disabled. 501, which stock
    /// clients do not retry. MLflow returns 500, which they retry seven times.
    FeatureDisabled,
    /// The table rejected requests for longer than the server was willing to retry. 503, which
    /// stock clients retry.
    TemporarilyUnavailable,
}

impl ErrorCode {
    /// Returns the name of the code in the JSON body.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidParameterValue | Self::AttributeNotFound | Self::RequestTooLarge => "INVALID_PARAMETER_VALUE",
            Self::BadRequest | Self::RequestTimeout => "BAD_REQUEST",
            Self::Aborted => "ABORTED",
            Self::ResourceAlreadyExists => "RESOURCE_ALREADY_EXISTS",
            Self::ResourceDoesNotExist => "RESOURCE_DOES_NOT_EXIST",
            Self::EndpointNotFound => "ENDPOINT_NOT_FOUND",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::InvalidState => "INVALID_STATE",
            Self::InternalError => "INTERNAL_ERROR",
            Self::NotImplemented => "NOT_IMPLEMENTED",
            Self::FeatureDisabled => "FEATURE_DISABLED",
            Self::TemporarilyUnavailable => "TEMPORARILY_UNAVAILABLE",
        }
    }

    /// Returns the HTTP status of the code.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match self {
            Self::InvalidParameterValue | Self::AttributeNotFound | Self::BadRequest | Self::ResourceAlreadyExists => {
                400
            }
            Self::Unauthenticated => 401,
            Self::PermissionDenied => 403,
            Self::RequestTimeout => 408,
            Self::Aborted => 409,
            Self::RequestTooLarge => 413,
            Self::ResourceDoesNotExist | Self::EndpointNotFound => 404,
            Self::ResourceExhausted => 429,
            Self::InvalidState | Self::InternalError => 500,
            Self::NotImplemented | Self::FeatureDisabled => 501,
            Self::TemporarilyUnavailable => 503,
        }
    }

    /// Returns the `error_class` in the body (`_CLIENT_ERROR_CODE_TO_ERROR_CLASS` in MLflow's
    /// `error_classification.py`).
    const fn class(self) -> &'static str {
        match self {
            Self::InvalidParameterValue | Self::RequestTooLarge | Self::RequestTimeout | Self::BadRequest => {
                "INVALID_PARAMETER_VALUE"
            }
            Self::ResourceAlreadyExists => "RESOURCE_ALREADY_EXISTS",
            Self::ResourceDoesNotExist | Self::EndpointNotFound => "RESOURCE_NOT_FOUND",
            Self::Unauthenticated | Self::PermissionDenied => "PERMISSION_DENIED",
            Self::AttributeNotFound => "ATTRIBUTE_NOT_FOUND",
            Self::FeatureDisabled => "FEATURE_DISABLED",
            Self::ResourceExhausted => "CP_REQUEST_RATE_LIMITED",
            Self::Aborted
            | Self::InvalidState
            | Self::InternalError
            | Self::NotImplemented
            | Self::TemporarilyUnavailable => "CLIENT_INTERNAL_ERROR",
        }
    }

    /// Returns the `sqlstate` in the body, which distinguishes errors of the client from errors of
    /// the server.
    const fn sqlstate(self) -> &'static str {
        match self {
            Self::AttributeNotFound => "KAM04",
            Self::ResourceExhausted => "KAMC3",
            Self::FeatureDisabled => "KAM00",
            _ if self.http_status() >= 500 => "XXM00",
            _ => "KAM00",
        }
    }
}

/// An error: MLflow's code, the message that is returned to the client, and the cause, which is
/// only logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// MLflow's code.
    pub code: ErrorCode,
    /// The message in the response.
    pub message: String,
    /// The cause, which is only logged.
    pub cause: Option<String>,
    /// Additional headers of the response: names in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
}

/// The JSON body of an error response.
#[derive(Serialize)]
pub struct ErrorBody<'a> {
    error_code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sqlstate: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_class: Option<&'static str>,
}

impl Error {
    /// Creates an error with a code and a message.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), cause: None, headers: Vec::new() }
    }

    /// Creates an error for a value that MLflow rejects. 400.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParameterValue, message)
    }

    /// Creates an error for an entity that does not exist. 404.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ResourceDoesNotExist, message)
    }

    /// Creates an error for a name whose key is already used by a different name. The key of a long
    /// name contains only a prefix and a hash of the name, so this is possible in theory, but no
    /// such pair of names is known. 400.
    #[must_use]
    pub fn key_taken(kind: &str) -> Self {
        let message = format!("The name of this {kind} collides with a different name. Choose another name.");
        Self::new(ErrorCode::BadRequest, message)
    }

    /// Creates an error for an unexpected failure. The response contains no details. 500.
    #[must_use]
    pub fn internal(cause: impl fmt::Display) -> Self {
        let message = "The server met an unexpected condition. Its log has the details.";
        Self { cause: Some(cause.to_string()), ..Self::new(ErrorCode::InternalError, message) }
    }

    /// Creates an error for a table that kept rejecting requests. The client may retry. 503.
    #[must_use]
    pub fn unavailable(cause: impl fmt::Display) -> Self {
        let message = "The store is busy. Try again.";
        Self { cause: Some(cause.to_string()), ..Self::new(ErrorCode::TemporarilyUnavailable, message) }
    }

    /// Creates an error for a request that the table throttled. The client may retry later. 429.
    #[must_use]
    pub fn throttled(cause: impl fmt::Display) -> Self {
        let message = "There are too many requests for the same data at this time. Try again later.";
        Self { cause: Some(cause.to_string()), ..Self::new(ErrorCode::ResourceExhausted, message) }
    }

    /// Creates an error (409) for a request with an unknown outcome: if it did create the entity, a
    /// retry could create a second one.
    #[must_use]
    pub fn unknown_outcome(cause: impl fmt::Display) -> Self {
        let message =
            "The store did not confirm this. It may have been created: look for it before you create it again.";
        Self { cause: Some(cause.to_string()), ..Self::new(ErrorCode::Aborted, message) }
    }

    /// Adds a header to the response of the error, such as `www-authenticate`.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Returns the JSON body of the response.
    #[must_use]
    pub fn body(&self) -> ErrorBody<'_> {
        // MLflow omits the other fields for requests that are not supported.
        let is_classified = self.code != ErrorCode::NotImplemented;
        ErrorBody {
            error_code: self.code.name(),
            message: &self.message,
            sqlstate: is_classified.then(|| self.code.sqlstate()),
            error_class: is_classified.then(|| self.code.class()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code.name(), self.message)?;
        match &self.cause {
            Some(cause) => write!(formatter, " ({cause})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
