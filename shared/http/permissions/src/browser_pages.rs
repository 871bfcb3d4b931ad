//! Recognizes requests that browsers send for pages of this server, and redirects pages without a
//! signed-in user to the sign-in page.

use access::RequestHead;
use http::header::{HOST, ORIGIN};
use http::{HeaderName, Method};
use mlflow_api::{Error, ErrorCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Path of the sign-in page.
pub const SIGN_IN_PATH: &str = "/signin";
/// Paths of the pages that require sign-in.
pub const PAGE_PATHS: [&str; 4] = ["/", "/tokens", "/signup", "/login"];
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Checks whether a request loads one of the pages.
pub(crate) fn is_page(arrived: &RequestHead) -> bool {
    has_reading_method(arrived) && PAGE_PATHS.contains(&path(arrived).as_str())
}

/// Returns the path with a single leading slash. If a client's base URL ends in a slash, the path
/// begins with two.
fn path(arrived: &RequestHead) -> String {
    format!("/{}", arrived.path.trim_start_matches('/'))
}

/// Checks whether a browser sent the request from a page of this server rather than from one of
/// another origin. This follows from headers that browsers set and pages cannot change. Without
/// these headers, only a request with a reading method passes.
#[must_use]
pub fn is_of_own_page(arrived: &RequestHead) -> bool {
    // Browsers send one of these headers with every request that changes something.
    is_same_origin(arrived).unwrap_or_else(|| has_reading_method(arrived))
}

/// Checks whether a browser sent the request from a page of another origin.
#[must_use]
pub fn is_of_foreign_page(arrived: &RequestHead) -> bool {
    is_same_origin(arrived) == Some(false)
}

/// Returns whether a page of this server sent the request, judging by its headers. Returns `None`
/// if neither header is present.
fn is_same_origin(arrived: &RequestHead) -> Option<bool> {
    if arrived.headers.contains_key(&SEC_FETCH_SITE) {
        let site = single_header(arrived, &SEC_FETCH_SITE);
        return Some(site == Some("same-origin") || (has_reading_method(arrived) && site == Some("none")));
    }
    arrived.headers.contains_key(ORIGIN).then(|| {
        let host = single_header(arrived, &HOST);
        let origin = single_header(arrived, &ORIGIN).and_then(|origin| origin.split_once("://"));
        origin.is_some_and(|(_, authority)| host.is_some_and(|host| host.eq_ignore_ascii_case(authority)))
    })
}

fn has_reading_method(arrived: &RequestHead) -> bool {
    matches!(arrived.method, Method::GET | Method::HEAD)
}

/// Returns the value of a header, unless it is missing or repeated.
fn single_header<'a>(arrived: &'a RequestHead, header: &HeaderName) -> Option<&'a str> {
    let mut values = arrived.headers.get_all(header).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok())?
}

/// Returns the path to redirect to after sign-in, which is always a page of this server. The
/// fragment is not part of `next`, because the browser keeps it.
#[must_use]
pub fn redirect_path(next: &str) -> &str {
    let path = next.split('?').next().unwrap_or_default();
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\#".contains(&byte));
    if PAGE_PATHS.contains(&path) && is_plain { next } else { "/" }
}

/// Returns the error for an unauthenticated request. Pages are redirected to the sign-in page. API
/// clients receive an authentication challenge. Requests of the page's scripts do not, because a
/// challenge makes the browser prompt for a password.
#[must_use]
pub(crate) fn unauthenticated(arrived: &RequestHead) -> Error {
    let error = Error::new(
        ErrorCode::Unauthenticated,
        "You are not authenticated. Please see \
         https://www.mlflow.org/docs/latest/auth/index.html#authenticating-to-mlflow on how to authenticate.",
    );
    let path = path(arrived);
    if is_page(arrived) {
        let next = match &arrived.query {
            Some(query) => format!("{path}?{query}"),
            None => path,
        };
        let next =
            if next == "/" { String::new() } else { format!("?next={}", utf8_percent_encode(&next, NON_ALPHANUMERIC)) };
        return error.with_header("location", format!("{SIGN_IN_PATH}{next}"));
    }
    let is_api = path.starts_with("/api/") || path.starts_with("/v1/");
    if is_api { error.with_header("www-authenticate", "Basic realm=\"mlflow\"") } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(method: &str, uri: &str, headers: &[(&str, &str)]) -> RequestHead {
        let request = http::Request::builder().method(method).uri(uri);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        RequestHead::of(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn pages_lead_and_the_api_asks() {
        let refusal = |method: &str, uri: &str| unauthenticated(&arrived(method, uri, &[])).headers;
        let leads = |to: &str| vec![("location", to.to_owned())];
        assert_eq!(refusal("GET", "/"), leads("/signin"));
        assert_eq!(refusal("GET", "/?a=b&c"), leads("/signin?next=%2F%3Fa%3Db%26c"));
        assert_eq!(refusal("HEAD", "//tokens"), leads("/signin?next=%2Ftokens"));
        let asks = vec![("www-authenticate", "Basic realm=\"mlflow\"".to_owned())];
        for path in ["/api/2.0/mlflow/runs/get", "//api/2.0/mlflow/runs/get", "/v1/traces"] {
            assert_eq!(refusal("GET", path), asks, "{path}");
        }
        for (method, path) in [("GET", "/ajax-api/x"), ("POST", "/graphql"), ("GET", "/get-artifact"), ("POST", "/")] {
            assert_eq!(refusal(method, path), Vec::new(), "{path}");
        }
    }

    #[test]
    fn only_own_pages_may_change_something() {
        let host = ("host", "ml.example:5000");
        for (headers, reads, writes) in [
            (vec![], true, false),
            (vec![("sec-fetch-site", "same-origin")], true, true),
            (vec![("sec-fetch-site", "none")], true, false),
            (vec![("sec-fetch-site", "same-site")], false, false),
            (vec![("sec-fetch-site", "cross-site")], false, false),
            (vec![("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false, false),
            (vec![("origin", "http://ml.example:5000")], true, true),
            (vec![("origin", "https://ML.example:5000")], true, true),
            (vec![("origin", "http://ml.example")], false, false),
            (vec![("origin", "http://evil.ml.example:5000")], false, false),
            (vec![("origin", "null")], false, false),
        ] {
            let all: Vec<_> = headers.iter().copied().chain([host]).collect();
            let own = ["GET", "POST"].map(|method| is_of_own_page(&arrived(method, "/", &all)));
            assert_eq!(own, [reads, writes], "{headers:?}");
        }
    }

    #[test]
    fn one_comes_back_to_a_page_of_this_server() {
        for own in ["/", "/?workspace=a", "/tokens", "/signup", "/login?user_code=BCDF-GHJK"] {
            assert_eq!(redirect_path(own), own);
        }
        for other in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/x",
            "/?\r\nset-cookie: a",
            "/tokens/../x",
            "/?#",
        ] {
            assert_eq!(redirect_path(other), "/", "{other}");
        }
    }
}
