//! HTML pages of this function, in the style of MLflow's user interface. They have no scripts, except
//! for one that keeps the fragment of the URL while a user signs in at an identity provider.

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_FRAME_OPTIONS};
use http::{HeaderName, HeaderValue, StatusCode};
use service::EndpointResponse;

const STYLE: &str = include_str!("html.css");
/// Content security policy of the pages. A page loads no resources, cannot be framed, and submits
/// its form to this server only.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
/// The script of the sign-in page.
const FRAGMENT_SCRIPT: &str = include_str!("fragment.js");
/// Content security policy of the sign-in page, which allows its script by its digest. No other
/// script runs, even if an attacker finds a way to add one to the page.
static POLICY_WITH_SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let digest = STANDARD.encode(digest(&SHA256, FRAGMENT_SCRIPT.as_bytes()));
    format!("{POLICY}; script-src 'sha256-{digest}'")
});
const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Returns a page with a title and a body. The caller must have [escaped](escape) all text in the
/// body that a user has chosen.
pub(crate) fn page(status: StatusCode, title: &str, body: &str) -> EndpointResponse {
    with_policy(status, title, body, HeaderValue::from_static(POLICY))
}

/// Returns a page that contains the script that keeps the fragment of the URL (`fragment.js`). For
/// the rest, see [`page`].
pub(crate) fn page_with_fragment_script(status: StatusCode, title: &str, body: &str) -> EndpointResponse {
    let policy = HeaderValue::from_str(&POLICY_WITH_SCRIPT).unwrap_or(HeaderValue::from_static(POLICY));
    with_policy(status, title, &format!("{body}<script>{FRAGMENT_SCRIPT}</script>\n"), policy)
}

fn with_policy(status: StatusCode, title: &str, body: &str, policy: HeaderValue) -> EndpointResponse {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title} - MLflow</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n"
    );
    let answer =
        EndpointResponse::OtherProtocol { status, content_type: "text/html; charset=utf-8", body: html.into_bytes() };
    [
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (CONTENT_SECURITY_POLICY, policy),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        // `same-origin` is the strictest policy that works, because with `no-referrer` browsers
        // would submit the form with `Origin: null`.
        (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (CROSS_ORIGIN_OPENER_POLICY, HeaderValue::from_static("same-origin")),
    ]
    .into_iter()
    .fold(answer, |answer, (name, value)| answer.with_header(name, value))
}

/// Returns a paragraph that reports the outcome of an action, or an empty string for an empty text.
pub(crate) fn note(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<p class=\"note\" role=\"alert\">{}</p>\n", escape(text)) }
}

/// Escapes a text for HTML, including quoted attribute values.
pub(crate) fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, character| {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_script_of_the_page_may_run() {
        let EndpointResponse::WithHeader(page, ..) = page_with_fragment_script(StatusCode::OK, "t", "") else {
            unreachable!("a page has headers")
        };
        let mut page = *page;
        while let EndpointResponse::WithHeader(inner, ..) = page {
            page = *inner;
        }
        let EndpointResponse::OtherProtocol { body, .. } = page else { unreachable!("a page has a body") };
        let body = String::from_utf8(body).unwrap();
        let script = body.split_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
        let hash = STANDARD.encode(digest(&SHA256, script.as_bytes()));
        assert!(POLICY_WITH_SCRIPT.ends_with(&format!("; script-src 'sha256-{hash}'")), "{}", *POLICY_WITH_SCRIPT);
        assert!(POLICY_WITH_SCRIPT.starts_with("default-src 'none';") && !POLICY.contains("script-src"));
    }

    #[test]
    fn what_somebody_has_chosen_is_text() {
        assert_eq!(escape("<b a=\"'&"), "&lt;b a=&quot;&#39;&amp;");
        assert_eq!(note("<script>"), "<p class=\"note\" role=\"alert\">&lt;script&gt;</p>\n");
    }
}
