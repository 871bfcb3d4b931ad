//! Previews of HTML artifacts: a document for a sandboxed frame, with its own content security
//! policy.
//!
//! MLflow's page shows an HTML artifact in a frame with a `blob:` URL. Such a frame inherits the
//! policy of the page, which blocks inline scripts, so that nearly every report would be blank.
//! Instead, our script (`preview.js`) loads `preview.html` into the frame and sends it the
//! artifact. The policy of the page remains strict.

use axum::response::{Html, IntoResponse};
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};

/// Path of the script that the page loads.
pub(crate) const SCRIPT_PATH: &str = "/static-files/preview.js";
/// Path of the document in the frame.
pub(crate) const DOCUMENT_PATH: &str = "/static-files/preview.html";

const SCRIPT: &str = include_str!("preview.js");
const DOCUMENT: &str = include_str!("preview.html");

/// The hosts from which Plotly, Bokeh, Altair, folium and pyvis load their scripts by default. The
/// first host is needed for Plotly figures that `log_figure` writes.
macro_rules! cdns {
    () => {
        "https://cdn.plot.ly https://cdn.bokeh.org https://cdn.jsdelivr.net https://cdnjs.cloudflare.com \
         https://code.jquery.com"
    };
}

/// Content security policy of a report. Anyone who may log an artifact can write a report, so a
/// report gets an opaque origin wherever it is opened. It has no cookies, no storage, and no access
/// to the page. It may send requests only to the CDNs, and thus cannot reach the API. Navigation of
/// the frame is restricted by the page's `frame-src`, which never allows other sites.
const POLICY: &str = concat!(
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' data: blob: ",
    cdns!(),
    "; worker-src data: blob:; style-src 'unsafe-inline' data: blob: ",
    cdns!(),
    "; img-src data: blob: ",
    cdns!(),
    "; font-src data: blob: ",
    cdns!(),
    "; media-src data: blob:; connect-src data: blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
);

/// Serves the script for the page.
pub(crate) async fn script() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/javascript")], SCRIPT)
}

/// Serves the document for the frame, with its policy.
pub(crate) async fn document() -> impl IntoResponse {
    let headers = [(CONTENT_SECURITY_POLICY, POLICY), (REFERRER_POLICY, "no-referrer")];
    (headers.map(|(name, value)| (name, HeaderValue::from_static(value))), Html(DOCUMENT))
}
