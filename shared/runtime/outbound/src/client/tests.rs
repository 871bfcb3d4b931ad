//! Tests of the client against servers on the loopback interface, which send scripted bytes.

mod servers;
mod tls;

use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};

use self::servers::{FixedResolver, Server};
use super::*;
use crate::message::MAX_BODY_BYTES;
use crate::url::{Schemes, UrlError};

const STRICT: OutboundPolicy = OutboundPolicy { schemes: Schemes::Https, allow_private_peers: false };
const RELAXED: OutboundPolicy = OutboundPolicy { schemes: Schemes::HttpsAndHttp, allow_private_peers: true };
/// Timeouts of requests to servers that respond.
const PATIENT: OutboundTimeouts = OutboundTimeouts { connect: Duration::from_mins(1), total: Duration::from_mins(1) };
/// Timeouts of requests to servers that never respond completely.
const IMPATIENT: OutboundTimeouts =
    OutboundTimeouts { connect: Duration::from_mins(1), total: Duration::from_millis(300) };

fn url(text: &str) -> OutboundUrl {
    OutboundUrl::parse(text, RELAXED).unwrap()
}

fn request(url: &OutboundUrl, timeouts: OutboundTimeouts) -> OutboundRequest<'_> {
    let mut headers = HeaderMap::new();
    headers.insert("x-mlflow-delivery-id", HeaderValue::from_static("d1"));
    OutboundRequest { method: Method::POST, url, headers, body: Bytes::from_static(b"{\"a\": 1}"), timeouts }
}

async fn send(server: &Server, timeouts: OutboundTimeouts) -> Result<OutboundResponse, OutboundError> {
    OutboundClient::new(RELAXED).send(request(&url(&server.url("/hook?x=1")), timeouts)).await
}

#[tokio::test]
async fn a_request_is_sent_as_given() {
    let server = Server::answering(b"HTTP/1.1 201 Created\r\nX-Answer: yes\r\nContent-Length: 2\r\n\r\nok").await;
    let response = send(&server, PATIENT).await.unwrap();
    assert_eq!((response.status, &response.body[..], response.is_truncated), (201, &b"ok"[..], false));
    assert_eq!(response.header("x-answer"), Some("yes"));
    let received = server.received().await;
    assert!(received.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{received}");
    assert!(received.ends_with("\r\n\r\n{\"a\": 1}"), "{received}");
    for header in ["x-mlflow-delivery-id: d1", "accept-encoding: identity", "connection: close", "content-length: 8"] {
        assert!(received.contains(&format!("\r\n{header}\r\n")), "{header} is missing in {received}");
    }
    assert!(received.contains(&format!("\r\nhost: 127.0.0.1:{}\r\n", server.port())), "{received}");
}

#[tokio::test]
async fn callers_cannot_change_how_the_request_is_framed() {
    let server = Server::answering(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    let url = url(&server.url("/"));
    let mut request = request(&url, PATIENT);
    for (name, value) in [
        ("host", "internal"),
        ("content-length", "1"),
        ("transfer-encoding", "chunked"),
        ("connection", "keep-alive"),
        ("accept-encoding", "gzip"),
        ("upgrade", "h2c"),
    ] {
        request.headers.insert(name, HeaderValue::from_static(value));
    }
    assert_eq!(OutboundClient::new(RELAXED).send(request).await.unwrap().status, 204);
    let received = server.received().await;
    for absent in ["internal", "content-length: 1\r", "chunked", "keep-alive", "gzip", "h2c"] {
        assert!(!received.contains(absent), "{absent} is in {received}");
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_per_attempt() {
    let server = Server::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let resolver = FixedResolver::answering(&[&["127.0.0.1"], &["169.254.169.254"], &["127.0.0.1"]]);
    let asked = resolver.asked();
    let client = OutboundClient::new(RELAXED).with_resolver(resolver);
    let url = url(&format!("http://rebinding.test:{}/", server.port()));
    // The resolver returns a forbidden address the second time. The request succeeds because it
    // resolves the name only once.
    assert_eq!(client.send(request(&url, PATIENT)).await.unwrap().status, 200);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let refused = client.send(request(&url, PATIENT)).await.unwrap_err();
    assert!(refused.is_refusal() && !refused.is_unresponsive(), "{refused}");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(client.check(&url, PATIENT.connect).await, Ok(()));
}

#[tokio::test]
async fn every_address_of_a_name_must_be_allowed() {
    for addresses in [
        &["10.0.0.1"][..],
        &["8.8.8.8", "10.0.0.1"],
        &["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::1"],
        &["169.254.169.254"],
        &["::ffff:8.8.8.8"],
        &["64:ff9b::808:808"],
    ] {
        let client = OutboundClient::new(STRICT).with_resolver(FixedResolver::answering(&[addresses, addresses]));
        let url = url("https://several.test/");
        let checked = client.check(&url, PATIENT.connect).await.unwrap_err();
        let sent = client.send(request(&url, PATIENT)).await.unwrap_err();
        for error in [checked, sent] {
            assert!(matches!(error, OutboundError::Address(_)), "{addresses:?}: {error}");
        }
    }
}

#[tokio::test]
async fn public_addresses_pass_the_check() {
    let resolver = FixedResolver::answering(&[&["8.8.8.8", "2606:4700::1111"], &[]]);
    let client = OutboundClient::new(STRICT).with_resolver(resolver);
    assert_eq!(client.check(&url("https://public.test/"), PATIENT.connect).await, Ok(()));
    let empty = client.check(&url("https://public.test/"), PATIENT.connect).await.unwrap_err();
    assert!(matches!(empty, OutboundError::Unresolvable(_)) && empty.is_unresponsive(), "{empty}");
    let failing = client.check(&url("https://public.test/"), PATIENT.connect).await.unwrap_err();
    assert!(matches!(failing, OutboundError::Unresolvable(_)), "{failing}");
}

/// The address is refused whether the URL contains it or a name that resolves to it, and even if
/// the URL was parsed with a policy that allows it.
#[tokio::test]
async fn a_strict_client_sends_nothing_to_this_machine() {
    let server = Server::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let plain = OutboundClient::new(STRICT).send(request(&url(&server.url("/")), PATIENT)).await.unwrap_err();
    assert_eq!(plain, OutboundError::Url(UrlError::Scheme { scheme: "http".to_owned() }));
    for host in ["127.0.0.1", "[::1]", "2130706433", "localhost"] {
        let policy = OutboundPolicy { schemes: Schemes::HttpsAndHttp, ..STRICT };
        let url = url(&format!("http://{host}:{}/", server.port()));
        let error = OutboundClient::new(policy).send(request(&url, PATIENT)).await.unwrap_err();
        assert!(error.is_refusal(), "{host}: {error}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn the_next_address_is_tried() {
    let server = Server::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let resolver = FixedResolver::answering(&[&["127.0.0.2", "::1", "127.0.0.1"]]);
    let client = OutboundClient::new(RELAXED).with_resolver(resolver);
    let url = url(&format!("http://several.test:{}/", server.port()));
    assert_eq!(client.send(request(&url, PATIENT)).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_server_that_does_not_listen_is_unreachable() {
    let port = Server::unused_port().await;
    let url = url(&format!("http://127.0.0.1:{port}/"));
    let error = OutboundClient::new(RELAXED).send(request(&url, PATIENT)).await.unwrap_err();
    assert!(matches!(error, OutboundError::Unreachable(_)) && error.is_unresponsive(), "{error}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = Server::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    for status in [301, 302, 303, 307, 308] {
        let head = format!("HTTP/1.1 {status} Moved\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", target.url("/"));
        let server = Server::answering(head.as_bytes()).await;
        let response = send(&server, PATIENT).await.unwrap();
        assert_eq!((response.status, response.header("location")), (status, Some(target.url("/").as_str())));
    }
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn slow_servers_time_out() {
    for slow in [
        Server::silent().await,
        Server::dripping(b"HTTP/1.1 200 OK\r\n", b"X-Header: x\r\n").await,
        Server::dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n").await,
        Server::dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x").await,
        Server::dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n").await,
        Server::dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"x").await,
    ] {
        let mut error = OutboundError::TimedOut("connecting");
        // On a busy machine, even connecting may take longer.
        while error == OutboundError::TimedOut("connecting") {
            error = send(&slow, IMPATIENT).await.unwrap_err();
        }
        assert!(matches!(error, OutboundError::TimedOut(_)) && error.is_unresponsive(), "{error}");
        slow.wait_until_closed().await;
    }
}

#[tokio::test]
async fn a_slow_resolver_times_out() {
    let client = OutboundClient::new(RELAXED).with_resolver(FixedResolver::silent());
    let url = url("https://slow.test/");
    let sent = client.send(request(&url, IMPATIENT)).await.unwrap_err();
    let checked = client.check(&url, IMPATIENT.total).await.unwrap_err();
    assert!(matches!((sent, checked), (OutboundError::TimedOut(_), OutboundError::TimedOut(_))));
}

#[tokio::test]
async fn an_endless_body_is_cut() {
    for (head, piece) in [
        ("HTTP/1.1 200 OK\r\n\r\n", vec![b'x'; 4096]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", vec![b'x'; 4096]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", [b"1000\r\n", &[b'x'; 4096][..], b"\r\n"].concat()),
    ] {
        let server = Server::endless(head.as_bytes(), &piece).await;
        let response = send(&server, PATIENT).await.unwrap();
        assert!(response.is_truncated && response.body.iter().all(|byte| *byte == b'x'));
        assert_eq!(response.body.len(), MAX_BODY_BYTES);
        server.wait_until_closed().await;
    }
}

#[tokio::test]
async fn a_body_of_the_maximum_size_is_complete() {
    for (length, is_truncated) in [(MAX_BODY_BYTES, false), (MAX_BODY_BYTES + 1, true)] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let server = Server::answering(&[head.as_bytes(), &vec![b'x'; length]].concat()).await;
        let response = send(&server, PATIENT).await.unwrap();
        assert_eq!((response.body.len(), response.is_truncated), (MAX_BODY_BYTES, is_truncated));
    }
}

#[tokio::test]
async fn endless_headers_are_an_error() {
    for piece in [&b"X-Header: x\r\n"[..], &[b'x'; 4096]] {
        let server = Server::endless(b"HTTP/1.1 200 OK\r\n", piece).await;
        let error = send(&server, PATIENT).await.unwrap_err();
        assert!(matches!(error, OutboundError::Broken(_)) && !error.is_unresponsive(), "{error}");
        server.wait_until_closed().await;
    }
}

/// A small compressed body may decompress to a very large one.
#[tokio::test]
async fn compressed_bodies_are_not_decompressed() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; 10 << 20]).unwrap();
    let compressed = encoder.finish().unwrap();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", compressed.len());
    let server = Server::answering(&[head.as_bytes(), &compressed].concat()).await;
    let response = send(&server, PATIENT).await.unwrap();
    assert!(response.body == compressed && !response.is_truncated);
}

#[tokio::test]
async fn malformed_responses_are_errors() {
    for bytes in [
        &b""[..],
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
    ] {
        let server = Server::answering(bytes).await;
        let error = send(&server, PATIENT).await.unwrap_err();
        assert!(matches!(error, OutboundError::Broken(_)), "{bytes:?}: {error}");
    }
}

#[test]
fn the_time_of_a_retry_is_read() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_mins(24_090_208);
    for (value, expected) in [
        ("120", Some(120)),
        (" 0 ", Some(0)),
        ("Wed, 21 Oct 2015 07:28:30 GMT", Some(30)),
        ("Wed, 21 Oct 2015 07:27:30 GMT", Some(0)),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("99999999999999999999999", None),
        ("soon", None),
    ] {
        let headers = HeaderMap::from_iter([(http::header::RETRY_AFTER, HeaderValue::from_static(value))]);
        let response = OutboundResponse { status: 429, headers, body: Bytes::new(), is_truncated: false };
        assert_eq!(response.retry_after(now), expected.map(Duration::from_secs), "{value}");
    }
}
