//! Answers.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mlflow_api::{Error, ErrorCode, answer_size};
use rand::RngExt;
use serde::Serialize;

use crate::attachment::Attachment;

/// After how many seconds a throttled client is to come back: each after another time, so that they spread out. A stock client does as the
/// header says, in place of pauses of its own, and comes back seven times: for about a minute.
pub(crate) const COME_BACK_AFTER: RangeInclusive<u16> = 5..=15;

/// What a handler answers.
#[derive(Debug)]
pub enum Answer {
    /// A JSON body, status 200.
    Json(Vec<u8>),
    /// A plain text, status 200.
    Text(&'static str),
    /// A file, whole or the part that was asked for.
    Attachment(Attachment),
    /// No body, status 307: the content is at this URL, for a few minutes.
    Elsewhere(String),
    /// No body, status 303: the content is at this path of the server.
    SeeOther(String),
    /// No body, status 200.
    Empty,
    /// A body of another protocol than MLflow's.
    Foreign {
        /// Status.
        status: StatusCode,
        /// Type of the body.
        content_type: &'static str,
        /// Body.
        body: Vec<u8>,
    },
    /// An answer with a header more.
    WithHeader(Box<Answer>, HeaderName, HeaderValue),
}

impl Answer {
    /// A JSON answer. One that is longer than [`answer_size::LONGEST`] is refused.
    pub fn json(content: &impl Serialize) -> mlflow_api::Result<Self> {
        answer_size::to_json(content).map(Self::Json)
    }

    /// The same answer with another header, such as `Set-Cookie`. There may be several of one name.
    #[must_use]
    pub fn with_header(self, name: HeaderName, value: HeaderValue) -> Self {
        Self::WithHeader(Box::new(self), name, value)
    }

    /// The answer to a request with these headers.
    pub(crate) fn into_response(self, asked: &HeaderMap) -> Response {
        match self {
            Self::Json(body) => response(StatusCode::OK, "application/json", body.into()),
            Self::Text(text) => response(StatusCode::OK, "text/plain; charset=utf-8", text.into()),
            Self::Attachment(attachment) => attachment.into_response(asked),
            Self::Elsewhere(url) => elsewhere(StatusCode::TEMPORARY_REDIRECT, &url),
            Self::SeeOther(path) => elsewhere(StatusCode::SEE_OTHER, &path),
            Self::Empty => Response::default(),
            Self::Foreign { status, content_type, body } => response(status, content_type, body.into()),
            Self::WithHeader(answer, name, value) => {
                let mut response = answer.into_response(asked);
                response.headers_mut().append(name, value);
                response
            }
        }
    }
}

/// Everybody who has the URL may use it, so it must not be cached.
fn elsewhere(status: StatusCode, url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else {
        return error_response(&Error::internal("a URL that is no header"));
    };
    let mut response = Response::default();
    *response.status_mut() = status;
    response.headers_mut().insert(LOCATION, location);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A file that is read elsewhere, for a few minutes: by a client that asks for the URL and not for the bytes.
#[derive(Debug, Serialize)]
pub struct FileUrl {
    url: String,
    headers: BTreeMap<String, String>,
    file_size: u64,
}

impl FileUrl {
    /// The file at this URL, of this length in bytes.
    #[must_use]
    pub fn new(url: String, length: u64) -> Self {
        Self { url, headers: BTreeMap::new(), file_size: length }
    }
}

/// What an endpoint may answer with: anything that becomes JSON, or an [`Answer`] that it made itself.
pub trait IntoAnswer {
    /// The answer.
    ///
    /// # Errors
    /// An internal one, for a value that cannot be JSON.
    fn into_answer(self) -> mlflow_api::Result<Answer>;
}

impl<T: Serialize> IntoAnswer for T {
    fn into_answer(self) -> mlflow_api::Result<Answer> {
        Answer::json(&self)
    }
}

impl IntoAnswer for Answer {
    fn into_answer(self) -> mlflow_api::Result<Answer> {
        Ok(self)
    }
}

/// The answer to a failed call. The cause, which the client does not see, is logged here, and only
/// here.
pub(crate) fn error_response(error: &Error) -> Response {
    error_with_retry(error, COME_BACK_AFTER)
}

/// The same to a client that is to come back after so many seconds if it was throttled.
pub(crate) fn error_with_retry(error: &Error, come_back_after: RangeInclusive<u16>) -> Response {
    if error.code.http_status() >= 500 {
        tracing::error!(%error, "call failed");
    }
    let status = StatusCode::from_u16(error.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match error.code {
        // A browser that asks for a page is led to where one signs in.
        ErrorCode::Unauthenticated if error.headers.iter().any(|(name, _)| *name == "location") => {
            response(StatusCode::SEE_OTHER, "text/html; charset=utf-8", Body::empty())
        }
        // As MLflow's basic authentication answers.
        ErrorCode::Unauthenticated | ErrorCode::PermissionDenied => {
            response(status, "text/html; charset=utf-8", error.message.clone().into())
        }
        _ => {
            let body = serde_json::to_vec(&error.body()).unwrap_or_default();
            response(status, "application/json", body.into())
        }
    };
    if matches!(error.code, ErrorCode::Unauthenticated | ErrorCode::PermissionDenied) {
        // Another caller may get another answer.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    for (name, value) in &error.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().append(*name, value);
        } else {
            tracing::error!(name, "a value that is no header's");
        }
    }
    if error.code == ErrorCode::ResourceExhausted {
        tracing::warn!(%error, "call throttled");
        let seconds = rand::rng().random_range(come_back_after);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The answer to an unknown path. It is no JSON: stock clients read a 404 that is none as `ENDPOINT_NOT_FOUND` and fall back
/// to an older endpoint.
#[must_use]
pub fn html_not_found() -> Response {
    let page = "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n\
                <p>The requested URL was not found on the server.</p>\n";
    response(StatusCode::NOT_FOUND, "text/html; charset=utf-8", page.into())
}

/// Goes with the answer to a path that no route has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnknownPath;

/// [`html_not_found`] of a router: it has no route for the path.
pub(crate) fn html_unknown_path() -> Response {
    let mut response = html_not_found();
    response.extensions_mut().insert(UnknownPath);
    response
}

/// The answer to a known path with a method it does not have.
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
