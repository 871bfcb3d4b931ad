//! The credentials by which a request proves its sender.

use std::fmt;
use std::net::IpAddr;

use mlflow_api::{Error, UserName};

/// Credentials of a request. Their debug output holds no secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user's name and password.
    Password(UserName, String),
    /// A session that a browser has opened for a user, by the digest of its secret.
    Session(UserName, String),
    /// A token of a user, by the digest of its secret.
    Token(UserName, String),
    /// The signature of a principal of AWS, which the gateway has checked.
    Signature(String),
}

/// The credentials of a request, with its circumstances.
#[derive(Debug)]
pub struct Sent {
    /// The credentials.
    pub credentials: Credentials,
    /// The address that it came from.
    pub from: Option<IpAddr>,
    /// The answer if they are nobody's.
    pub refusal: Error,
}

impl PartialEq for Sent {
    fn eq(&self, other: &Self) -> bool {
        self.credentials == other.credentials
    }
}

impl Eq for Sent {}

impl Credentials {
    /// The user whom they name, if they name one. Whether they are his has to be looked at.
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
