//! Errors of requests to a bucket.

use runtime::aws::AwsError;
use thiserror::Error;

/// The outcome of a request.
pub type Result<T, E = BucketFailure> = std::result::Result<T, E>;

/// The reason why a request failed. The messages are meant for the log.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BucketFailure {
    /// The bucket responded with a permanent error.
    #[error("the bucket answered {status} {code}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// S3's error code, such as `NoSuchKey`. Empty if the response has no body.
        code: String,
        /// S3's message.
        message: String,
    },
    /// Every attempt failed or was throttled.
    #[error("the bucket did not answer: {0}")]
    Unavailable(String),
    /// No credentials or no region are configured, or a response is malformed.
    #[error("{0}")]
    Broken(String),
}

impl BucketFailure {
    pub(crate) fn broken(cause: impl std::fmt::Display) -> Self {
        Self::Broken(cause.to_string())
    }

    /// Checks whether the requested object or upload does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404, code, .. } if code != "NoSuchBucket")
    }

    /// Checks whether the object ends before the requested range begins.
    #[must_use]
    pub fn is_of_range(&self) -> bool {
        matches!(self, Self::Refused { status: 416, .. })
    }

    /// Checks whether the bucket rejected the parts of an upload, which is the fault of the client
    /// that sent them.
    #[must_use]
    pub fn is_of_parts(&self) -> bool {
        let of_parts =
            |code: &str| matches!(code, "InvalidPart" | "InvalidPartOrder" | "EntityTooSmall" | "MalformedXML");
        matches!(self, Self::Refused { code, .. } if of_parts(code))
    }

    /// Returns the failure for an error code of the bucket, which is either transient or permanent.
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

/// Converts errors of the code that all requests to AWS services share: missing credentials, a
/// missing region, and failed signatures.
impl From<AwsError> for BucketFailure {
    fn from(error: AwsError) -> Self {
        Self::broken(error)
    }
}
