//! TLS with certificates that the test issues.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::servers::{FixedResolver, Server};
use super::{PATIENT, RELAXED, request, url};
use crate::client::OutboundClient;
use crate::error::OutboundError;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn issuer() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn for_name(name: &str) -> CertificateParams {
    CertificateParams::new([name.to_owned()]).unwrap()
}

/// Starts a server with a certificate, and returns its port.
async fn server(issuer: &Issuer, params: CertificateParams) -> u16 {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Clients that do not trust the certificate close the connection.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let name = stream.get_ref().1.server_name().unwrap_or_default().to_owned();
            let _ = stream.read(&mut [0; 4096]).await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

/// Sends a request to a host, and returns the body of the response. The test server puts the name
/// that the client indicated in the TLS handshake (SNI) into the body.
async fn fetch(host: &str, port: u16, roots: &[CertificateDer<'static>]) -> Result<String, OutboundError> {
    let client = OutboundClient::new(RELAXED).with_roots(roots).unwrap();
    let client = client.with_resolver(FixedResolver::answering(&[&["127.0.0.1"]]));
    let response = client.send(request(&url(&format!("https://{host}:{port}/")), PATIENT)).await?;
    Ok(String::from_utf8(response.body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_certificate_must_be_valid_for_the_name() {
    let issuer = issuer();
    let roots = [issuer.der().clone()];
    let port = server(&issuer, for_name("receiver.test")).await;
    // The client connects to an IP address. The certificate has to be valid for the host name,
    // which is also the name that the client indicates.
    assert_eq!(fetch("receiver.test", port, &roots).await.unwrap(), "receiver.test");
    for host in ["other.test", "sub.receiver.test", "127.0.0.1"] {
        let error = fetch(host, port, &roots).await.unwrap_err();
        assert!(matches!(error, OutboundError::Tls(_)) && !error.is_unresponsive(), "{host}: {error}");
    }
    let port = server(&issuer, for_name("127.0.0.1")).await;
    assert!(fetch("127.0.0.1", port, &roots).await.is_ok());
}

#[tokio::test]
async fn a_certificate_must_be_of_a_known_issuer_and_current() {
    let (known, unknown) = (issuer(), issuer());
    let roots = [known.der().clone()];
    let port = server(&unknown, for_name("receiver.test")).await;
    assert!(matches!(fetch("receiver.test", port, &roots).await, Err(OutboundError::Tls(_))));
    let mut expired = for_name("receiver.test");
    (expired.not_before, expired.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let port = server(&known, expired).await;
    assert!(matches!(fetch("receiver.test", port, &roots).await, Err(OutboundError::Tls(_))));
}

#[tokio::test]
async fn a_fully_qualified_name_is_the_name_of_the_certificate() {
    let issuer = issuer();
    let port = server(&issuer, for_name("receiver.test")).await;
    let client = OutboundClient::new(RELAXED).with_roots(&[issuer.der().clone()]).unwrap();
    let client = client.with_resolver(Dotted);
    let response = client.send(request(&url(&format!("https://receiver.test.:{port}/")), PATIENT)).await.unwrap();
    assert_eq!(response.body, "receiver.test");
}

/// A resolver that requires a trailing dot in names, and resolves them to the loopback address.
struct Dotted;

impl crate::resolver::Resolver for Dotted {
    fn resolve<'a>(&'a self, host: &'a str) -> futures::future::BoxFuture<'a, std::io::Result<Vec<std::net::IpAddr>>> {
        assert!(host.ends_with('.'), "{host}");
        Box::pin(async { Ok(vec![std::net::Ipv4Addr::LOCALHOST.into()]) })
    }
}

#[tokio::test]
async fn there_is_no_fallback_to_plain_http() {
    let server = Server::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let issuer = issuer();
    // The handshake never completes: the server waits for an HTTP request, and the client waits for
    // the server's part of the handshake.
    let client = OutboundClient::new(RELAXED).with_roots(&[issuer.der().clone()]).unwrap();
    let url = url(&format!("https://127.0.0.1:{}/", server.port()));
    let error = client.send(request(&url, super::IMPATIENT)).await.unwrap_err();
    assert!(matches!(error, OutboundError::TimedOut(_) | OutboundError::Tls(_)), "{error}");
}

#[test]
fn without_root_certificates_there_is_no_client() {
    let refused = OutboundClient::new(RELAXED).with_roots(&[]).unwrap_err();
    assert!(matches!(refused, OutboundError::Setup(_)), "{refused}");
}
