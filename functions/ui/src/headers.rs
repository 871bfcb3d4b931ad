//! What is said to a browser about each answer: for how long it may keep it, and what the page may do.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Files below this path have a digest of their content in their names.
const HASHED: &str = "/static-files/static/";
/// A page that shows a trace inside a notebook, which comes from another origin. It asks the API for nothing but what it shows.
const FRAMED: &str = "/static-files/lib/notebook-trace-renderer/";

/// What the page may load and run. `blob:` is what its workers and images come from. Its styles are made by scripts, and Vega,
/// Plotly and AJV compile functions from what they draw or check. Descriptions may show images of other sites; data goes to none.
const POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-eval' blob:; worker-src 'self' blob:; \
                      style-src 'self' 'unsafe-inline'; img-src 'self' data: blob: https:; font-src 'self' data:; \
                      media-src 'self' data: blob: https:; connect-src 'self' data: blob:; \
                      frame-src 'self' data: blob:; object-src 'none'; base-uri 'self'; form-action 'self'";

const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

pub(crate) async fn add(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).await;
    let is_there = response.status().is_success() || response.status() == http::StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep(&path, is_there)));
    protect(headers, path.starts_with(FRAMED));
    response
}

/// A file with a digest in its name never changes. All others are asked for again: an update replaces them all at once.
fn keep(path: &str, is_there: bool) -> &'static str {
    if !is_there || path == "/" {
        "no-store"
    } else if path.starts_with(HASHED) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    }
}

fn protect(headers: &mut HeaderMap, may_be_framed: bool) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    if !may_be_framed {
        headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
        headers.insert(CROSS_ORIGIN_OPENER_POLICY, HeaderValue::from_static("same-origin"));
    }
}
