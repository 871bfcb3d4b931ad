//! `mlflow-serverless proxy`: the UI of a stack whose HTTP API requires IAM signatures.
//!
//! A browser cannot sign requests. This server listens on a loopback address and signs the
//! browser's requests with the credentials of its user. It must therefore not serve any other user:
//!
//! 1. `shared/http/local-guard` refuses requests from pages of other origins, and requests for host
//!    names that an attacker's page can have (DNS rebinding).
//! 2. `session.rs` refuses browsers that have not opened the one-time URL, because every user of
//!    the machine can reach a loopback address.
//! 3. `own_connections.rs` refuses connections of other users of the machine, if the operating system
//!    identifies them.
//! 4. `forwarder.rs` signs the request (`signer.rs`), sends it, and follows redirects to the bucket.
//!    `forwarded_headers.rs` selects the headers that are forwarded in each direction, and `refusal.rs` has
//!    the responses to failures.

mod forwarded_headers;
mod forwarder;
mod normalized_target;
mod own_connections;
mod refusal;
mod session;
mod signer;
mod tracking_uri;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use aws_config::{BehaviorVersion, Region};
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::serve::ListenerExt;
use clap::Args;
use tokio::net::TcpListener;

use crate::proxy::forwarder::Forwarder;
use crate::proxy::own_connections::OwnConnections;
use crate::proxy::session::ProxySession;
use crate::proxy::signer::RequestSigner;
use crate::proxy::tracking_uri::TrackingUri;
use crate::{Failure, connections, credentials, say_address, shutdown_signal};

/// Options of `proxy`.
#[derive(Args)]
pub(crate) struct Options {
    /// Tracking URI of the stack, from its output `TrackingUri`.
    #[arg(long, value_name = "URL", env = "MLFLOW_TRACKING_URI")]
    tracking_uri: TrackingUri,
    /// Loopback address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = loopback)]
    host: IpAddr,
    /// Port to listen on; 0 picks a free port.
    #[arg(long, default_value_t = 5001)]
    port: u16,
    /// Region of the API [default: the region in the tracking URI's host, otherwise the region of
    /// the AWS configuration].
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
}

/// Parses a loopback address, which other machines cannot reach.
fn loopback(text: &str) -> Result<IpAddr, String> {
    let address = if text == "localhost" { Ok(IpAddr::from([127, 0, 0, 1])) } else { text.parse() };
    let address = address.ok().filter(IpAddr::is_loopback);
    address.ok_or_else(|| {
        "requests to this address use your AWS credentials, so it must be a loopback address such as 127.0.0.1"
            .to_owned()
    })
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let Options { tracking_uri, host, port, region } = options;
    let config = aws_config::defaults(BehaviorVersion::latest());
    let config = match runtime::https::client()? {
        Some(client) => config.http_client(client),
        None => config,
    };
    let config = config.load().await;
    let region = region.or_else(|| tracking_uri.region()).or_else(|| config.region().map(Region::to_string));
    let region = region.ok_or_else(|| {
        format!("the host of {tracking_uri} does not contain an AWS region: set the region of the API with --region or AWS_REGION")
    })?;
    let signer = RequestSigner::new(credentials::find_provider(&config, tracking_uri.origin()).await?, region);
    let connector = runtime::https::connector()?;
    let listener = TcpListener::bind((host, port))
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", SocketAddr::new(host, port)))?;
    let address = listener.local_addr()?;
    let session = Arc::new(ProxySession::new(address.port()));
    let url = format!("http://{address}{}", session.one_time_path());
    let app = Router::new()
        .fallback(forwarder::forward)
        .with_state(Arc::new(Forwarder::new(tracking_uri, signer, connector)))
        .layer(from_fn_with_state(session, session::admit));
    let app = local_guard::protect(app, local_guard::AllowedNames::new(&host.to_string(), &[]));
    let listener = OwnConnections::of(listener, address).tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "cannot disable Nagle's algorithm on a connection");
        }
    });
    say_address(&url);
    print_instructions();
    connections::serve(listener, app, None, shutdown_signal::wait_for_shutdown()).await;
    Ok(())
}

#[expect(clippy::print_stderr, reason = "instructions for the user at the terminal")]
fn print_instructions() {
    eprintln!(
        "Paste this URL into the address bar of your browser. It works once: only the browser that opens it first gets access. \
         Press ctrl-c to stop the proxy."
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_listened_to() {
        for text in ["127.0.0.1", "127.8.9.1", "::1", "localhost"] {
            assert!(loopback(text).is_ok(), "{text}");
        }
        for text in
            ["0.0.0.0", "::", "192.168.1.7", "10.0.0.1", "mlflow.example", "127.0.0.1:80", "::ffff:127.0.0.1", ""]
        {
            assert!(loopback(text).is_err(), "{text}");
        }
    }
}
