//! Client connections of `serve`: an HTTP/1.1 server with small buffers, timeouts, and a limit on
//! the number of connections.

mod connection_registry;
mod limits;
mod write_timeout;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use access::ConnectionInfo;
use axum::Router;
use axum::serve::Listener;
use http::HeaderMap;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

use connection_registry::{ConnectionEntry, ConnectionRegistry};
use limits::ConnectionLimits;
use write_timeout::WriteTimeout;

/// Size in bytes of the read buffer and the write buffer of a connection, and maximum length of the
/// head of a request. hyper's default is 400 KB, and for buffers of that size the allocator retains
/// pages of 4 MB per thread (`docs/adr/0021-artifacts.md`).
const BUFFER_BYTES: usize = 64 << 10;

/// Timeouts of a connection that makes no progress.
#[derive(Clone, Copy)]
struct Timeouts {
    /// Maximum time until the head of a request has arrived, after the connection was opened or the
    /// previous response was sent.
    head: Duration,
    /// Maximum time for which a client may stop reading a response.
    stall: Duration,
}

/// The timeouts in production. The one for heads is longer than the 60 seconds for which AWS load
/// balancers keep idle connections.
const TIMEOUTS: Timeouts = Timeouts { head: Duration::from_secs(75), stall: Duration::from_mins(1) };

/// Serves connections until `end` completes, and then completes the requests that have arrived by
/// then.
///
/// Connections time out ([`TIMEOUTS`]), and their number is limited ([`ConnectionLimits`]). If the limit is
/// reached, a new connection replaces one that is waiting for a request. If there is none, the new
/// connection is closed.
///
/// `proxy` is the address of a trusted proxy, whose headers determine the client's address and
/// whether the client uses TLS. These headers are ignored in requests from other peers.
pub(crate) async fn serve<L: Listener<Addr = SocketAddr>>(
    mut listener: L,
    app: Router,
    proxy: Option<IpAddr>,
    end: impl Future<Output = ()>,
) {
    let (ending, _) = watch::channel(());
    let proxy = proxy.map(|proxy| proxy.to_canonical());
    let open = ConnectionRegistry::new(ConnectionLimits::of_process(), proxy);
    let mut connections = JoinSet::new();
    let mut end = pin!(end);
    loop {
        tokio::select! {
            () = &mut end => break,
            (stream, peer) = listener.accept() => {
                let peer = peer.ip().to_canonical();
                let Some(place) = open.add(peer) else {
                    tracing::warn!(%peer, "rejected a connection: the limit is reached, and no connection is idle");
                    continue;
                };
                let client = Client { peer, is_proxy: Some(peer) == proxy, place };
                connections.spawn(connection(stream, client, app.clone(), TIMEOUTS, ending.subscribe()));
            }
            // Removes the tasks of closed connections.
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    ending.send_replace(());
    while connections.join_next().await.is_some() {}
}

/// Returns the client's address from `X-Forwarded-For`. The proxy appends it, so only the last
/// entry can be trusted. The entries before it are sent by the client.
fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
    let last = last.rsplit(',').next()?.trim();
    last.parse().ok().or_else(|| last.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

/// Checks whether the proxy reports in `X-Forwarded-Proto` that the client uses TLS.
fn is_forwarded_from_tls(headers: &HeaderMap) -> bool {
    let last = headers.get_all("x-forwarded-proto").iter().next_back().and_then(|scheme| scheme.to_str().ok());
    let last = last.and_then(|schemes| schemes.rsplit(',').next());
    last.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
}

/// The peer of a connection.
struct Client {
    peer: IpAddr,
    /// Whether the peer is the trusted proxy.
    is_proxy: bool,
    place: ConnectionEntry,
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    Client { peer, is_proxy, place }: Client,
    app: Router,
    timeouts: Timeouts,
    mut ending: watch::Receiver<()>,
) {
    let place = Arc::new(place);
    let of_service = Arc::clone(&place);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let in_progress = of_service.begin_request();
        let forwarded = is_proxy.then(|| forwarded_for(request.headers())).flatten();
        let is_secure = is_proxy && is_forwarded_from_tls(request.headers());
        request.extensions_mut().insert(ConnectionInfo {
            peer: Some(forwarded.unwrap_or(peer)),
            gateway: None,
            is_secure,
        });
        let answer = app.clone().oneshot(request);
        async move { answer.await.map(|answer| answer.map(|body| in_progress.until_sent(body))) }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .max_buf_size(BUFFER_BYTES)
            .timer(TokioTimer::new())
            .header_read_timeout(timeouts.head)
            .serve_connection(TokioIo::new(WriteTimeout::new(stream, timeouts.stall)), service)
    );
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        () = place.evicted() => return tracing::debug!(%peer, "closed a waiting connection in favor of a new one"),
        _ = ending.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection failed");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn the_last_address_is_written_by_the_proxy() {
        let mut headers = HeaderMap::new();
        assert_eq!(forwarded_for(&headers), None);
        headers.append("x-forwarded-for", "1.1.1.1, 2.2.2.2".parse().unwrap());
        assert_eq!(forwarded_for(&headers), Some([2, 2, 2, 2].into()));
        headers.append("x-forwarded-for", "3.3.3.3".parse().unwrap());
        assert_eq!(forwarded_for(&headers), Some([3, 3, 3, 3].into()));
        headers.append("x-forwarded-for", "4.4.4.4:1234".parse().unwrap());
        assert_eq!(forwarded_for(&headers), Some([4, 4, 4, 4].into()));
        headers.append("x-forwarded-for", "nowhere".parse().unwrap());
        assert_eq!(forwarded_for(&headers), None);
    }

    /// A timeout so long that it does not expire during a test.
    const LONG: Duration = Duration::from_hours(1);
    const SHORT: Duration = Duration::from_millis(20);

    /// Sends `sent` on a connection with these timeouts, and returns what the server has sent when
    /// the connection is closed. Returns an empty string if `reads` is false, because the client
    /// then does not read.
    async fn answer(timeouts: Timeouts, sent: &str, reads: bool) -> String {
        let slow = || async {
            tokio::time::sleep(SHORT * 10).await;
            "slow"
        };
        let app = Router::new().route("/slow", get(slow)).route("/", get(|| async { "x".repeat(1 << 20) }));
        let (mut client, server) = tokio::io::duplex(1_024);
        let (_ending, end) = watch::channel(());
        let peer = IpAddr::from([10, 0, 0, 1]);
        let place = ConnectionRegistry::new(ConnectionLimits { total: 2, per_address: 2 }, None).add(peer).unwrap();
        let of_peer = Client { peer, is_proxy: false, place };
        let ended = tokio::spawn(connection(server, of_peer, app, timeouts, end));
        client.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        if reads {
            client.read_to_string(&mut answer).await.unwrap();
        }
        ended.await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_connection_without_the_head_of_a_request_ends() {
        let timeouts = Timeouts { head: SHORT, stall: LONG };
        assert_eq!(answer(timeouts, "", true).await, "");
        assert_eq!(answer(timeouts, "GET / HTTP/1.1\r\nhost: x", true).await, "");
        // The server may take any amount of time to respond. After the response, the connection
        // waits for the next request.
        let slow = answer(timeouts, "GET /slow HTTP/1.1\r\nhost: x\r\n\r\n", true).await;
        assert!(slow.starts_with("HTTP/1.1 200") && slow.ends_with("slow"), "{slow}");
    }

    #[tokio::test]
    async fn a_connection_ends_whose_client_does_not_read() {
        let timeouts = Timeouts { head: LONG, stall: SHORT };
        answer(timeouts, "GET / HTTP/1.1\r\nhost: x\r\n\r\n", false).await;
    }
}
