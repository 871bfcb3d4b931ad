//! Headers for browsers: how long a response may be cached, and what the page may do.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Prefix of the paths of files whose names contain a digest of their content.
const HASHED_FILES_PREFIX: &str = "/static-files/static/";
/// Prefix of the paths of a page that shows a trace inside a notebook. The notebook, which has
/// another origin, shows the page in a frame. The page requests only that trace from the API.
const FRAMED_PAGE_PREFIX: &str = "/static-files/lib/notebook-trace-renderer/";

/// Content security policy of the page. It allows what MLflow's build needs: workers and images
/// from `blob:` URLs, styles that scripts create, and code that Vega, Plotly and AJV compile from
/// charts and schemas. Images may come from any site, because descriptions may contain them.
/// Requests may go only to this server, and to the bucket with the artifacts, to which the server
/// redirects the page.
const CONTENT_SECURITY_POLICY_TEXT: &str = "default-src 'self'; script-src 'self' 'unsafe-eval' blob:; worker-src 'self' blob:; \
                      style-src 'self' 'unsafe-inline'; img-src 'self' data: blob: https:; font-src 'self' data:; \
                      media-src 'self' data: blob: https:; connect-src 'self' data: blob:{bucket}; \
                      frame-src 'self' data: blob:; object-src 'none'; base-uri 'self'; form-action 'self'";

const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Returns the policy for artifacts in a bucket with this origin, or `None` if they are not in a
/// bucket.
pub(crate) fn policy(bucket: Option<&str>) -> HeaderValue {
    let bucket = bucket.map(|origin| format!(" {origin}")).unwrap_or_default();
    // The characters are checked, because a text that is not an origin could add other directives
    // to the policy.
    let is_origin = bucket.chars().all(|character| character.is_ascii_alphanumeric() || " :/.-".contains(character));
    let policy = CONTENT_SECURITY_POLICY_TEXT.replace("{bucket}", if is_origin { &bucket } else { "" });
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

pub(crate) async fn add_headers(State(policy): State<HeaderValue>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).await;
    let is_there = response.status().is_success() || response.status() == http::StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache_control(&path, is_there)));
    add_security_headers(headers, policy, path.starts_with(FRAMED_PAGE_PREFIX));
    response
}

/// Returns the `Cache-Control` header. Files with a digest in their names never change, so they are
/// cached. All other files are revalidated, because an update replaces all of them at once.
fn cache_control(path: &str, is_there: bool) -> &'static str {
    if !is_there || path == "/" {
        "no-store"
    } else if path.starts_with(HASHED_FILES_PREFIX) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    }
}

fn add_security_headers(headers: &mut HeaderMap, policy: HeaderValue, may_be_framed: bool) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // These headers do not replace existing ones, because a document may have its own policies
    // (`html_preview.rs`).
    headers.entry(REFERRER_POLICY).or_insert(HeaderValue::from_static("same-origin"));
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(policy);
    if !may_be_framed {
        headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
        headers.insert(CROSS_ORIGIN_OPENER_POLICY, HeaderValue::from_static("same-origin"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_goes_to_the_bucket_and_nowhere_else() {
        for (bucket, expected) in [
            (None, "connect-src 'self' data: blob:; "),
            (
                Some("https://b.s3.eu-1.amazonaws.com"),
                "connect-src 'self' data: blob: https://b.s3.eu-1.amazonaws.com; ",
            ),
            (Some("http://127.0.0.1:5001"), "connect-src 'self' data: blob: http://127.0.0.1:5001; "),
            (Some("*; script-src *"), "connect-src 'self' data: blob:; "),
        ] {
            let policy = policy(bucket);
            assert!(policy.to_str().unwrap().contains(expected), "{policy:?}");
        }
    }
}
