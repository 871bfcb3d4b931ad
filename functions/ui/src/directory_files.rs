//! Serves the files of a build in a directory.

use std::convert::Infallible;
use std::io::ErrorKind;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tower::{Service, service_fn};
use tower_http::services::ServeDir;

/// Returns a service for the files of a directory. Names that are invalid in the file system result
/// in 404.
pub(crate) fn serve(
    files: ServeDir,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static {
    service_fn(move |request: Request| {
        let mut files = files.clone();
        async move {
            Ok(match files.try_call(request).await {
                Ok(response) => response.map(Body::new),
                Err(error) => failed(&error),
            })
        }
    })
}

fn failed(error: &std::io::Error) -> Response {
    match error.kind() {
        // `InvalidFilename` means that a name, or the whole path, is too long for the file system.
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied | ErrorKind::InvalidFilename => {
            StatusCode::NOT_FOUND.into_response()
        }
        _ => {
            tracing::error!(%error, "failed to read a file of the user interface");
            (StatusCode::INTERNAL_SERVER_ERROR, "The file cannot be read.\n").into_response()
        }
    }
}
