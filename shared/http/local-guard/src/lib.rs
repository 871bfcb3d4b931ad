//! Protects a server on a user's own machine from pages in the user's browser.
//!
//! A page of another origin can send requests to 127.0.0.1. With a domain name that resolves to
//! this address (DNS rebinding), it could also read the responses. The `Host` of a request must
//! therefore be a name of this server. A page of another origin must not change anything or cause
//! work either. A request must therefore come from a page of this server, or from no page at all.
//! Browsers report the origin of a request in `Origin`, `Sec-Fetch-Site` or `Referer`. MLflow's
//! client and the AWS SDKs send none of these headers.
//!
//! `unread_bodies.rs` ensures that no connection ends without a response.

mod server_names;
mod unread_bodies;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN, REFERER};
use http::{HeaderMap, HeaderName, Method, StatusCode};

pub use server_names::{AllowedNames, ServerName};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Wraps a router. Rejected requests receive a 403 and do not reach `router`. If part of a
/// request's body is left unread, it is either read and discarded here, or the response announces
/// that the connection will be closed.
pub fn protect(router: Router, allowed: AllowedNames) -> Router {
    router
        .layer(middleware::from_fn_with_state(allowed, check))
        .layer(middleware::from_fn(unread_bodies::drain_and_respond))
}

async fn check(State(allowed): State<AllowedNames>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_named = single_header(headers, &HOST).is_some_and(|host| allowed.has_host(host));
    if !(is_named || is_probe(&request)) {
        return (StatusCode::FORBIDDEN, "Invalid Host header - possible DNS rebinding attack detected").into_response();
    }
    if !(is_from_own_page(headers, &allowed) || is_visit(&request)) {
        return (StatusCode::FORBIDDEN, "Cross-origin request blocked").into_response();
    }
    next.run(request).await
}

/// Checks whether the request is a probe of `/health` or `/version`, whose responses are no secret.
/// Load balancers send probes with a host name of their own, or without any (`HEALTH_ENDPOINTS` in
/// MLflow's `security_utils.py`).
fn is_probe(request: &Request) -> bool {
    matches!(path(request), "health" | "version")
}

/// Returns the path without leading slashes. A path has two of them if the client's base URL ends
/// in a slash.
fn path(request: &Request) -> &str {
    request.uri().path().trim_start_matches('/')
}

/// Checks whether the request was sent by no page, by a page of this server, or by a page with an
/// allowed name.
fn is_from_own_page(headers: &HeaderMap, allowed: &AllowedNames) -> bool {
    // `X-Forwarded-Proto` is set by proxies that terminate TLS. A page cannot set it without a
    // preflight request, which is rejected.
    let is_secure =
        single_header(headers, &X_FORWARDED_PROTO).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    let is_ours = |origin: &str| allowed.has_origin(origin, single_header(headers, &HOST), is_secure);
    if headers.contains_key(ORIGIN) {
        return single_header(headers, &ORIGIN).is_some_and(is_ours);
    }
    // A `GET` from a page of the same origin has no `Origin`. `Sec-Fetch-Site: none` means that the
    // user entered the address.
    if headers.contains_key(SEC_FETCH_SITE) {
        return matches!(single_header(headers, &SEC_FETCH_SITE), Some("same-origin" | "none"));
    }
    // `Referer` is the only header that browsers send over plain HTTP to another machine, and a
    // page can suppress it with a referrer policy.
    !headers.contains_key(REFERER) || single_header(headers, &REFERER).and_then(origin_of).is_some_and(is_ours)
}

/// Returns the origin of a URL.
fn origin_of(url: &str) -> Option<&str> {
    let begin = url.find("://")? + "://".len();
    let end = url[begin..].find(['/', '?', '#']).map_or(url.len(), |length| begin + length);
    Some(&url[..end])
}

/// Pages of this server that links may lead to. An identity provider redirects to the sign-in page,
/// which redirects to any of the others. The browser reports both redirects as cross-site.
const LINKED_PAGES: [&str; 4] = ["", "signin", "signup", "tokens"];

/// Checks whether the user follows a link to a page of this server. This reveals nothing to the
/// page that contains the link.
fn is_visit(request: &Request) -> bool {
    let headers = request.headers();
    // Over plain HTTP to another machine, browsers send neither `Sec-Fetch-Mode` nor
    // `Sec-Fetch-Dest`. The pages of this server have headers of their own that prevent framing.
    let is = |header: HeaderName, value| match single_header(headers, &header) {
        Some(said) => said == value,
        None => !headers.contains_key(SEC_FETCH_SITE) && !headers.contains_key(header),
    };
    request.method() == Method::GET
        && LINKED_PAGES.contains(&path(request))
        && !headers.contains_key(ORIGIN)
        && is(SEC_FETCH_MODE, "navigate")
        && is(SEC_FETCH_DEST, "document")
}

/// Returns the value of a header, unless it is missing or repeated.
fn single_header<'a>(headers: &'a HeaderMap, header: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(header).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok())?
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
        let router = protect(router, AllowedNames::new("127.0.0.1", &["ml.example".parse().unwrap()]));
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
            ("127.0.0.1:5000", "https://ml.example:8443", StatusCode::FORBIDDEN),
            ("localhost:5000", "https://localhost:5000", StatusCode::FORBIDDEN),
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

    /// Requests for an image or a script have no `Origin`.
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
        for page in ["/", "/signin", "/signin?next=%2Ftokens", "/signin?code=a&state=b", "/signup", "/tokens"] {
            assert_eq!(status("GET", page, &link).await, StatusCode::OK, "{page}");
            assert_eq!(status("POST", page, &link).await, StatusCode::FORBIDDEN, "{page}");
        }
        assert_eq!(status("GET", "/api/2.0/mlflow/runs/get", &link).await, StatusCode::FORBIDDEN);
        let frame = [link[0], link[1], link[2], ("sec-fetch-dest", "iframe")];
        assert_eq!(status("GET", "/", &frame).await, StatusCode::FORBIDDEN);
    }

    /// Load balancers send probes with a host name of their own, or over HTTP/1.0 without any.
    #[tokio::test]
    async fn health_and_version_are_answered_under_every_name_and_to_no_page_of_another_origin() {
        for path in ["/health", "/version", "//health"] {
            for headers in [&[][..], &[("host", "203.0.113.7:5000")], &[("host", "name.ns.svc.cluster.local:5000")]] {
                assert_eq!(status("GET", path, headers).await, StatusCode::OK, "{path} {headers:?}");
            }
            let page = [("host", "evil.example"), ("origin", "https://evil.example")];
            assert_eq!(status("GET", path, &page).await, StatusCode::FORBIDDEN, "{path}");
        }
        for path in ["/healthy", "/health/x", "/api/2.0/mlflow/runs/get", "/"] {
            assert_eq!(status("GET", path, &[]).await, StatusCode::FORBIDDEN, "{path}");
        }
    }

    /// If a request has neither `Origin` nor `Sec-Fetch-Site`, the page in `Referer` decides.
    /// Browsers do not send `Sec-Fetch-*` over plain HTTP to an address like 192.168.1.7.
    #[tokio::test]
    async fn without_more_the_referring_page_decides() {
        for (referer, expected) in [
            ("http://192.168.1.7:5000/", StatusCode::OK),
            ("https://ml.example/page?x#y", StatusCode::OK),
            ("https://ml.example", StatusCode::OK),
            ("http://evil.example/", StatusCode::FORBIDDEN),
            ("http://192.168.1.7:8888/", StatusCode::FORBIDDEN),
            ("http://evil.example/http://192.168.1.7:5000/", StatusCode::FORBIDDEN),
            ("http://evil.example?http://192.168.1.7:5000", StatusCode::FORBIDDEN),
            ("android-app://com.example/", StatusCode::FORBIDDEN),
            ("", StatusCode::FORBIDDEN),
        ] {
            let headers = [("host", "192.168.1.7:5000"), ("referer", referer)];
            for method in METHODS {
                assert_eq!(status(method, "/api/x", &headers).await, expected, "{method} {referer}");
            }
            for path in ["/", "//"] {
                assert_eq!(status("GET", path, &headers).await, StatusCode::OK, "a link on {referer}");
            }
            assert_eq!(status("POST", "/", &headers).await, expected, "{referer}");
        }
        let known = [("host", "localhost"), ("sec-fetch-site", "same-origin"), ("referer", "http://evil.example/")];
        assert_eq!(status("GET", "/a", &known).await, StatusCode::OK);
        assert_eq!(status("GET", "/a", &[("host", "192.168.1.7")]).await, StatusCode::OK);
    }
}
