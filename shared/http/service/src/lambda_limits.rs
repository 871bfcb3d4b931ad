//! Limits of a Lambda's responses.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use lambda_http::RequestExt;
use mlflow_api::response_size::{MAX_BODY_BYTES, MAX_JSON_BYTES, ResponseSize, too_long};
use mlflow_api::{Error, ErrorCode};
use percent_encoding::percent_decode_str;

use crate::endpoint_response::{EndpointResponse, error_response};
use crate::path_normalization::normalize_paths_only;
use crate::router::with_browser_headers;

/// Storage for responses that are too long for a Lambda.
pub trait ResponseOffload: Send + Sync {
    /// Stores a response and returns a URL. For a few minutes, anyone who has the URL can read the
    /// response as the function would have sent it.
    fn put(&self, answer: LongResponse) -> BoxFuture<'_, mlflow_api::Result<String>>;
}

/// A response that is too long for a Lambda.
#[derive(Clone, Debug)]
pub struct LongResponse {
    /// Body.
    pub body: Bytes,
    /// Value of `Content-Type`.
    pub content_type: String,
    /// Value of `Content-Encoding`, if the body is compressed.
    pub encoding: Option<String>,
    /// Value of `Content-Disposition`, if the response is a file.
    pub disposition: Option<String>,
}

/// Wraps a router for a Lambda. Like [`crate::normalize_paths()`], it applies the rules for the
/// paths that clients send.
///
/// A Lambda's response is limited to 6 MB, so a longer response is replaced by an error. Otherwise,
/// the invocation would fail in API Gateway with a 5xx, which clients retry in vain. A path that
/// the Lambda adapter has parsed into a different one is rejected as well.
pub fn within_lambda(router: Router) -> Router {
    limited(router, None)
}

/// Wraps a router like [`within_lambda`], but stores longer responses to `GET` in `aside` and
/// redirects the client there (307). Clients keep the method when they follow the redirect, and
/// drop their credentials for this server.
pub fn within_lambda_or_offload(router: Router, aside: Arc<dyn ResponseOffload>) -> Router {
    limited(router, Some(aside))
}

fn limited(router: Router, aside: Option<Arc<dyn ResponseOffload>>) -> Router {
    // Responses that are created in this layer need the headers for browsers, too.
    with_browser_headers(normalize_paths_only(router).layer(from_fn(move |request: Request, next: Next| {
        let aside = aside.clone().filter(|_| request.method() == Method::GET);
        async move {
            if is_misread(&request) {
                let message = "The path contains a character that the gateway does not pass on, or a relative \
                               segment: '#', '?', a backslash, a line break, a trailing space, '.' or '..'.";
                return error_response(&Error::new(ErrorCode::BadRequest, message));
            }
            fit_response(next.run(request).await, aside).await
        }
    })))
}

/// Checks whether the path differs from the one that was sent. The gateway decodes the path, and
/// the Lambda adapter then parses it as part of a URL. The part after a `#` or a `?` is lost, a
/// backslash becomes a separator, line breaks and trailing spaces are cut, and relative segments
/// are resolved. Without this check, a caller could reach another file than the one for which the
/// gateway has checked its policies.
fn is_misread(request: &Request) -> bool {
    let sent: Vec<u8> = percent_decode_str(request.raw_http_path()).collect();
    let read: Vec<u8> = percent_decode_str(request.uri().path()).collect();
    // The path may be prefixed with the name of the API's stage.
    !read.ends_with(&sent)
}

async fn fit_response(response: Response, aside: Option<Arc<dyn ResponseOffload>>) -> Response {
    let (parts, body) = response.into_parts();
    let aside = aside.filter(|_| parts.status == StatusCode::OK);
    let most = if aside.is_some() { MAX_JSON_BYTES } else { MAX_BODY_BYTES };
    let refusal = || error_response(&too_long("The answer", most));
    let Ok(body) = Limited::new(body, most).collect().await.map(http_body_util::Collected::to_bytes) else {
        return refusal();
    };
    let header = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (content_type, encoding) = (header(CONTENT_TYPE).unwrap_or_default(), header(CONTENT_ENCODING));
    // The Lambda adapter sends these types as text if they are not compressed, and encodes all
    // others in base64.
    let is_json = content_type.starts_with("application/json") && encoding.is_none();
    let size =
        if is_json { ResponseSize::of(&body).bytes_as_text() } else { ResponseSize::of(&body).bytes_in_response() };
    if size <= MAX_BODY_BYTES {
        return Response::from_parts(parts, Body::from(body));
    }
    let Some(aside) = aside else { return refusal() };
    let disposition = header(CONTENT_DISPOSITION);
    match aside.put(LongResponse { body, content_type, encoding, disposition }).await {
        Ok(url) => EndpointResponse::TemporaryRedirect(url).into_response(&parts.headers),
        Err(error) => error_response(&error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::routing::{get, post};
    use http::Request;
    use http::header::LOCATION;
    use tower::ServiceExt;

    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<Vec<LongResponse>>);

    impl ResponseOffload for Kept {
        fn put(&self, answer: LongResponse) -> BoxFuture<'_, mlflow_api::Result<String>> {
            self.0.lock().unwrap().push(answer);
            Box::pin(async { Ok("https://bucket.example/answer".to_owned()) })
        }
    }

    #[tokio::test]
    async fn a_longer_answer_to_a_read_is_put_aside() {
        let kept = Arc::new(Kept::default());
        let long = || async { ([(CONTENT_TYPE, "application/json")], "x".repeat(MAX_BODY_BYTES + 1)) };
        let short = || async { ([(CONTENT_TYPE, "application/json")], "x") };
        let failed = || async { (StatusCode::NOT_FOUND, "x".repeat(MAX_BODY_BYTES + 1)) };
        let endless = || async { "x".repeat(MAX_JSON_BYTES + 1) };
        let app = Router::new().route("/long", get(long).merge(post(long))).route("/short", get(short));
        let app = app.route("/failed", get(failed)).route("/endless", get(endless));
        let app = within_lambda_or_offload(app, Arc::clone(&kept) as Arc<dyn ResponseOffload>);
        let answer = async |method: &str, path: &str| {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            app.clone().oneshot(request).await.unwrap()
        };
        let elsewhere = answer("GET", "/long").await;
        assert_eq!(elsewhere.status(), StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(elsewhere.headers()[LOCATION], "https://bucket.example/answer");
        for (method, path, status) in [
            ("POST", "/long", StatusCode::BAD_REQUEST),
            ("GET", "/short", StatusCode::OK),
            ("GET", "/failed", StatusCode::BAD_REQUEST),
            ("GET", "/endless", StatusCode::BAD_REQUEST),
        ] {
            let response = answer(method, path).await;
            assert_eq!(response.status(), status, "{method} {path}");
            assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{method} {path}");
        }
        let kept = kept.0.lock().unwrap();
        let [answer] = kept.as_slice() else { panic!("{} answers", kept.len()) };
        assert_eq!((answer.body.len(), &*answer.content_type), (MAX_BODY_BYTES + 1, "application/json"));
        assert_eq!((&answer.encoding, &answer.disposition), (&None, &None));
    }

    /// Returns an event of an HTTP API, converted by the adapter.
    fn event(raw_path: &str, query: &str) -> http::Request<Body> {
        let event = serde_json::json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": raw_path,
            "rawQueryString": query,
            "headers": { "host": "id.execute-api.eu-central-1.amazonaws.com", "x-forwarded-proto": "https" },
            "requestContext": {
                "accountId": "1", "apiId": "id", "stage": "$default", "requestId": "r", "timeEpoch": 0,
                "http": { "method": "GET", "path": raw_path, "protocol": "HTTP/1.1", "sourceIp": "::1" },
            },
            "isBase64Encoded": false,
        });
        lambda_http::request::from_str(&event.to_string()).unwrap().map(|_| Body::empty())
    }

    #[tokio::test]
    async fn a_path_is_answered_as_it_was_sent_or_not_at_all() {
        let file = |axum::extract::Path(path): axum::extract::Path<String>| async move { path };
        let app = within_lambda(Router::new().route("/files/{*path}", get(file)));
        for (raw_path, expected) in [
            ("/files/a", Some("a")),
            ("//files/a", Some("a")),
            ("/files/a b/é/日", Some("a b/é/日")),
            ("/files/a+b&c=d;e:f@g", Some("a+b&c=d;e:f@g")),
            ("/files/a\"<>^`{|}'b", Some("a\"<>^`{|}'b")),
            ("/files/a//b", Some("a//b")),
            ("/files/100% b", Some("100% b")),
            ("/files/a%zz", Some("a%zz")),
            // Raw paths as they would arrive from a gateway that does not decode them.
            ("/files/a%20b", Some("a b")),
            ("/files/a%23b%3F%5C", Some("a#b?\\")),
            ("/files/a%2Fb", Some("a/b")),
            ("/files/a#b", None),
            ("/files/a?b", None),
            ("/files/a\\b", None),
            ("/files/a\nb", None),
            ("/files/a\tb", None),
            ("/files/a ", None),
            ("/files/a/../b", None),
            ("/files/./a", None),
            ("/files/a/..", None),
            ("/files/a/%2e%2e/b", None),
        ] {
            let response = app.clone().oneshot(event(raw_path, "x=/../y%23")).await.unwrap();
            let status = response.status();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let body = String::from_utf8(body.to_vec()).unwrap();
            match expected {
                Some(path) => assert_eq!((status, body.as_str()), (StatusCode::OK, path), "{raw_path:?}"),
                None => {
                    assert!(status == StatusCode::BAD_REQUEST && body.contains("BAD_REQUEST"), "{raw_path:?} {body}");
                }
            }
        }
    }

    async fn status(content_type: &'static str, encoding: Option<&'static str>, body: String) -> StatusCode {
        let answer = move || async move {
            let response = Response::builder().header(CONTENT_TYPE, content_type);
            let response =
                encoding.into_iter().fold(response, |response, name| response.header(CONTENT_ENCODING, name));
            response.body(Body::from(body)).unwrap()
        };
        let app = within_lambda(Router::new().route("/", get(answer)));
        app.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap().status()
    }

    #[tokio::test]
    async fn answers_that_a_lambda_cannot_carry_are_refused() {
        let plain = |bytes: usize| "x".repeat(bytes);
        for (content_type, encoding, body, expected) in [
            ("application/json", None, plain(6_000_000), StatusCode::OK),
            ("application/json", None, plain(MAX_BODY_BYTES), StatusCode::OK),
            ("application/json", None, plain(MAX_BODY_BYTES + 1), StatusCode::BAD_REQUEST),
            // Each quotation mark takes two characters in a JSON string.
            ("application/json", None, "\"".repeat(3_000_000), StatusCode::OK),
            ("application/json", None, "\"".repeat(MAX_BODY_BYTES / 2 + 1), StatusCode::BAD_REQUEST),
            // Compressed bodies and images are encoded in base64, which makes them a third longer.
            ("application/json", Some("gzip"), plain(4_500_000), StatusCode::OK),
            ("application/json", Some("gzip"), plain(5_000_000), StatusCode::BAD_REQUEST),
            ("image/png", None, plain(5_000_000), StatusCode::BAD_REQUEST),
        ] {
            let bytes = body.len();
            assert_eq!(status(content_type, encoding, body).await, expected, "{content_type} {encoding:?} {bytes}");
        }
    }
}
