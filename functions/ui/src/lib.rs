//! MLflow's user interface: serves the files of a build from a directory, or from the program if it
//! was compiled with the feature `embedded`.
//!
//! The build is the one in the `mlflow` wheel (`tools/fetch_ui.py`). Each large file has a
//! compressed copy next to it. The build needs two kinds of paths, `/` and `/static-files/…`. All
//! its URLs are relative, and the fragment of a URL (after `#`) never reaches the server.
//! `docs/guide/ui.md` lists the requests that it makes to the API.

mod browser_headers;
mod declaration;
mod directory_files;
#[cfg(feature = "embedded")]
mod embedded_files;
mod hidden_features;
mod html_preview;
mod index_page;
mod session_renewal;

use std::path::Path;

use axum::Router;
use axum::extract::Request;
use axum::routing::{MethodRouter, get};
use http::header::CONTENT_TYPE;
use tower_http::services::ServeDir;

pub use declaration::DOMAIN;

/// The paths that are served to GET requests, as in MLflow's list of endpoints. The files that this
/// server adds to the page are not included.
pub const PATHS: [&str; 2] = [INDEX, "/static-files/{path}"];
const INDEX: &str = "/";

/// Whether a build is embedded in this program.
pub const IS_EMBEDDED: bool = cfg!(feature = "embedded");

/// Returns the routes of the user interface for a build in a directory. If the directory contains
/// no build, `/` explains how to install it. If artifacts are in a bucket, `bucket` is its origin,
/// and the page may read files from it.
pub fn router(directory: &Path, bucket: Option<&str>) -> Router {
    let build = directory.to_owned();
    let files = directory_files::serve(
        ServeDir::new(directory)
            .precompressed_gzip()
            .append_index_html_on_directories(false)
            .ignore_multi_range_requests(true),
    );
    let page = get(move |request: Request| {
        let build = build.clone();
        async move { index_page::serve(index_page::read(&build).await, &request) }
    });
    with_layers(with_page(page).nest_service("/static-files", files), bucket)
}

/// Returns the routes for the embedded build, or `None` if the program does not contain one.
#[must_use]
pub fn embedded_router(bucket: Option<&str>) -> Option<Router> {
    #[cfg(feature = "embedded")]
    {
        let page = get(|request: Request| async move { index_page::serve(embedded_files::page(), &request) });
        Some(with_layers(with_page(page).route("/static-files/{*name}", get(embedded_files::serve)), bucket))
    }
    #[cfg(not(feature = "embedded"))]
    {
        let _ = bucket;
        None
    }
}

/// Returns the routes of the page and of the files that this server adds to it.
fn with_page(page: MethodRouter) -> Router {
    Router::new()
        .route(INDEX, page)
        .route(hidden_features::STYLE_PATH, get(|| async { ([(CONTENT_TYPE, "text/css")], hidden_features::STYLE) }))
        .route(
            hidden_features::SCRIPT_PATH,
            get(|| async { ([(CONTENT_TYPE, "text/javascript")], hidden_features::SCRIPT) }),
        )
        .route(
            session_renewal::SCRIPT_PATH,
            get(|| async { ([(CONTENT_TYPE, "text/javascript")], session_renewal::SCRIPT) }),
        )
        .route(html_preview::SCRIPT_PATH, get(html_preview::script))
        .route(html_preview::DOCUMENT_PATH, get(html_preview::document))
}

fn with_layers(router: Router, bucket: Option<&str>) -> Router {
    router.layer(axum::middleware::from_fn_with_state(browser_headers::policy(bucket), browser_headers::add_headers))
}
