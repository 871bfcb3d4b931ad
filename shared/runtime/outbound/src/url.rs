//! URLs that users choose, parsed and checked.

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;
use url::{Host, Position, Url};

use crate::address_rules::{RefusedAddress, check};

/// Maximum length of a URL in bytes.
pub const MAX_URL_BYTES: usize = 2048;

/// The schemes that URLs may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schemes {
    /// `https` only.
    #[default]
    Https,
    /// `https` and `http`.
    HttpsAndHttp,
}

impl Schemes {
    /// Returns the names of the schemes.
    #[must_use]
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Https => &["https"],
            Self::HttpsAndHttp => &["https", "http"],
        }
    }
}

/// The URLs and addresses that an operator allows. The default is the strictest policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboundPolicy {
    /// The schemes that URLs may have.
    pub schemes: Schemes,
    /// Whether servers of this machine and of private networks may be connected to.
    pub allow_private_peers: bool,
}

/// The reason why a URL is refused. The messages contain no part of the URL that may be secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UrlError {
    /// The URL is longer than [`MAX_URL_BYTES`].
    #[error("the URL is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
    /// The URL cannot be parsed.
    #[error("the URL is malformed: {0}")]
    Malformed(url::ParseError),
    /// The scheme is not allowed, or the URL has none.
    #[error("the URL's scheme {scheme:?} is not allowed")]
    Scheme {
        /// The scheme in lower case. Empty if the URL has none.
        scheme: String,
    },
    /// The URL has no host.
    #[error("the URL has no host")]
    NoHost,
    /// The URL contains a user name or a password.
    #[error("the URL contains credentials")]
    Credentials,
    /// The host is an IP address that is not allowed.
    #[error(transparent)]
    Address(#[from] RefusedAddress),
}

/// A URL that satisfies an [`OutboundPolicy`]. If the host is an IP address, in any spelling, the
/// policy allows the address. If it is a name, [`crate::OutboundClient`] checks the addresses that
/// it resolves to.
///
/// The path and the query may be secret, so `Debug` does not print them.
#[derive(Clone, PartialEq, Eq)]
pub struct OutboundUrl {
    url: Url,
}

impl OutboundUrl {
    /// Parses a URL. A fragment is allowed, but is never sent.
    ///
    /// # Errors
    /// A [`UrlError`] if the policy does not allow the URL.
    pub fn parse(text: &str, policy: OutboundPolicy) -> Result<Self, UrlError> {
        if text.len() > MAX_URL_BYTES {
            return Err(UrlError::TooLong);
        }
        let url = Url::parse(text).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => UrlError::Scheme { scheme: String::new() },
            url::ParseError::EmptyHost => UrlError::NoHost,
            other => UrlError::Malformed(other),
        })?;
        let url = Self { url };
        url.check(policy)?;
        Ok(url)
    }

    /// Checks the URL against a policy, which may differ from the policy that it was parsed with.
    pub(crate) fn check(&self, policy: OutboundPolicy) -> Result<(), UrlError> {
        let url = &self.url;
        if !policy.schemes.names().contains(&url.scheme()) {
            return Err(UrlError::Scheme { scheme: url.scheme().to_owned() });
        }
        if url.host().is_none() {
            return Err(UrlError::NoHost);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::Credentials);
        }
        match self.literal() {
            Some(address) => Ok(check(address, policy.allow_private_peers)?),
            None => Ok(()),
        }
    }

    /// Returns the normalized URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Returns the host. An IPv6 address is in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Returns the address if the host is an IP address.
    pub(crate) fn literal(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns the value of the `Host` header. The port is omitted if it is the scheme's default.
    pub(crate) fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// Returns the path and the query.
    pub(crate) fn target(&self) -> &str {
        &self.url[Position::BeforePath..Position::AfterQuery]
    }
}

impl fmt::Debug for OutboundUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OutboundUrl({}://{}/…)", self.url.scheme(), self.authority())
    }
}

#[cfg(test)]
mod tests;
