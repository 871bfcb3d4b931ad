//! Requests and responses.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Method};

use crate::url::OutboundUrl;

/// Maximum number of bytes of a response's body that are read.
pub const MAX_BODY_BYTES: usize = 64 << 10;

/// A request.
#[derive(Clone, Debug)]
pub struct OutboundRequest<'a> {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: &'a OutboundUrl,
    /// The headers. `Host`, `Content-Length`, `Accept-Encoding` and connection-specific headers are
    /// set by the client, and values given here are dropped.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The timeouts.
    pub timeouts: OutboundTimeouts,
}

/// The timeouts of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboundTimeouts {
    /// Timeout for resolving the name and connecting to one of its addresses.
    pub connect: Duration,
    /// Timeout of the whole attempt, including `connect`, the TLS handshake and the response's body.
    pub total: Duration,
}

impl Default for OutboundTimeouts {
    /// Returns 10 s for connecting, and 30 s in total.
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), total: Duration::from_secs(30) }
    }
}

/// A response, which may be an error or a redirect.
#[derive(Clone, Debug)]
pub struct OutboundResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The beginning of the body. Compressed bodies are not decompressed.
    pub body: Bytes,
    /// Whether the body is longer than [`MAX_BODY_BYTES`].
    pub is_truncated: bool,
}

impl OutboundResponse {
    /// Returns a header. `None` if it is absent or not ASCII.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the delay that the `Retry-After` header requests, counted from `now`. `None` if the
    /// header is absent or invalid.
    #[must_use]
    pub fn retry_after(&self, now: SystemTime) -> Option<Duration> {
        let value = self.header("retry-after")?.trim();
        if value.bytes().all(|byte| byte.is_ascii_digit()) {
            return value.parse().ok().map(Duration::from_secs);
        }
        let time = httpdate::parse_http_date(value).ok()?;
        Some(time.duration_since(now).unwrap_or_default())
    }
}
