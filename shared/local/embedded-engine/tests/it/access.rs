//! Access to a server, which is granted to clients with its access key, and never to a page in a
//! browser.

use std::fmt;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use embedded_engine::{Engine, Server, client_for_endpoint, client_with_key};
use serde_json::Value;

use crate::table::{TABLE, engine, get, indexed_item, key, put};

/// Starts a server that contains a secret item.
async fn server() -> (Engine, Server) {
    let engine = engine().await;
    put(&engine.client(), indexed_item("secret", "a", 1)).await;
    let server = engine.serve(([127, 0, 0, 1], 0)).await.unwrap();
    (engine, server)
}

type Change = fn(&mut HttpRequest);

/// An HTTP client that modifies requests after they are signed.
#[derive(Clone)]
struct Changing<C> {
    inner: C,
    change: Change,
}

impl<C> fmt::Debug for Changing<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Changing")
    }
}

impl HttpClient for Changing<SharedHttpClient> {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Changing { inner, change: self.change })
    }
}

impl HttpConnector for Changing<SharedHttpConnector> {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        (self.change)(&mut request);
        self.inner.call(request)
    }
}

/// Sends a scan that is modified after it was signed, and returns the status, the error type and
/// the body of the response. Checks that no response header permits a page of another origin to
/// read the response.
async fn answer(client: &Client, change: Change) -> (u16, String, String) {
    let inner = aws_smithy_http_client::Builder::new().build_http();
    let config = client.config().to_builder().http_client(Changing { inner, change }).build();
    let outcome = Client::from_conf(config).scan().table_name(TABLE).send().await;
    let Err(error) = outcome else { return (200, String::new(), String::new()) };
    let answer = error.raw_response().unwrap();
    assert!(answer.headers().iter().all(|(name, _)| !name.starts_with("access-control-")), "{:?}", answer.headers());
    let content_type = answer.headers().get("content-type").unwrap_or_default().to_owned();
    let body = String::from_utf8(answer.body().bytes().unwrap().to_vec()).unwrap();
    assert!(!body.contains("secret-") && !body.contains("Items"), "{body}");
    (answer.status().as_u16(), content_type, body)
}

#[tokio::test]
async fn its_own_key_opens_a_server_and_no_other() {
    let (engine, server) = server().await;
    assert!(get(&server.client(), key("secret", "a")).await.is_some());
    let again = client_with_key(&server.url(), server.access_key());
    assert!(get(&again, key("secret", "a")).await.is_some());

    let other = engine.serve(([127, 0, 0, 1], 0)).await.unwrap();
    assert_ne!(server.access_key().id(), other.access_key().id());
    assert_ne!(server.access_key().secret(), other.access_key().secret());
    for stranger in [client_for_endpoint(&server.url()), client_with_key(&server.url(), other.access_key())] {
        let refused = stranger.scan().table_name(TABLE).send().await.unwrap_err();
        assert_eq!(refused.code(), Some("UnrecognizedClientException"));
        assert_eq!(refused.raw_response().unwrap().status().as_u16(), 403);
    }
    assert!(!format!("{server:?}").contains(server.access_key().secret()));
}

#[tokio::test]
async fn a_request_is_answered_only_as_it_was_signed() {
    let (_engine, server) = server().await;
    let client = server.client();
    assert_eq!(answer(&client, |_| {}).await.0, 200, "the unmodified request");
    let changes: [(&str, Change); 10] = [
        ("MissingAuthenticationTokenException", |request| drop(request.headers_mut().remove("authorization"))),
        ("IncompleteSignatureException", |request| drop(request.headers_mut().remove("x-amz-date"))),
        ("IncompleteSignatureException", |request| replace(request, "authorization", "Signature=", "Nothing=")),
        ("IncompleteSignatureException", |request| replace(request, "x-amz-date", "T", "X")),
        // A request that was signed long ago. The day is also part of the signature's scope.
        ("InvalidSignatureException", |request| {
            let day = request.headers().get("x-amz-date").unwrap()[..8].to_owned();
            replace(request, "x-amz-date", &day, "20200101");
            replace(request, "authorization", &day, "20200101");
        }),
        ("InvalidSignatureException", |request| replace(request, "x-amz-target", "Scan", "DeleteTable")),
        ("InvalidSignatureException", |request| replace(request, "authorization", ";x-amz-target", "")),
        ("InvalidSignatureException", |request| replace(request, "authorization", "Signature=", "Signature=0")),
        ("InvalidSignatureException", |request| {
            let uri = format!("{}?a=b", request.uri());
            request.set_uri(uri).unwrap();
        }),
        ("InvalidSignatureException", |request| {
            let body = request.body().bytes().unwrap().to_vec();
            *request.body_mut() = SdkBody::from(String::from_utf8(body).unwrap().replace(TABLE, "other"));
        }),
    ];
    for (number, (expected, change)) in changes.into_iter().enumerate() {
        let (status, content_type, body) = answer(&client, change).await;
        assert_eq!((status, content_type.as_str()), (403, "application/x-amz-json-1.0"), "{number}: {body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["__type"], format!("com.amazon.coral.service#{expected}"), "{number}");
    }
    assert!(get(&client, key("secret", "a")).await.is_some());
}

fn replace(request: &mut HttpRequest, header: &'static str, old: &str, new: &str) {
    let value = request.headers().get(header).unwrap();
    assert!(value.contains(old), "{value}");
    let value = value.replace(old, new);
    request.headers_mut().insert(header, value);
}

/// A web page of another origin is rejected at the preflight request, even if it has the key.
#[tokio::test]
async fn a_page_in_a_browser_gets_nothing() {
    let (_engine, server) = server().await;
    let changes: [Change; 4] = [
        |request| {
            request.set_method("OPTIONS").unwrap();
            request.headers_mut().insert("origin", "https://evil.example");
            request.headers_mut().insert("access-control-request-method", "POST");
            request.headers_mut().insert("access-control-request-headers", "x-amz-target");
        },
        |request| drop(request.headers_mut().insert("origin", "https://evil.example")),
        |request| drop(request.headers_mut().insert("sec-fetch-site", "cross-site")),
        |request| drop(request.headers_mut().insert("host", "evil.example")),
    ];
    for change in changes {
        assert_eq!(answer(&server.client(), change).await.0, 403);
    }
}
