//! Tells the requests that a browser sends for a page of this server. Leads a page without a
//! signed-in user to the page for signing in.

use access::Arrived;
use http::header::{HOST, ORIGIN};
use http::{HeaderName, Method};
use mlflow_api::{Error, ErrorCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Where one signs in.
pub const SIGN_IN: &str = "/signin";
/// Pages for those who have signed in.
pub const PAGES: [&str; 3] = ["/", "/tokens", "/signup"];
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether a request shows one of the pages.
pub(crate) fn is_page(arrived: &Arrived) -> bool {
    is_reading(arrived) && PAGES.contains(&path(arrived).as_str())
}

/// The path; if a base URL ends in a slash, the path begins with two.
fn path(arrived: &Arrived) -> String {
    format!("/{}", arrived.path.trim_start_matches('/'))
}

/// Whether a browser sends this from a page of this server, and not for one of another origin. Browsers say that, and no page can write these
/// headers.
#[must_use]
pub fn is_of_own_page(arrived: &Arrived) -> bool {
    // A request that changes something has one of the headers.
    said(arrived).unwrap_or_else(|| is_reading(arrived))
}

/// Whether a browser says that it sends this for a page of another origin.
pub(crate) fn is_of_foreign_page(arrived: &Arrived) -> bool {
    said(arrived) == Some(false)
}

/// Whether a browser sends this for a page of this server, by its headers.
fn said(arrived: &Arrived) -> Option<bool> {
    if arrived.headers.contains_key(&SEC_FETCH_SITE) {
        let site = only(arrived, &SEC_FETCH_SITE);
        return Some(site == Some("same-origin") || (is_reading(arrived) && site == Some("none")));
    }
    arrived.headers.contains_key(ORIGIN).then(|| {
        let host = only(arrived, &HOST);
        let origin = only(arrived, &ORIGIN).and_then(|origin| origin.split_once("://"));
        origin.is_some_and(|(_, authority)| host.is_some_and(|host| host.eq_ignore_ascii_case(authority)))
    })
}

fn is_reading(arrived: &Arrived) -> bool {
    matches!(arrived.method, Method::GET | Method::HEAD)
}

/// The value of a header that is there once.
fn only<'a>(arrived: &'a Arrived, header: &HeaderName) -> Option<&'a str> {
    let mut values = arrived.headers.get_all(header).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok())?
}

/// The target after signing in: a page of this server, and nowhere else. The browser keeps the part
/// after a `#`.
#[must_use]
pub fn back(next: &str) -> &str {
    let path = next.split('?').next().unwrap_or_default();
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\#".contains(&byte));
    if PAGES.contains(&path) && is_plain { next } else { "/" }
}

/// The refusal of a request whose sender is not known. A page leads to where one signs in. Clients
/// of the API are asked for credentials. Requests of the page's scripts are not, as the browser
/// would ask its user.
#[must_use]
pub(crate) fn unauthenticated(arrived: &Arrived) -> Error {
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
        return error.with_header("location", format!("{SIGN_IN}{next}"));
    }
    let is_api = path.starts_with("/api/") || path.starts_with("/v1/");
    if is_api { error.with_header("www-authenticate", "Basic realm=\"mlflow\"") } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(method: &str, uri: &str, headers: &[(&str, &str)]) -> Arrived {
        let request = http::Request::builder().method(method).uri(uri);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Arrived::of(&request.body(()).unwrap().into_parts().0)
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
        for own in ["/", "/?workspace=a", "/tokens", "/signup"] {
            assert_eq!(back(own), own);
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
            assert_eq!(back(other), "/", "{other}");
        }
    }
}
