//! Connections of clients, with little memory for each.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;

use access::Entry;
use axum::Router;
use axum::serve::Listener;
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

/// Answers all that connect until the end, and then what has been asked by then.
pub(crate) async fn serve<L: Listener<Addr = SocketAddr>>(mut listener: L, app: Router, end: impl Future<Output = ()>) {
    let (ending, _) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut end = pin!(end);
    loop {
        tokio::select! {
            () = &mut end => break,
            (stream, peer) = listener.accept() => {
                let entry = Entry { peer: Some(peer.ip()), gateway: None };
                let served = connection(stream, entry, app.clone(), ending.subscribe());
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

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    entry: Entry,
    app: Router,
    mut ending: watch::Receiver<()>,
) {
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(entry.clone());
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
