//! Errors in MLflow's terms.
//!
//! One small enum of codes and one error type for every crate. An [`Error`] has two texts. The
//! client sees the message, which is MLflow's own wherever MLflow has one. The internal cause is
//! logged and never leaves the server.

use std::fmt;

use serde::Serialize;

/// Result of anything that can fail with an MLflow error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// MLflow's error codes, as far as this server answers with them (`ERROR_CODE_TO_HTTP_STATUS` in MLflow's `exceptions.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// A value MLflow refuses; also the code of most validation failures. 400.
    InvalidParameterValue,
    /// The same, of a name no attribute has; the class of the error says so. 400.
    AttributeNotFound,
    /// The same, of a request that is longer than any that is read: MLflow has no such limit, and no code for it. 413.
    RequestTooLarge,
    /// A request that does not come to its end in time: MLflow waits for ever, and has no code for it. 408, which stock clients repeat.
    RequestTimeout,
    /// A request that breaks a uniqueness rule where MLflow's store reports the bare database error. 400.
    BadRequest,
    /// The outcome of the request is unknown. 409, which stock clients do not repeat on their own.
    Aborted,
    /// A name that is already taken. 400.
    ResourceAlreadyExists,
    /// The entity is not there. 404.
    ResourceDoesNotExist,
    /// No such path. 404.
    EndpointNotFound,
    /// Nobody known sent the request. 401.
    Unauthenticated,
    /// The caller may not do this. 403.
    PermissionDenied,
    /// The table takes no more of this for now. 429, which stock clients retry.
    ResourceExhausted,
    /// The entity is in a state that does not allow the call. 500, as in MLflow.
    InvalidState,
    /// Anything unforeseen. 500.
    InternalError,
    /// A request that this server cannot serve. 501.
    NotImplemented,
    /// A feature that is off on this server: workspaces. 501, which stock clients do not repeat;
    /// MLflow's is 500, which they repeat seven times.
    FeatureDisabled,
    /// The table refused for longer than the server was willing to try again. 503, which stock clients retry.
    TemporarilyUnavailable,
}

impl ErrorCode {
    /// The code's name in the JSON body.
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

    /// The HTTP status that goes with the code.
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

    /// `error_class` of the body (`_CLIENT_ERROR_CODE_TO_ERROR_CLASS` in MLflow's `error_classification.py`).
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

    /// `sqlstate` of the body: a client's fault or the server's.
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

/// A failure: MLflow's code, the message the client sees, and the cause it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// MLflow's code.
    pub code: ErrorCode,
    /// The text in the answer.
    pub message: String,
    /// For the log only.
    pub cause: Option<String>,
    /// Further headers of the answer: names in small letters, and values.
    pub headers: Vec<(&'static str, String)>,
}

/// The JSON body of an error answer.
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
    /// An error of `code` with `message`.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), cause: None, headers: Vec::new() }
    }

    /// A value MLflow refuses. 400.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParameterValue, message)
    }

    /// An entity that is not there. 404.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ResourceDoesNotExist, message)
    }

    /// A name under whose key there is another: of a long name, a key has only the beginning and a hash. Nobody is known to have found two
    /// such names. 400.
    #[must_use]
    pub fn key_taken(kind: &str) -> Self {
        let message = format!("The name of this {kind} has the key of another name. Choose another name.");
        Self::new(ErrorCode::BadRequest, message)
    }

    /// Something the server did not foresee; the client learns only that. 500.
    #[must_use]
    pub fn internal(cause: impl fmt::Display) -> Self {
        let message = "The server met an unexpected condition. Its log has the details.";
        Self { cause: Some(cause.to_string()), ..Self::new(ErrorCode::InternalError, message) }
    }

    /// The table kept refusing; the client may try again. 503.
    #[must_use]
    pub fn unavailable(cause: impl fmt::Display) -> Self {
        let message = "The store is busy. Try again.";
        Self { cause: Some(cause.to_string()), ..Self::new(ErrorCode::TemporarilyUnavailable, message) }
    }

    /// The table throttled the request; the client may try again later. 429.
    #[must_use]
    pub fn throttled(cause: impl fmt::Display) -> Self {
        let message = "There are too many requests for the same data at this time. Try again later.";
        Self { cause: Some(cause.to_string()), ..Self::new(ErrorCode::ResourceExhausted, message) }
    }

    /// Something may have been created, or not; repeating the request could create it twice. 409.
    #[must_use]
    pub fn unknown_outcome(cause: impl fmt::Display) -> Self {
        let message =
            "The store did not confirm this. It may have been created: look for it before you create it again.";
        Self { cause: Some(cause.to_string()), ..Self::new(ErrorCode::Aborted, message) }
    }

    /// The same error, whose answer has a header more, such as `www-authenticate`.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The JSON body of the answer.
    #[must_use]
    pub fn body(&self) -> ErrorBody<'_> {
        // MLflow says no more about requests that it cannot serve.
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
