//! Requests over TCP, to servers of the test.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Starts a server that responds to one request with these bytes, and then closes the connection.
/// Returns its address, and the request that it has received.
async fn server(response: Vec<u8>) -> (SocketAddr, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        let ends = |request: &[u8]| {
            let text = String::from_utf8_lossy(request).into_owned();
            let head = text.split("\r\n\r\n").next().unwrap_or_default().to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            text.contains("\r\n\r\n") && request.len() >= head.len() + 4 + length.unwrap_or(0)
        };
        while !ends(&request) {
            assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
        }
        // The write fails if the client closes the connection because the response is too large.
        let _ = stream.write_all(&response).await;
        String::from_utf8(request).unwrap()
    });
    (address, served)
}

fn get(address: SocketAddr) -> ProviderRequest {
    ProviderRequest::get(Url::parse(&format!("http://{address}/path?query")).unwrap())
}

async fn send(request: ProviderRequest) -> Result<ProviderResponse, TransportError> {
    HttpsTransport::new().unwrap().send(request).await
}

#[tokio::test]
async fn a_form_is_posted() {
    let (address, served) = server(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}".to_vec()).await;
    let request = ProviderRequest {
        authorization: Some(Zeroizing::new("Basic abc".to_owned())),
        form: Some(Zeroizing::new("a=b".to_owned())),
        ..get(address)
    };
    assert_eq!(format!("{request:?}"), format!("ProviderRequest(POST http://{address}/path?query)"));
    let response = send(request).await.unwrap();
    assert_eq!((response.status, &*response.body), (400, b"{}".as_slice()));
    let request = served.await.unwrap().to_lowercase();
    assert!(request.starts_with("post /path?query http/1.1\r\n"), "{request}");
    for header in
        ["authorization: basic abc", "content-type: application/x-www-form-urlencoded", "accept: application/json"]
    {
        assert!(request.contains(&format!("{header}\r\n")), "{request}");
    }
    assert!(request.ends_with("\r\n\r\na=b"), "{request}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let response = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
    let (address, _) = server(response.into()).await;
    assert_eq!(send(get(address)).await.unwrap().status, 302);
}

#[tokio::test]
async fn a_response_that_is_too_large_is_refused() {
    let body = vec![b' '; MAX_RESPONSE_BYTES];
    let (address, _) = server([b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", body.as_slice()].concat()).await;
    assert_eq!(send(get(address)).await.unwrap().body.len(), MAX_RESPONSE_BYTES);
    let (address, _) = server([b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n ", body.as_slice()].concat()).await;
    assert_eq!(send(get(address)).await.unwrap_err(), TransportError::TooLarge);
}

#[tokio::test]
async fn a_server_that_is_not_there_was_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = send(get(address)).await.unwrap_err();
    assert!(matches!(error, TransportError::NotSent(_)), "{error:?}");
    let unresolvable = ProviderRequest::get(Url::parse("https://id.invalid/").unwrap());
    let error = send(unresolvable).await.unwrap_err();
    assert!(matches!(error, TransportError::NotSent(_)), "{error:?}");
}

#[tokio::test]
async fn a_server_without_tls_was_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received).await;
        received
    });
    let url = Url::parse(&format!("https://{address}/secret-path")).unwrap();
    let error = send(ProviderRequest::get(url)).await.unwrap_err();
    assert!(matches!(error, TransportError::NotSent(_)), "{error:?}");
    assert!(!String::from_utf8_lossy(&served.await.unwrap()).contains("secret-path"));
}

#[tokio::test]
async fn a_server_that_closes_the_connection_may_have_executed_the_request() {
    for response in ["", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"] {
        let (address, served) = server(response.into()).await;
        let error = send(get(address)).await.unwrap_err();
        assert!(matches!(error, TransportError::MaybeSent(_)), "{error:?}");
        served.await.unwrap();
    }
}

#[tokio::test]
async fn each_request_has_a_connection_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(async move {
        let mut open = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1000];
            assert_ne!(stream.read(&mut request).await.unwrap(), 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
            open.push(stream);
        }
        open.len()
    });
    let transport = HttpsTransport::new().unwrap();
    for _ in 0..2 {
        assert_eq!(transport.send(get(address)).await.unwrap().status, 200);
    }
    assert_eq!(served.await.unwrap(), 2);
}
