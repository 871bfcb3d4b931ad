//! The preview of HTML artifacts: a document for a sandboxed frame, with a policy of its own.
//!
//! MLflow's page shows an HTML artifact in a frame with a `blob:` URL. Such a frame inherits the
//! policy of the page, which blocks inline scripts, and so nearly every report is blank. A script
//! of ours (`preview.js`) loads `preview.html` into the frame instead and sends it the artifact.
//! The policy of the page stays as strict as it is.

use axum::response::{Html, IntoResponse};
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};

/// Path of the script that the page loads.
pub(crate) const SCRIPT_PATH: &str = "/static-files/preview.js";
/// Path of the document in the frame.
pub(crate) const DOCUMENT_PATH: &str = "/static-files/preview.html";

const SCRIPT: &str = include_str!("preview.js");
const DOCUMENT: &str = include_str!("preview.html");

/// The hosts from which Plotly, Bokeh, Altair, folium and pyvis load their scripts by default.
/// `log_figure` writes Plotly figures that need the first one.
macro_rules! cdns {
    () => {
        "https://cdn.plot.ly https://cdn.bokeh.org https://cdn.jsdelivr.net https://cdnjs.cloudflare.com \
         https://code.jquery.com"
    };
}

/// The content that a report may load and run. Anybody who may log an artifact writes it, so it
/// gets an opaque origin, wherever it is opened: no cookies, no storage, and no access to the page.
/// It sends no requests but to the CDNs, so it does not reach the API. Where the frame may be
/// navigated to is up to `frame-src` of the page, which never leads to another site.
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

/// Answers with the script for the page.
pub(crate) async fn script() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/javascript")], SCRIPT)
}

/// Answers with the document for the frame, with its policy.
pub(crate) async fn document() -> impl IntoResponse {
    let headers = [(CONTENT_SECURITY_POLICY, POLICY), (REFERRER_POLICY, "no-referrer")];
    (headers.map(|(name, value)| (name, HeaderValue::from_static(value))), Html(DOCUMENT))
}
