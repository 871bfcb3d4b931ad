//! The credentials that identify the sender of a request.

use std::fmt;
use std::net::IpAddr;

use mlflow_api::{Error, UserName};

/// Credentials of a request. The `Debug` output does not contain secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user's name and password.
    Password(UserName, String),
    /// A browser session of a user, and the digest of its secret.
    Session(UserName, String),
    /// A token of a user, and the digest of its secret.
    Token(UserName, String),
    /// An AWS principal that signed the request. The gateway has verified the signature.
    Signature(String),
}

/// The credentials of a request, with the context needed to check them.
#[derive(Debug)]
pub struct RequestCredentials {
    /// The credentials.
    pub credentials: Credentials,
    /// The client's IP address, if known.
    pub client_address: Option<IpAddr>,
    /// The error to return if the credentials are not valid.
    pub refusal: Error,
}

impl PartialEq for RequestCredentials {
    fn eq(&self, other: &Self) -> bool {
        self.credentials == other.credentials
    }
}

impl Eq for RequestCredentials {}

impl Credentials {
    /// Returns the user that the credentials claim to belong to, if any. The claim has not been
    /// verified.
    #[must_use]
    pub fn user(&self) -> Option<&UserName> {
        match self {
            Self::Password(user, _) | Self::Session(user, _) | Self::Token(user, _) => Some(user),
            Self::Signature(_) => None,
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, of): (_, &str) = match self {
            Self::Password(user, _) => ("Password", user.as_str()),
            Self::Session(user, _) => ("Session", user.as_str()),
            Self::Token(user, _) => ("Token", user.as_str()),
            Self::Signature(principal) => ("Signature", principal),
        };
        formatter.debug_tuple(kind).field(&of).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let credentials = Credentials::Password(UserName::named("ann").unwrap(), "correct horse battery".to_owned());
        assert!(!format!("{credentials:?}").contains("horse"), "{credentials:?}");
    }
}
