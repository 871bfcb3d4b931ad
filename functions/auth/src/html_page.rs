//! HTML pages of this function, without scripts and in the style of MLflow's user interface.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_FRAME_OPTIONS};
use http::{HeaderName, HeaderValue, StatusCode};
use service::EndpointResponse;

const STYLE: &str = include_str!("html.css");
/// Content security policy of the pages. A page loads no resources, cannot be framed, and submits
/// its form to this server only.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Returns a page with a title and a body. The caller must have [escaped](escape) all text in the
/// body that a user has chosen.
pub(crate) fn page(status: StatusCode, title: &str, body: &str) -> EndpointResponse {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title} - MLflow</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n"
    );
    let answer =
        EndpointResponse::OtherProtocol { status, content_type: "text/html; charset=utf-8", body: html.into_bytes() };
    [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_FRAME_OPTIONS, "DENY"),
        // `same-origin` is the strictest policy that works, because with `no-referrer` browsers
        // would submit the form with `Origin: null`.
        (REFERRER_POLICY, "same-origin"),
        (CROSS_ORIGIN_OPENER_POLICY, "same-origin"),
    ]
    .into_iter()
    .fold(answer, |answer, (name, value)| answer.with_header(name, HeaderValue::from_static(value)))
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
    fn what_somebody_has_chosen_is_text() {
        assert_eq!(escape("<b a=\"'&"), "&lt;b a=&quot;&#39;&amp;");
        assert_eq!(note("<script>"), "<p class=\"note\" role=\"alert\">&lt;script&gt;</p>\n");
    }
}
