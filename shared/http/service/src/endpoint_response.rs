//! Responses of endpoints.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mlflow_api::{Error, ErrorCode, response_size};
use rand::RngExt;
use serde::Serialize;

use crate::attachment::Attachment;

/// Range of `Retry-After` for throttled clients, in seconds. The value is random, so that retries
/// spread out. A stock client follows the header instead of its own backoff and retries seven
/// times, which takes about a minute.
pub(crate) const RETRY_AFTER_SECONDS: RangeInclusive<u16> = 5..=15;

/// The response of an endpoint.
#[derive(Debug)]
pub enum EndpointResponse {
    /// A JSON body, with status 200.
    Json(Vec<u8>),
    /// A plain text, with status 200.
    Text(&'static str),
    /// A file, either whole or the requested part.
    Attachment(Attachment),
    /// No body, with status 307. The content is available at this URL for a few minutes.
    TemporaryRedirect(String),
    /// No body, with status 303. The content is at this path of the server.
    SeeOther(String),
    /// No body, with status 200.
    Empty,
    /// A body of a protocol other than MLflow's.
    OtherProtocol {
        /// Status.
        status: StatusCode,
        /// Content type.
        content_type: &'static str,
        /// Body.
        body: Vec<u8>,
    },
    /// A response with an additional header.
    WithHeader(Box<EndpointResponse>, HeaderName, HeaderValue),
}

impl EndpointResponse {
    /// Creates a JSON response. Fails if it is longer than [`response_size::MAX_BODY_BYTES`].
    pub fn json(content: &impl Serialize) -> mlflow_api::Result<Self> {
        response_size::to_json(content).map(Self::Json)
    }

    /// Adds a header, such as `Set-Cookie`. Several headers may have the same name.
    #[must_use]
    pub fn with_header(self, name: HeaderName, value: HeaderValue) -> Self {
        Self::WithHeader(Box::new(self), name, value)
    }

    /// Converts this into the response to a request with these headers.
    pub(crate) fn into_response(self, asked: &HeaderMap) -> Response {
        match self {
            Self::Json(body) => response(StatusCode::OK, "application/json", body.into()),
            Self::Text(text) => response(StatusCode::OK, "text/plain; charset=utf-8", text.into()),
            Self::Attachment(attachment) => attachment.into_response(asked),
            Self::TemporaryRedirect(url) => redirect(StatusCode::TEMPORARY_REDIRECT, &url),
            Self::SeeOther(path) => redirect(StatusCode::SEE_OTHER, &path),
            Self::Empty => Response::default(),
            Self::OtherProtocol { status, content_type, body } => response(status, content_type, body.into()),
            Self::WithHeader(answer, name, value) => {
                let mut response = answer.into_response(asked);
                response.headers_mut().append(name, value);
                response
            }
        }
    }
}

/// Returns a redirect. It must not be cached, because anyone who has the URL can use it.
fn redirect(status: StatusCode, url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else {
        return error_response(&Error::internal("the URL is not a valid header value"));
    };
    let mut response = Response::default();
    *response.status_mut() = status;
    response.headers_mut().insert(LOCATION, location);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A URL at which a file can be read for a few minutes. Returned to clients that request the URL
/// instead of the bytes.
#[derive(Debug, Serialize)]
pub struct FileUrl {
    url: String,
    headers: BTreeMap<String, String>,
    file_size: u64,
}

impl FileUrl {
    /// Creates a response for a file at this URL with a length in bytes.
    #[must_use]
    pub fn new(url: String, length: u64) -> Self {
        Self { url, headers: BTreeMap::new(), file_size: length }
    }
}

/// A type that endpoints can return: any value that can be serialized to JSON, or an
/// [`EndpointResponse`].
pub trait IntoEndpointResponse {
    /// Converts the value into a response.
    ///
    /// # Errors
    /// An internal error for a value that cannot be serialized to JSON.
    fn into_answer(self) -> mlflow_api::Result<EndpointResponse>;
}

impl<T: Serialize> IntoEndpointResponse for T {
    fn into_answer(self) -> mlflow_api::Result<EndpointResponse> {
        EndpointResponse::json(&self)
    }
}

impl IntoEndpointResponse for EndpointResponse {
    fn into_answer(self) -> mlflow_api::Result<EndpointResponse> {
        Ok(self)
    }
}

/// Returns the response to a failed call. The cause, which is hidden from the client, is logged
/// here and nowhere else.
pub(crate) fn error_response(error: &Error) -> Response {
    error_with_retry(error, RETRY_AFTER_SECONDS)
}

/// Returns the response to a failed call. If the client was throttled, the value of `Retry-After`
/// is taken from the given range.
pub(crate) fn error_with_retry(error: &Error, come_back_after: RangeInclusive<u16>) -> Response {
    if error.code.http_status() >= 500 {
        tracing::error!(%error, "call failed");
    }
    let status = StatusCode::from_u16(error.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match error.code {
        // A browser that loads a page is redirected to the sign-in page.
        ErrorCode::Unauthenticated if error.headers.iter().any(|(name, _)| *name == "location") => {
            response(StatusCode::SEE_OTHER, "text/html; charset=utf-8", Body::empty())
        }
        // Same format as MLflow's basic authentication.
        ErrorCode::Unauthenticated | ErrorCode::PermissionDenied => {
            response(status, "text/html; charset=utf-8", error.message.clone().into())
        }
        _ => {
            let body = serde_json::to_vec(&error.body()).unwrap_or_default();
            response(status, "application/json", body.into())
        }
    };
    if matches!(error.code, ErrorCode::Unauthenticated | ErrorCode::PermissionDenied) {
        // The response must not be cached, because another caller may receive another one.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    for (name, value) in &error.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().append(*name, value);
        } else {
            tracing::error!(name, "invalid header value");
        }
    }
    if error.code == ErrorCode::ResourceExhausted {
        tracing::warn!(%error, "call throttled");
        let seconds = rand::rng().random_range(come_back_after);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Returns the response to an unknown path. It is not JSON, because stock clients interpret a 404
/// without JSON as `ENDPOINT_NOT_FOUND` and fall back to an older endpoint.
#[must_use]
pub fn html_not_found() -> Response {
    let page = "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n\
                <p>The requested URL was not found on the server.</p>\n";
    response(StatusCode::NOT_FOUND, "text/html; charset=utf-8", page.into())
}

/// A marker in the extensions of a response, for requests whose path no route has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnknownPath;

/// Returns [`html_not_found`] with the marker of a router that has no route for the path.
pub(crate) fn html_unknown_path() -> Response {
    let mut response = html_not_found();
    response.extensions_mut().insert(UnknownPath);
    response
}

/// Returns the response to a known path with an unsupported method.
pub(crate) fn html_method_not_allowed() -> Response {
    let page = "<!doctype html>\n<html lang=en>\n<title>405 Method Not Allowed</title>\n<h1>Method Not Allowed</h1>\n\
                <p>The method is not allowed for the requested URL.</p>\n";
    response(StatusCode::METHOD_NOT_ALLOWED, "text/html; charset=utf-8", page.into())
}

fn response(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
