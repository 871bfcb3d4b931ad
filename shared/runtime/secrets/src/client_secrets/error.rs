//! Errors of reading client secrets.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The reason why a client secret cannot be read. The messages are meant for operators, and contain
/// no part of a secret.
#[derive(Debug, Error)]
pub enum ClientSecretError {
    /// This process has no place for client secrets.
    #[error("no place for client secrets is configured")]
    NotConfigured,
    /// There is no secret for the provider.
    #[error("there is no client secret at {place}: store the secret that the provider has issued")]
    Missing {
        /// Path of the file, or name of the parameter.
        place: String,
    },
    /// Users other than the owner have access to the file.
    #[error("the client secret {path} must be accessible to its owner only: run `chmod 600 {path}`")]
    Permissions {
        /// The file.
        path: PathBuf,
    },
    /// The stored value is empty, too long, or contains characters other than printable ASCII.
    #[error("the client secret at {place} must be one line of up to 4096 printable characters")]
    Malformed {
        /// Path of the file, or name of the parameter.
        place: String,
    },
    /// The file cannot be read.
    #[error("the client secret {path} cannot be read: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Parameter Store did not return the secret. A later attempt may succeed.
    #[error("the client secret at {place} cannot be read: {cause}")]
    Unavailable {
        /// Name of the parameter.
        place: String,
        /// The cause.
        cause: String,
    },
}
