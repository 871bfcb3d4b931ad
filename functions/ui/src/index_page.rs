//! Serves the page itself. The build is served unchanged, except for one line that is added to
//! `index.html`.

use std::io::ErrorKind;
use std::path::Path;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

const NOT_INSTALLED: &str = "The MLflow UI is not installed here. `make ui` fetches it into ui/build; then start the server again \
                       with `--ui ui/build`.\n";

/// The tag in `index.html` that is replaced with [`HEAD_WITH_ADDITIONS`].
const HEAD_TAG: &str = "<head>";
/// `<head>`, followed by the elements that load the style sheet and scripts of `hidden_features.rs`,
/// `html_preview.rs` and `session_renewal.rs`. These elements come first, so they are loaded before those of MLflow's
/// build.
const HEAD_WITH_ADDITIONS: &str = concat!(
    r#"<head><link rel="stylesheet" href="static-files/absent.css">"#,
    r#"<script src="static-files/session_renewal.js"></script>"#,
    r#"<script src="static-files/absent.js"></script><script src="static-files/preview.js"></script>"#
);

/// Reads the `index.html` of the build in a directory.
pub(crate) async fn read(build: &Path) -> std::io::Result<String> {
    tokio::fs::read_to_string(build.join("index.html")).await
}

/// Serves `index.html`.
pub(crate) fn serve(page: std::io::Result<String>, request: &Request) -> Response {
    let page = match page {
        Ok(page) => page.replacen(HEAD_TAG, HEAD_WITH_ADDITIONS, 1),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return (StatusCode::NOT_FOUND, NOT_INSTALLED).into_response();
        }
        Err(error) => {
            tracing::error!(%error, "failed to read the user interface");
            return (StatusCode::INTERNAL_SERVER_ERROR, "The MLflow UI cannot be read.\n").into_response();
        }
    };
    let tag = tag(&page);
    if request.headers().get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    let mut response = Response::new(Body::from(page));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn tag(page: &str) -> String {
    let digest = Sha256::digest(page.as_bytes());
    let beginning = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("\"{beginning:x}\"")
}
