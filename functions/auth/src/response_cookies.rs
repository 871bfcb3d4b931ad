//! Cookies in responses.

use http::HeaderValue;
use http::header::SET_COOKIE;
use service::EndpointResponse;

/// Adds `Set-Cookie` headers to a response.
pub(crate) fn with_cookies(answer: EndpointResponse, cookies: impl IntoIterator<Item = String>) -> EndpointResponse {
    cookies.into_iter().fold(answer, |answer, cookie| match HeaderValue::from_str(&cookie) {
        Ok(cookie) => answer.with_header(SET_COOKIE, cookie),
        Err(_) => answer,
    })
}
