//! Which URLs of providers are allowed.

use url::{Host, Url};

/// Maximum length of a URL in bytes.
pub(crate) const MAX_URL_BYTES: usize = 2048;

/// Checks whether a URL is `https`, or `http` on this machine. Local providers are allowed for
/// tests, because no other machine can read what is sent to them.
pub(crate) fn is_secure(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(url),
        _ => false,
    }
}

/// Checks whether the host of a URL is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Checks whether a URL contains a user name, a password or a fragment, which no URL of a provider
/// may contain.
pub(crate) fn has_extras(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some() || url.fragment().is_some()
}
