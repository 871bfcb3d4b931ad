//! Headers that are forwarded in each direction.

use http::header::{
    ACCEPT, ACCEPT_LANGUAGE, ACCEPT_RANGES, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_DISPOSITION,
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, ETAG, EXPECT,
    FORWARDED, HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, ORIGIN,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RANGE, REFERER, SET_COOKIE, STRICT_TRANSPORT_SECURITY, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, USER_AGENT, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// Hop-by-hop headers, which belong to a single connection (RFC 9110, section 7.6.1).
const HOP_BY_HOP_HEADERS: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
/// Request headers that are not forwarded, because they concern the connection between the browser
/// and this server. Host and origin are those of this server, and mean nothing to the API. Cookies
/// are replaced by the signature.
const BROWSER_HEADERS: [HeaderName; 8] =
    [AUTHORIZATION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, ORIGIN, REFERER];
/// Response headers of the API that are not passed on, because the browser would apply them to this
/// server: cookies would be set for `localhost`, and TLS would be required, which this server does
/// not support.
const API_HEADERS: [HeaderName; 3] = [SET_COOKIE, STRICT_TRANSPORT_SECURITY, HeaderName::from_static("alt-svc")];
/// Request headers that a bucket needs to send or receive a file. All other headers are dropped,
/// most importantly those of a signature.
const BUCKET_REQUEST_HEADERS: [HeaderName; 10] = [
    ACCEPT,
    ACCEPT_LANGUAGE,
    CONTENT_TYPE,
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    IF_UNMODIFIED_SINCE,
    RANGE,
    USER_AGENT,
];
const BUCKET_RESPONSE_HEADERS: [HeaderName; 8] = [
    ACCEPT_RANGES,
    CONTENT_DISPOSITION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    ETAG,
    LAST_MODIFIED,
];
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Path prefixes of file uploads. For these, clients send a content type that they have guessed
/// from the file name.
const UPLOAD_PATHS: [&str; 2] = ["/mlflow-artifacts/artifacts/", "/mlflow/upload-artifact"];

/// Returns the headers of a request to the API. The `Origin` header is dropped, because
/// `local-guard` has already checked it. `Sec-Fetch-Site` is forwarded only if it shows that the
/// request does not come from another site. The API then treats the page as its own, which it is,
/// because it has served the page's content.
pub(crate) fn to_api(method: &Method, path: &str, sent: &HeaderMap) -> HeaderMap {
    let mut headers = without(sent, |name| {
        let text = name.as_str();
        BROWSER_HEADERS.contains(name)
            || ["sec-", "x-amz-", "x-forwarded-"].iter().any(|prefix| text.starts_with(prefix))
    });
    if let Some(site) = sent.get(SEC_FETCH_SITE).filter(|site| *site == "same-origin" || *site == "none") {
        headers.insert(SEC_FETCH_SITE, site.clone());
    }
    // API Gateway passes bodies of textual types to functions as text, and replaces bytes that are
    // not UTF-8.
    let is_file =
        matches!(*method, Method::PUT | Method::POST) && UPLOAD_PATHS.iter().any(|files| path.contains(files));
    if is_file {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    }
    headers
}

/// Returns the headers that the signature covers. Headers that may be changed in transit are left
/// out.
pub(crate) fn signed_headers(headers: &HeaderMap) -> HeaderMap {
    headers.get(CONTENT_TYPE).into_iter().map(|value| (CONTENT_TYPE, value.clone())).collect()
}

/// Returns the headers for a bucket when the API redirects a request to it. The API's signature is
/// dropped, because the bucket's URL already contains a signature, and S3 rejects requests with
/// two.
pub(crate) fn to_bucket(to_api: &HeaderMap) -> HeaderMap {
    only(to_api, &BUCKET_REQUEST_HEADERS)
}

/// Returns the headers of an API response for the browser.
pub(crate) fn from_api(answered: &HeaderMap) -> HeaderMap {
    without(answered, |name| API_HEADERS.contains(name) || name.as_str().starts_with("access-control-"))
}

/// Returns the headers of a bucket response for the browser. Uploaded content must not run as a
/// page of this server's origin, so the response makes the browser save it instead of displaying
/// it, as in `shared/http/service`.
pub(crate) fn from_bucket(answered: &HeaderMap) -> HeaderMap {
    let mut headers = only(answered, &BUCKET_RESPONSE_HEADERS);
    if !headers.contains_key(CONTENT_DISPOSITION) {
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    for (name, value) in [
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
}

fn only(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| names.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the headers without hop-by-hop headers and without those for which `is_dropped` returns
/// `true`. `Connection` may name further hop-by-hop headers.
fn without(headers: &HeaderMap, is_dropped: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<_> = named.flat_map(|value| value.split(',')).map(|name| name.trim().to_lowercase()).collect();
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        let is_of_connection = HOP_BY_HOP_HEADERS.contains(name) || named.iter().any(|named| named == name.as_str());
        if !is_of_connection && !is_dropped(name) {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn what_is_about_this_server_or_this_connection_stays_here() {
        let sent = headers(&[
            ("accept", "*/*"),
            ("accept-encoding", "gzip"),
            ("authorization", "Basic x"),
            ("connection", "keep-alive, X-Of-Connection"),
            ("content-length", "3"),
            ("cookie", "mlflow_proxy_5001=x"),
            ("expect", "100-continue"),
            ("host", "127.0.0.1:5001"),
            ("origin", "http://127.0.0.1:5001"),
            ("referer", "http://127.0.0.1:5001/"),
            ("sec-ch-ua", "x"),
            ("sec-fetch-mode", "cors"),
            ("sec-fetch-site", "same-origin"),
            ("upgrade", "websocket"),
            ("x-amz-date", "x"),
            ("x-forwarded-for", "x"),
            ("x-mlflow-workspace", "team"),
            ("x-of-connection", "x"),
        ]);
        let expected = headers(&[
            ("accept", "*/*"),
            ("accept-encoding", "gzip"),
            ("sec-fetch-site", "same-origin"),
            ("x-mlflow-workspace", "team"),
        ]);
        assert_eq!(to_api(&Method::GET, "/", &sent), expected);
        assert!(!to_api(&Method::GET, "/", &headers(&[("sec-fetch-site", "cross-site")])).contains_key(SEC_FETCH_SITE));
        assert_eq!(to_bucket(&expected), headers(&[("accept", "*/*")]));
    }

    #[test]
    fn a_file_is_never_called_a_text() {
        let text = headers(&[("content-type", "text/plain")]);
        for (method, path, expected) in [
            (Method::PUT, "/ajax-api/2.0/mlflow-artifacts/artifacts/1/a.txt", "application/octet-stream"),
            (Method::POST, "/ajax-api/2.0/mlflow/upload-artifact", "application/octet-stream"),
            (Method::POST, "/graphql", "text/plain"),
        ] {
            assert_eq!(to_api(&method, path, &text)[CONTENT_TYPE], expected, "{path}");
        }
    }

    #[test]
    fn answers_leave_no_cookies_and_files_are_saved() {
        let answered = headers(&[
            ("access-control-allow-origin", "*"),
            ("content-type", "text/html"),
            ("set-cookie", "a=b"),
            ("strict-transport-security", "max-age=9"),
            ("transfer-encoding", "chunked"),
            ("x-amz-id-2", "x"),
        ]);
        assert_eq!(from_api(&answered), headers(&[("content-type", "text/html"), ("x-amz-id-2", "x")]));
        let file = from_bucket(&answered);
        assert_eq!(file[CONTENT_DISPOSITION], "attachment");
        assert_eq!(file[CONTENT_SECURITY_POLICY], "sandbox; default-src 'none'");
        assert!(!file.contains_key("x-amz-id-2"));
    }
}
