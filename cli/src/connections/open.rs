//! The open connections, and which of them is closed for a new one.

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

use super::limits::Limits;

/// Bits of an IPv6 address that a site has at its disposal.
const SITE_BITS: u32 = 64;

/// The value of [`Status::waiting`] while a request is in progress.
const BUSY: u64 = 0;

/// The open connections.
pub(crate) struct Open {
    limits: Limits,
    connections: Mutex<HashMap<u64, Arc<Status>>>,
    /// Counts connections and answers: what is older has the smaller number.
    clock: AtomicU64,
    /// The proxy that all clients come through has no limit of its own.
    proxy: Option<IpAddr>,
}

/// The state of one connection.
struct Status {
    /// The address of the peer. IPv6 addresses of one site count as one.
    site: IpAddr,
    /// When it began to wait for a request, or [`BUSY`].
    waiting: AtomicU64,
    /// Whether it has to make room.
    evicted: Notify,
}

/// A place among the open connections, until it is dropped.
pub(crate) struct Place {
    open: Arc<Open>,
    number: u64,
    status: Arc<Status>,
}

impl Open {
    pub(crate) fn new(limits: Limits, proxy: Option<IpAddr>) -> Arc<Self> {
        Arc::new(Self { limits, connections: Mutex::default(), clock: AtomicU64::new(BUSY), proxy })
    }

    /// Takes a place for a new connection. If there are too many, one that waits for a request is closed: that of its own
    /// address if this has too many, or else one of the address with the most. The one that has waited longest is closed.
    /// `None` if all of them have a request in progress.
    pub(crate) fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
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
            let may_end = |status: &Status| !is_site_full || status.site == site;
            let waiting = connections.iter().filter_map(|(number, status)| {
                let since = status.waiting.load(Ordering::Relaxed);
                let count = counts.get(&status.site).copied().unwrap_or_default();
                (since != BUSY && may_end(status)).then_some((std::cmp::Reverse(count), since, *number))
            });
            let (_, _, number) = waiting.min()?;
            connections.remove(&number)?.evicted.notify_one();
        }
        let status = Arc::new(Status { site, waiting: AtomicU64::new(number), evicted: Notify::new() });
        connections.insert(number, Arc::clone(&status));
        Some(Place { open: Arc::clone(self), number, status })
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + BUSY + 1
    }
}

/// The address of a peer, or the site that an IPv6 address belongs to.
fn site(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> SITE_BITS << SITE_BITS).into(),
    }
}

impl Place {
    /// Waits until the connection has to make room for another one.
    pub(crate) async fn evicted(&self) {
        self.status.evicted.notified().await;
    }

    /// Notes that a request is in progress, until the result is dropped.
    pub(crate) fn request(&self) -> InProgress {
        self.status.waiting.store(BUSY, Ordering::Relaxed);
        InProgress { open: Arc::clone(&self.open), status: Arc::clone(&self.status) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.connections.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// A request in progress.
pub(crate) struct InProgress {
    open: Arc<Open>,
    status: Arc<Status>,
}

impl InProgress {
    /// The body of the answer. The request is in progress until it is sent.
    pub(crate) fn until_sent(self, body: Body) -> Body {
        Body::new(Answering { body, _request: self })
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.status.waiting.store(self.open.now(), Ordering::Relaxed);
    }
}

/// The body of an answer, with its request.
struct Answering {
    body: Body,
    _request: InProgress,
}

impl http_body::Body for Answering {
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

    /// Whether it has to make room.
    async fn is_evicted(place: &Place) -> bool {
        tokio::time::timeout(Duration::ZERO, place.evicted()).await.is_ok()
    }

    #[tokio::test]
    async fn the_longest_waiting_connection_of_an_address_makes_room() {
        let open = Open::new(Limits { total: 4, per_address: 2 }, None);
        let enter = |last| open.enter(address(last)).unwrap();
        let (first, second, other) = (enter(1), enter(1), enter(2));
        let request = first.request();
        let third = enter(1);
        assert!(is_evicted(&second).await && !is_evicted(&first).await && !is_evicted(&other).await);
        drop(request);
        // The other has waited for longer, but its address has fewer.
        let (fourth, fifth) = (enter(3), enter(4));
        assert!(is_evicted(&third).await, "first: {}", is_evicted(&first).await);
        assert!(!is_evicted(&other).await && !is_evicted(&fourth).await && !is_evicted(&fifth).await);
    }

    #[tokio::test]
    async fn a_connection_with_a_request_in_progress_makes_no_room() {
        let open = Open::new(Limits { total: 2, per_address: 2 }, None);
        let places = [1, 2].map(|last| open.enter(address(last)).unwrap());
        let mut requests = places.each_ref().map(Place::request).map(|request| request.until_sent(Body::empty()));
        assert!(open.enter(address(3)).is_none());
        requests[1] = Body::empty();
        assert!(open.enter(address(3)).is_some());
        assert!(is_evicted(&places[1]).await && !is_evicted(&places[0]).await);
        // An ended connection leaves its place.
        drop(places);
        assert!(open.connections.lock().unwrap().is_empty());
    }

    #[test]
    fn the_addresses_of_a_site_count_as_one_and_the_proxy_has_no_limit() {
        let open = Open::new(Limits { total: 8, per_address: 2 }, Some(address(1)));
        let requests = |peers: [&str; 3]| {
            peers.map(|peer| open.enter(peer.parse().unwrap()).map(|place| (place.request(), place)))
        };
        let of_site = requests(["2001:db8::1", "2001:db8::2", "2001:db8::3"]);
        assert_eq!(of_site.each_ref().map(Option::is_some), [true, true, false]);
        assert!(requests(["10.0.0.1"; 3]).iter().all(Option::is_some));
        assert!(requests(["10.0.0.1", "10.0.0.2", "10.0.0.2"]).iter().all(Option::is_some));
    }
}
