//! Errors of requests to AWS services.

use std::fmt;

use thiserror::Error;

/// The reason why a request failed. The messages are meant for the log.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AwsError {
    /// The service responded with a permanent error.
    #[error("{service} answered {status} {code}: {message}")]
    Refused {
        /// Name of the service.
        service: &'static str,
        /// HTTP status.
        status: u16,
        /// The service's error code, such as `ResourceNotFoundException`. Empty if it sent none.
        code: String,
        /// The service's message.
        message: String,
    },
    /// All attempts failed with transient errors, or were throttled.
    #[error("{service} did not answer: {cause}")]
    Unavailable {
        /// Name of the service.
        service: &'static str,
        /// Why the last attempt failed.
        cause: String,
    },
    /// The invoked function failed. Its output may contain what it was invoked with.
    #[error("the invoked function failed ({0})")]
    Function(String),
    /// No credentials or no region are configured, a response is malformed, or a payload is too
    /// large.
    #[error("{0}")]
    Broken(String),
}

impl AwsError {
    pub(crate) fn broken(cause: impl fmt::Display) -> Self {
        Self::Broken(cause.to_string())
    }

    /// Returns the service's error code, if the service responded with a permanent error.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }
}
