//! The user interface as a Lambda. Its files come from a layer; `ARTIFACTS_ORIGIN` is where the bucket with the artifacts is.

use std::path::Path;

/// Where the layer's files are, unless the environment variable `UI_DIRECTORY` says otherwise.
const LAYER: &str = "/opt/build";

#[tokio::main]
async fn main() -> Result<(), lambda_http::Error> {
    tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).without_time().init();
    let directory = std::env::var("UI_DIRECTORY").unwrap_or_else(|_| LAYER.to_owned());
    let bucket = std::env::var("ARTIFACTS_ORIGIN").ok().filter(|origin| !origin.is_empty());
    lambda_http::run(ui::router(Path::new(&directory), bucket.as_deref())).await
}
