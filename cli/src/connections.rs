//! Connections of clients, with little memory for each.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;

use access::Entry;
use axum::Router;
use axum::serve::Listener;
use http::HeaderMap;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Bytes that are read from a connection, or wait to be written to it, at a time; the longest head of a request, too. Unless told otherwise,
/// hyper takes 400 KB, and for buffers of that length the allocator keeps pages of 4 MB for each thread (`docs/adr/0021-artifacts.md`).
const BUFFER: usize = 64 << 10;

/// Answers all connections until the end, and then the requests that have come by then.
///
/// The proxy at this address is trusted about where a request came from; other peers are not.
pub(crate) async fn serve<L: Listener<Addr = SocketAddr>>(
    mut listener: L,
    app: Router,
    proxy: Option<IpAddr>,
    end: impl Future<Output = ()>,
) {
    let (ending, _) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut end = pin!(end);
    loop {
        tokio::select! {
            () = &mut end => break,
            (stream, peer) = listener.accept() => {
                let served = connection(stream, peer.ip().to_canonical(), proxy.map(|proxy| proxy.to_canonical()), app.clone(), ending.subscribe());
                connections.spawn(served);
            }
            // Those that have ended are forgotten.
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    ending.send_replace(());
    while connections.join_next().await.is_some() {}
}

/// The address that a proxy has added: the last one, as everything before it was sent by the client.
fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
    let last = last.rsplit(',').next()?.trim();
    last.parse().ok().or_else(|| last.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

/// Whether a proxy says that it speaks TLS with the client.
fn is_forwarded_from_tls(headers: &HeaderMap) -> bool {
    let last = headers.get_all("x-forwarded-proto").iter().next_back().and_then(|scheme| scheme.to_str().ok());
    let last = last.and_then(|schemes| schemes.rsplit(',').next());
    last.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: IpAddr,
    proxy: Option<IpAddr>,
    app: Router,
    mut ending: watch::Receiver<()>,
) {
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let is_of_proxy = Some(peer) == proxy;
        let forwarded = is_of_proxy.then(|| forwarded_for(request.headers())).flatten();
        let is_secure = is_of_proxy && is_forwarded_from_tls(request.headers());
        request.extensions_mut().insert(Entry { peer: Some(forwarded.unwrap_or(peer)), gateway: None, is_secure });
        app.call(request)
    });
    let mut connection =
        pin!(http1::Builder::new().max_buf_size(BUFFER).serve_connection(TokioIo::new(stream), service));
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        _ = ending.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection has broken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_is_the_proxys_own_word() {
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
}
