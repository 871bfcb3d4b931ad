//! A registry of open connections. When the limit is reached, it selects the connection to close.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;

use super::limits::ConnectionLimits;

/// Length in bits of the network prefix that identifies a site in an IPv6 address. The site can
/// choose the remaining bits freely, so limits apply to the prefix.
const SITE_BITS: u32 = 64;

/// The value of [`ConnectionStatus::waiting`] while a request is in progress.
const BUSY: u64 = 0;

/// A registry of open connections.
pub(crate) struct ConnectionRegistry {
    limits: ConnectionLimits,
    connections: Mutex<HashMap<u64, Arc<ConnectionStatus>>>,
    /// A logical clock that numbers connections and responses, in increasing order.
    clock: AtomicU64,
    /// The address of the trusted proxy. It is exempt from the limit per address, because the
    /// connections of all clients come from it.
    proxy: Option<IpAddr>,
}

/// The state of one connection.
struct ConnectionStatus {
    /// The peer's address for the limit per address. IPv6 addresses with an equal prefix count as
    /// one address.
    site: IpAddr,
    /// The time since which the connection has been waiting for a request, read from the clock of
    /// [`ConnectionRegistry`], or [`BUSY`].
    waiting: AtomicU64,
    /// Notified when the connection has to be closed in favor of another one.
    evicted: Notify,
}

/// An entry in the registry of connections. Dropping it removes the entry.
pub(crate) struct ConnectionEntry {
    connections: Arc<ConnectionRegistry>,
    number: u64,
    status: Arc<ConnectionStatus>,
}

impl ConnectionRegistry {
    pub(crate) fn new(limits: ConnectionLimits, proxy: Option<IpAddr>) -> Arc<Self> {
        Arc::new(Self { limits, connections: Mutex::default(), clock: AtomicU64::new(BUSY), proxy })
    }

    /// Adds a connection. If a limit is reached, the connection that has been waiting for a request
    /// the longest is evicted. At the limit per address, only connections from the peer's address
    /// are candidates. At the limit for all addresses, only connections from the address with the
    /// most connections are candidates.
    ///
    /// Returns `None` if every candidate has a request in progress.
    pub(crate) fn add(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionEntry> {
        let (site, number) = (site(peer), self.now());
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        let is_full = connections.len() >= self.limits.total;
        if is_full || connections.len() >= self.limits.per_address {
            connections.values().for_each(|status| *counts.entry(status.site).or_default() += 1);
        }
        let own = counts.get(&site).copied().unwrap_or_default();
        let is_site_full = self.proxy != Some(peer) && own >= self.limits.per_address;
        if is_full || is_site_full {
            let may_end = |status: &ConnectionStatus| !is_site_full || status.site == site;
            let waiting = connections.iter().filter_map(|(number, status)| {
                let since = status.waiting.load(Ordering::Relaxed);
                let count = counts.get(&status.site).copied().unwrap_or_default();
                (since != BUSY && may_end(status)).then_some((std::cmp::Reverse(count), since, *number))
            });
            let (_, _, number) = waiting.min()?;
            connections.remove(&number)?.evicted.notify_one();
        }
        let status = Arc::new(ConnectionStatus { site, waiting: AtomicU64::new(number), evicted: Notify::new() });
        connections.insert(number, Arc::clone(&status));
        Some(ConnectionEntry { connections: Arc::clone(self), number, status })
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + BUSY + 1
    }
}

/// Returns the address of an IPv4 peer, or the network prefix of an IPv6 peer.
fn site(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> SITE_BITS << SITE_BITS).into(),
    }
}

impl ConnectionEntry {
    /// Waits until the connection is evicted.
    pub(crate) async fn evicted(&self) {
        self.status.evicted.notified().await;
    }

    /// Marks the connection as busy until the returned guard is dropped.
    pub(crate) fn begin_request(&self) -> InProgress {
        self.status.waiting.store(BUSY, Ordering::Relaxed);
        InProgress { connections: Arc::clone(&self.connections), status: Arc::clone(&self.status) }
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        self.connections.connections.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// A guard for a request in progress.
pub(crate) struct InProgress {
    connections: Arc<ConnectionRegistry>,
    status: Arc<ConnectionStatus>,
}

impl InProgress {
    /// Wraps the body of the response, so that the request is in progress until the body has been
    /// sent.
    pub(crate) fn until_sent(self, body: Body) -> Body {
        Body::new(TrackedResponseBody { body, _request: self })
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.status.waiting.store(self.connections.now(), Ordering::Relaxed);
    }
}

/// A response body that holds the guard of its request, so that the request is in progress until
/// the body is dropped.
struct TrackedResponseBody {
    body: Body,
    _request: InProgress,
}

impl http_body::Body for TrackedResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    /// Checks whether the connection has been evicted.
    async fn is_evicted(place: &ConnectionEntry) -> bool {
        tokio::time::timeout(Duration::ZERO, place.evicted()).await.is_ok()
    }

    #[tokio::test]
    async fn the_longest_waiting_connection_of_an_address_makes_room() {
        let open = ConnectionRegistry::new(ConnectionLimits { total: 4, per_address: 2 }, None);
        let enter = |last| open.add(address(last)).unwrap();
        let (first, second, other) = (enter(1), enter(1), enter(2));
        let request = first.begin_request();
        let third = enter(1);
        assert!(is_evicted(&second).await && !is_evicted(&first).await && !is_evicted(&other).await);
        drop(request);
        // The connection from the other address has been waiting for longer. It is kept, because
        // its address has fewer connections.
        let (fourth, fifth) = (enter(3), enter(4));
        assert!(is_evicted(&third).await, "first: {}", is_evicted(&first).await);
        assert!(!is_evicted(&other).await && !is_evicted(&fourth).await && !is_evicted(&fifth).await);
    }

    #[tokio::test]
    async fn a_connection_with_a_request_in_progress_makes_no_room() {
        let open = ConnectionRegistry::new(ConnectionLimits { total: 2, per_address: 2 }, None);
        let places = [1, 2].map(|last| open.add(address(last)).unwrap());
        let mut requests =
            places.each_ref().map(ConnectionEntry::begin_request).map(|request| request.until_sent(Body::empty()));
        assert!(open.add(address(3)).is_none());
        requests[1] = Body::empty();
        assert!(open.add(address(3)).is_some());
        assert!(is_evicted(&places[1]).await && !is_evicted(&places[0]).await);
        // Closed connections are no longer in the registry.
        drop(places);
        assert!(open.connections.lock().unwrap().is_empty());
    }

    #[test]
    fn the_addresses_of_a_site_count_as_one_and_the_proxy_has_no_limit() {
        let open = ConnectionRegistry::new(ConnectionLimits { total: 8, per_address: 2 }, Some(address(1)));
        let requests = |peers: [&str; 3]| {
            peers.map(|peer| open.add(peer.parse().unwrap()).map(|place| (place.begin_request(), place)))
        };
        let of_site = requests(["2001:db8::1", "2001:db8::2", "2001:db8::3"]);
        assert_eq!(of_site.each_ref().map(Option::is_some), [true, true, false]);
        assert!(requests(["10.0.0.1"; 3]).iter().all(Option::is_some));
        assert!(requests(["10.0.0.1", "10.0.0.2", "10.0.0.2"]).iter().all(Option::is_some));
    }
}
