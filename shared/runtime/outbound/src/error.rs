//! Errors of requests.

use thiserror::Error;

use crate::address_rules::RefusedAddress;
use crate::url::UrlError;

/// The reason why an attempt returned no response. The messages contain neither the URL's path nor
/// anything that the server has sent, except in [`OutboundError::Broken`], where hyper describes the
/// malformed part.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OutboundError {
    /// The client's policy does not allow the URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The host name resolves to an address that is not allowed.
    #[error("the host name resolves to an address that is not allowed: {0}")]
    Address(#[from] RefusedAddress),
    /// The host name cannot be resolved.
    #[error("the host name cannot be resolved: {0}")]
    Unresolvable(String),
    /// No address accepted a connection.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// The server's certificate is not valid for the host name, or the handshake failed.
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    /// The attempt took too long.
    #[error("timed out while {0}")]
    TimedOut(&'static str),
    /// The connection was lost, or the response is malformed.
    #[error("the exchange failed: {0}")]
    Broken(String),
    /// The request cannot be sent because of a problem in this process, not at the server: a header
    /// is invalid, or the machine has no root certificates.
    #[error("the request cannot be sent: {0}")]
    Setup(String),
}

impl OutboundError {
    /// Checks whether the server could not be reached, or did not respond in time. Further requests
    /// to the server are likely to fail in the same way, after the same time.
    #[must_use]
    pub fn is_unresponsive(&self) -> bool {
        matches!(self, Self::Unresolvable(_) | Self::Unreachable(_) | Self::TimedOut(_))
    }

    /// Checks whether the URL or the address is not allowed.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Url(_) | Self::Address(_))
    }
}
