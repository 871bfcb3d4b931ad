//! The client: resolves, checks, connects, and sends.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::address_rules::check;
use crate::error::OutboundError;
use crate::exchange::exchange;
use crate::message::{OutboundRequest, OutboundResponse, OutboundTimeouts};
use crate::resolver::{Resolver, SystemResolver};
use crate::tls::Tls;
use crate::url::{OutboundPolicy, OutboundUrl};

/// Maximum number of addresses of one host name that a request tries.
const MAX_ADDRESSES: usize = 8;

/// A client that connects only to addresses that its policy allows. Clones share the TLS
/// configuration.
#[derive(Clone)]
pub struct OutboundClient {
    policy: OutboundPolicy,
    resolver: Arc<dyn Resolver>,
    tls: Arc<Tls>,
}

impl OutboundClient {
    /// Returns a client that uses the system's resolver and root certificates.
    #[must_use]
    pub fn new(policy: OutboundPolicy) -> Self {
        Self { policy, resolver: Arc::new(SystemResolver::default()), tls: Arc::default() }
    }

    /// Replaces the resolver, for tests. The addresses that it returns are checked as well.
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl Resolver) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Replaces the root certificates.
    ///
    /// # Errors
    /// None of the certificates can be read.
    pub fn with_roots(mut self, roots: &[CertificateDer<'static>]) -> Result<Self, OutboundError> {
        self.tls = Arc::new(Tls::trusting(roots)?);
        Ok(self)
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> OutboundPolicy {
        self.policy
    }

    /// Checks whether the URL's host resolves to allowed addresses only. Sends nothing to the host.
    ///
    /// The addresses of a name may change, so [`Self::send`] repeats the check.
    ///
    /// # Errors
    /// An [`OutboundError`] if the name cannot be resolved within the duration `within`, or if any
    /// of its addresses is not allowed.
    pub async fn check(&self, url: &OutboundUrl, within: Duration) -> Result<(), OutboundError> {
        let checked = timeout(within, self.allowed_addresses(url)).await;
        checked.map_err(|_| OutboundError::TimedOut("resolving the host name"))?.map(drop)
    }

    /// Sends a request, once. Redirects are not followed. Like error statuses, they are returned as
    /// responses.
    ///
    /// # Errors
    /// An [`OutboundError`] if there is no response.
    pub async fn send(&self, request: OutboundRequest<'_>) -> Result<OutboundResponse, OutboundError> {
        let OutboundTimeouts { connect, total } = request.timeouts;
        let deadline = Instant::now() + total;
        let connected = timeout(connect.min(total), self.connect(request.url, Instant::now() + connect.min(total)));
        let stream = connected.await.map_err(|_| OutboundError::TimedOut("connecting"))??;
        let answered = timeout_at(deadline, async {
            if request.url.is_tls() {
                exchange(self.tls.connect(request.url, stream).await?, &request).await
            } else {
                exchange(stream, &request).await
            }
        });
        answered.await.map_err(|_| OutboundError::TimedOut("waiting for the response"))?
    }

    /// Resolves the host, once, and returns its addresses. Fails if any of them is not allowed.
    async fn allowed_addresses(&self, url: &OutboundUrl) -> Result<Vec<IpAddr>, OutboundError> {
        url.check(self.policy)?;
        if let Some(address) = url.literal() {
            return Ok(vec![address]);
        }
        let resolved = self.resolver.resolve(url.host()).await;
        let addresses = resolved.map_err(|error| OutboundError::Unresolvable(error.to_string()))?;
        if addresses.is_empty() {
            return Err(OutboundError::Unresolvable("it has no addresses".to_owned()));
        }
        for address in &addresses {
            check(*address, self.policy.allow_private_peers)?;
        }
        Ok(addresses)
    }

    /// Connects to the first address that accepts a connection. Each address gets an equal part of
    /// the remaining time, so that an unresponsive one does not use all of it.
    async fn connect(&self, url: &OutboundUrl, deadline: Instant) -> Result<TcpStream, OutboundError> {
        let mut addresses = VecDeque::from(self.allowed_addresses(url).await?);
        addresses.truncate(MAX_ADDRESSES);
        let mut last = OutboundError::TimedOut("connecting");
        while let Some(address) = addresses.pop_front() {
            let remaining = u32::try_from(addresses.len()).unwrap_or(u32::MAX - 1);
            let share = deadline.saturating_duration_since(Instant::now()) / (1 + remaining);
            match timeout(share, TcpStream::connect(SocketAddr::new(address, url.port()))).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = OutboundError::Unreachable(error.to_string()),
                Err(_) => last = OutboundError::TimedOut("connecting"),
            }
        }
        Err(last)
    }
}

impl fmt::Debug for OutboundClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OutboundClient").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
