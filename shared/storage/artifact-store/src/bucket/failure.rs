//! How a request to a bucket may fail.

use thiserror::Error;

/// The outcome of a request.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why there is no answer that helps. The texts are for the log.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    /// The bucket answered with an error that repeating does not mend.
    #[error("the bucket answered {status} {code}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// S3's code, such as `NoSuchKey`. Empty where the answer has no body.
        code: String,
        /// S3's message.
        message: String,
    },
    /// It kept failing, or kept asking for patience.
    #[error("the bucket did not answer: {0}")]
    Unavailable(String),
    /// There are no credentials, there is no region, or an answer could not be read.
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    pub(crate) fn broken(cause: impl std::fmt::Display) -> Self {
        Self::Broken(cause.to_string())
    }

    /// Whether the entity that the request named is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404, code, .. } if code != "NoSuchBucket")
    }

    /// Whether the bucket refuses the parts of an upload. Other refusals are no fault of the client
    /// that sent the parts.
    #[must_use]
    pub fn is_of_parts(&self) -> bool {
        let of_parts =
            |code: &str| matches!(code, "InvalidPart" | "InvalidPartOrder" | "EntityTooSmall" | "MalformedXML");
        matches!(self, Self::Refused { code, .. } if of_parts(code))
    }

    /// An error of the bucket with this code, which passes or does not.
    pub(crate) fn of_code(status: u16, code: String, message: String) -> Self {
        let passes = matches!(
            code.as_str(),
            "InternalError"
                | "SlowDown"
                | "ServiceUnavailable"
                | "RequestTimeout"
                | "OperationAborted"
                | "ThrottlingException"
        );
        if passes || status == 429 || status >= 500 {
            Self::Unavailable(format!("{status} {code}: {message}"))
        } else {
            Self::Refused { status, code, message }
        }
    }
}
