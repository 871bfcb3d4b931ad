//! What protects a server on somebody's own machine from the pages in their browser.
//!
//! A page from elsewhere may send requests to 127.0.0.1. Under a name of its own that resolves there (DNS rebinding) it could
//! read the answers: so the `Host` must be a name of this server. And it may not change anything: so a request that changes
//! something must come from a page of this server, or from no page.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Method, StatusCode};

/// Names under which the server may be reached. Addresses of this machine and of private networks need not be named.
#[derive(Clone)]
pub(crate) struct Allowed(Arc<[String]>);

impl Allowed {
    /// The host the server listens at, and further names.
    pub(crate) fn new(host: &str, names: &[String]) -> Self {
        let names = names.iter().map(String::as_str).chain([host, "localhost"]);
        Self(names.map(str::to_lowercase).collect())
    }

    fn contains(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        self.0.contains(&host) || host.trim_matches(['[', ']']).parse().is_ok_and(is_private)
    }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

/// The router behind the guard.
pub(crate) fn guarded(router: Router, allowed: Allowed) -> Router {
    router.layer(middleware::from_fn_with_state(allowed, check))
}

async fn check(State(allowed): State<Allowed>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if !host(headers, &HOST).is_some_and(|host| allowed.contains(host)) {
        return (StatusCode::FORBIDDEN, "Invalid Host header - possible DNS rebinding attack detected").into_response();
    }
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if changes && headers.contains_key(ORIGIN) && !is_of_this_server(headers, &allowed) {
        return (StatusCode::FORBIDDEN, "Cross-origin request blocked").into_response();
    }
    next.run(request).await
}

/// Whether the page that sent the request came from where it sent it to, or from a name that was allowed.
fn is_of_this_server(headers: &HeaderMap, allowed: &Allowed) -> bool {
    let authority = |header| headers.get(header).and_then(|value| value.to_str().ok());
    let origin = authority(ORIGIN).and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    let same = origin.is_some() && origin == authority(HOST);
    same || host(headers, &ORIGIN).is_some_and(|host| allowed.0.contains(&host.to_lowercase()))
}

/// The host in a header, without scheme and port.
fn host<'a>(headers: &'a HeaderMap, header: &HeaderName) -> Option<&'a str> {
    let value = headers.get(header)?.to_str().ok()?;
    let authority = value.split_once("://").map_or(value, |(_, rest)| rest);
    match authority.find(']') {
        Some(end) => Some(&authority[..=end]),
        None => authority.split(':').next(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::any;
    use tower::ServiceExt;

    use super::*;

    async fn status(method: &str, host: &str, origin: Option<&str>) -> StatusCode {
        let router = Router::new().route("/", any(|| async {}));
        let router = guarded(router, Allowed::new("127.0.0.1", &["ml.example".to_owned()]));
        let mut request = Request::builder().method(method).uri("/").header(HOST, host);
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status()
    }

    #[tokio::test]
    async fn only_names_of_this_server_are_answered() {
        for host in ["127.0.0.1:5000", "localhost", "LOCALHOST:5000", "[::1]:5000", "ml.example", "192.168.1.7:5000"] {
            assert_eq!(status("GET", host, None).await, StatusCode::OK, "{host}");
        }
        for host in ["evil.example", "evil.example:5000", "localhost.evil.example", "8.8.8.8", ""] {
            assert_eq!(status("GET", host, None).await, StatusCode::FORBIDDEN, "{host}");
        }
    }

    #[tokio::test]
    async fn pages_from_elsewhere_change_nothing() {
        let host = "127.0.0.1:5000";
        assert_eq!(status("POST", host, None).await, StatusCode::OK);
        assert_eq!(status("POST", host, Some("http://localhost:5000")).await, StatusCode::OK);
        assert_eq!(status("GET", host, Some("https://evil.example")).await, StatusCode::OK);
        assert_eq!(status("POST", "192.168.1.7:5000", Some("http://192.168.1.7:5000")).await, StatusCode::OK);
        for origin in ["https://evil.example", "null", "http://localhost.evil.example", "http://192.168.1.9:5000"] {
            for method in ["POST", "PUT", "PATCH", "DELETE"] {
                assert_eq!(status(method, host, Some(origin)).await, StatusCode::FORBIDDEN, "{method} {origin}");
            }
        }
    }
}
