//! What protects a server on somebody's own machine from the pages in their browser.
//!
//! A page from elsewhere may send requests to 127.0.0.1. Under a name of its own that resolves there (DNS rebinding) it could
//! read the answers: so the `Host` must be a name of this server. And it may neither change anything nor cause work: so a
//! request must come from a page of this server, or from no page. Browsers say where a request comes from in `Origin` and
//! `Sec-Fetch-Site`; MLflow's client and the AWS SDKs send neither.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Method, StatusCode};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Names under which a server may be reached.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// What `Host` may say; addresses of this machine and of private networks need not be named.
    hosts: Arc<[String]>,
    /// Hosts whose pages belong to this server, whatever `Host` says: those a proxy in front of it has.
    origins: Arc<[String]>,
}

impl Allowed {
    /// The host the server listens at, and further names for it.
    #[must_use]
    pub fn new(host: &str, names: &[String]) -> Self {
        let origins: Arc<[_]> = names.iter().map(|name| name.to_lowercase()).collect();
        let hosts = origins.iter().cloned().chain([host.to_lowercase(), "localhost".to_owned()]).collect();
        Self { hosts, origins }
    }

    fn has_host(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        self.hosts.contains(&host) || host.trim_matches(['[', ']']).parse().is_ok_and(is_private)
    }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

/// The router behind the guard: what it refuses gets 403, and nothing behind it runs.
pub fn guarded(router: Router, allowed: Allowed) -> Router {
    router.layer(middleware::from_fn_with_state(allowed, check))
}

async fn check(State(allowed): State<Allowed>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_named = only(headers, &HOST).is_some_and(|host| allowed.has_host(host_of(host)));
    if !is_named {
        return (StatusCode::FORBIDDEN, "Invalid Host header - possible DNS rebinding attack detected").into_response();
    }
    if !(is_from_here(headers, &allowed) || is_visit(&request)) {
        return (StatusCode::FORBIDDEN, "Cross-origin request blocked").into_response();
    }
    next.run(request).await
}

/// Whether no page sent the request, or one that came from where it sent it to, or from a name that was allowed.
fn is_from_here(headers: &HeaderMap, allowed: &Allowed) -> bool {
    if headers.contains_key(ORIGIN) {
        let origin = only(headers, &ORIGIN).and_then(|origin| origin.split_once("://"));
        return origin.is_some_and(|(_, authority)| {
            Some(authority) == only(headers, &HOST) || allowed.origins.contains(&host_of(authority).to_lowercase())
        });
    }
    // A page's own GET has no `Origin`. `none`: the user typed the address.
    !headers.contains_key(SEC_FETCH_SITE) || matches!(only(headers, &SEC_FETCH_SITE), Some("same-origin" | "none"))
}

/// Whether the user follows a link to this server's own page: it shows nothing to the page the link was on.
fn is_visit(request: &Request) -> bool {
    let headers = request.headers();
    request.method() == Method::GET
        && request.uri().path() == "/"
        && !headers.contains_key(ORIGIN)
        && only(headers, &SEC_FETCH_MODE) == Some("navigate")
        && only(headers, &SEC_FETCH_DEST) == Some("document")
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, header: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(header).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok())?
}

/// The host in an authority, without the port.
fn host_of(authority: &str) -> &str {
    match authority.find(']') {
        Some(end) => &authority[..=end],
        None => authority.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::any;
    use tower::ServiceExt;

    use super::*;

    const METHODS: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

    async fn status(method: &str, path: &str, headers: &[(&str, &str)]) -> StatusCode {
        let router = Router::new().fallback(any(|| async {}));
        let router = guarded(router, Allowed::new("127.0.0.1", &["ml.example".to_owned()]));
        let request = Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status()
    }

    #[tokio::test]
    async fn only_names_of_this_server_are_answered() {
        for host in ["127.0.0.1:5000", "localhost", "LOCALHOST:5000", "[::1]:5000", "ml.example", "192.168.1.7:5000"] {
            for method in METHODS {
                assert_eq!(status(method, "/a", &[("host", host)]).await, StatusCode::OK, "{method} {host}");
            }
        }
        for host in ["evil.example", "evil.example:5000", "localhost.evil.example", "8.8.8.8", ""] {
            for method in METHODS {
                assert_eq!(status(method, "/a", &[("host", host)]).await, StatusCode::FORBIDDEN, "{method} {host}");
            }
        }
        let two = [("host", "127.0.0.1"), ("host", "evil.example")];
        assert_eq!(status("GET", "/a", &two).await, StatusCode::FORBIDDEN);
    }

    #[tokio::test]
    async fn pages_from_elsewhere_get_nothing_by_any_method() {
        for (host, origin, expected) in [
            ("localhost:5000", "http://localhost:5000", StatusCode::OK),
            ("192.168.1.7:5000", "http://192.168.1.7:5000", StatusCode::OK),
            ("127.0.0.1:5000", "https://ml.example", StatusCode::OK),
            ("127.0.0.1:5000", "https://evil.example", StatusCode::FORBIDDEN),
            ("127.0.0.1:5000", "null", StatusCode::FORBIDDEN),
            ("127.0.0.1:5000", "http://localhost.evil.example", StatusCode::FORBIDDEN),
            ("127.0.0.1:5000", "http://192.168.1.9:5000", StatusCode::FORBIDDEN),
            ("127.0.0.1:5000", "http://127.0.0.1:8888", StatusCode::FORBIDDEN),
        ] {
            for method in METHODS {
                let headers = [("host", host), ("origin", origin)];
                assert_eq!(status(method, "/a", &headers).await, expected, "{method} {host} {origin}");
                assert_eq!(status(method, "/", &headers).await, expected, "{method} {host} {origin}");
            }
        }
        let two = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "https://evil.example")];
        assert_eq!(status("GET", "/a", &two).await, StatusCode::FORBIDDEN);
    }

    /// An image or a script of a page has no `Origin`.
    #[tokio::test]
    async fn what_pages_fetch_without_an_origin_is_refused_too() {
        for (site, expected) in [
            ("same-origin", StatusCode::OK),
            ("none", StatusCode::OK),
            ("same-site", StatusCode::FORBIDDEN),
            ("cross-site", StatusCode::FORBIDDEN),
        ] {
            for method in METHODS {
                let headers = [("host", "localhost:5000"), ("sec-fetch-site", site)];
                assert_eq!(status(method, "/a", &headers).await, expected, "{method} {site}");
            }
        }
    }

    #[tokio::test]
    async fn a_link_leads_to_the_page_of_this_server_and_to_nothing_else() {
        let link = [
            ("host", "localhost:5000"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_eq!(status("GET", "/", &link).await, StatusCode::OK);
        assert_eq!(status("POST", "/", &link).await, StatusCode::FORBIDDEN);
        assert_eq!(status("GET", "/api/2.0/mlflow/runs/get", &link).await, StatusCode::FORBIDDEN);
        let frame = [link[0], link[1], link[2], ("sec-fetch-dest", "iframe")];
        assert_eq!(status("GET", "/", &frame).await, StatusCode::FORBIDDEN);
    }
}
