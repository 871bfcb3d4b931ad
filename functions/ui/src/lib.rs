//! MLflow's user interface: the files of a build, served from a directory.
//!
//! The build is that of the `mlflow` wheel (`tools/fetch_ui.py`). Each large file has a compressed
//! copy next to it. It needs two kinds of paths, `/` and `/static-files/…`. All its addresses are
//! relative, and the part of an address after `#` never gets here. `docs/ui.md` has what it asks
//! the API for.

mod absent;
mod headers;
mod index;
mod row;

use std::path::Path;

use axum::Router;
use axum::routing::get;
use http::header::CONTENT_TYPE;
use tower_http::services::ServeDir;

pub use row::DOMAIN;

/// The paths that are answered to GET, as MLflow's list of endpoints has them, without additions to
/// the page.
pub const PATHS: [&str; 2] = [INDEX, "/static-files/{path}"];
const INDEX: &str = "/";

/// The routes of the user interface over the build in a directory. If there is no build, `/` says
/// how to get it. If artifacts are in a bucket, the page may read files from the bucket's origin.
pub fn router(directory: &Path, bucket: Option<&str>) -> Router {
    let build = directory.to_owned();
    let files = ServeDir::new(directory)
        .precompressed_gzip()
        .append_index_html_on_directories(false)
        .ignore_multi_range_requests(true);
    Router::new()
        .route(INDEX, get(move |request: axum::extract::Request| index::serve(build.clone(), request)))
        .route(absent::STYLE_PATH, get(|| async { ([(CONTENT_TYPE, "text/css")], absent::STYLE) }))
        .route(absent::SCRIPT_PATH, get(|| async { ([(CONTENT_TYPE, "text/javascript")], absent::SCRIPT) }))
        .nest_service("/static-files", files)
        .layer(axum::middleware::from_fn_with_state(headers::policy(bucket), headers::add))
}
