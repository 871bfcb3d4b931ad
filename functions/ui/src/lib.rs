//! MLflow's user interface: the files of a build, served from a directory. With the feature
//! `embedded`, a build is also in the program.
//!
//! The build is that of the `mlflow` wheel (`tools/fetch_ui.py`). Each large file has a compressed
//! copy next to it. It needs two kinds of paths, `/` and `/static-files/…`. All its addresses are
//! relative, and the part of an address after `#` never gets here. `docs/guide/ui.md` has what it asks
//! the API for.

mod absent;
mod declaration;
#[cfg(feature = "embedded")]
mod embedded;
mod files;
mod headers;
mod index;
mod preview;

use std::path::Path;

use axum::Router;
use axum::extract::Request;
use axum::routing::{MethodRouter, get};
use http::header::CONTENT_TYPE;
use tower_http::services::ServeDir;

pub use declaration::DOMAIN;

/// The paths that are answered to GET, as MLflow's list of endpoints has them, without additions to
/// the page.
pub const PATHS: [&str; 2] = [INDEX, "/static-files/{path}"];
const INDEX: &str = "/";

/// Whether a build is in this program.
pub const IS_EMBEDDED: bool = cfg!(feature = "embedded");

/// The routes of the user interface over the build in a directory. If there is no build, `/` says
/// how to get it. If artifacts are in a bucket, the page may read files from the bucket's origin.
pub fn router(directory: &Path, bucket: Option<&str>) -> Router {
    let build = directory.to_owned();
    let files = files::serve(
        ServeDir::new(directory)
            .precompressed_gzip()
            .append_index_html_on_directories(false)
            .ignore_multi_range_requests(true),
    );
    let page = get(move |request: Request| {
        let build = build.clone();
        async move { index::serve(index::read(&build).await, &request) }
    });
    layered(with_page(page).nest_service("/static-files", files), bucket)
}

/// The routes over the build in this program; none if there is none.
#[must_use]
pub fn embedded_router(bucket: Option<&str>) -> Option<Router> {
    #[cfg(feature = "embedded")]
    {
        let page = get(|request: Request| async move { index::serve(embedded::page(), &request) });
        Some(layered(with_page(page).route("/static-files/{*name}", get(embedded::serve)), bucket))
    }
    #[cfg(not(feature = "embedded"))]
    {
        let _ = bucket;
        None
    }
}

/// The page, and our additions to it.
fn with_page(page: MethodRouter) -> Router {
    Router::new()
        .route(INDEX, page)
        .route(absent::STYLE_PATH, get(|| async { ([(CONTENT_TYPE, "text/css")], absent::STYLE) }))
        .route(absent::SCRIPT_PATH, get(|| async { ([(CONTENT_TYPE, "text/javascript")], absent::SCRIPT) }))
        .route(preview::SCRIPT_PATH, get(preview::script))
        .route(preview::DOCUMENT_PATH, get(preview::document))
}

fn layered(router: Router, bucket: Option<&str>) -> Router {
    router.layer(axum::middleware::from_fn_with_state(headers::policy(bucket), headers::add))
}
