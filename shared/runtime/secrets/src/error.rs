//! Errors of sealing and opening secrets, and of key files.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The reason why a secret cannot be sealed or opened. The messages are meant for the log, and
/// contain no part of a secret or a key.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SecretError {
    /// No key is configured.
    #[error("no key for secrets is configured")]
    NotConfigured,
    /// The key cannot be used: it is disabled, deleted, not permitted, or not the key that the secret
    /// was sealed with, or KMS did not respond. Opening the secret later may succeed.
    #[error("the key for secrets cannot be used: {0}")]
    KeyUnavailable(String),
    /// The sealed secret was changed, or belongs to another entity.
    #[error("the sealed secret was changed, or belongs to another entity")]
    Tampered,
    /// The secret is longer than [`crate::MAX_SECRET_BYTES`].
    #[error("the secret is too long")]
    TooLong,
    /// The process cannot encrypt, for example because it has no random numbers.
    #[error("encryption failed")]
    Encryption,
}

/// The reason why a key file cannot be used or created.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("the key file {path} cannot be used: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Users other than the owner may read or write the file.
    #[error("the key file {path} must be accessible to its owner only: run `chmod 600 {path}`")]
    Permissions {
        /// The file.
        path: PathBuf,
    },
    /// The file does not contain a key.
    #[error("the key file {path} must contain 32 random bytes in base64")]
    Malformed {
        /// The file.
        path: PathBuf,
    },
}
