//! The files of a build in a directory.

use std::convert::Infallible;
use std::io::ErrorKind;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tower::{Service, service_fn};
use tower_http::services::ServeDir;

/// A service that answers with the files of a directory. Names that no file can have are not there.
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
        // The last one: a name, or the whole path, is longer than the file system takes.
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied | ErrorKind::InvalidFilename => {
            StatusCode::NOT_FOUND.into_response()
        }
        _ => {
            tracing::error!(%error, "a file of the user interface cannot be read");
            (StatusCode::INTERNAL_SERVER_ERROR, "The file cannot be read.\n").into_response()
        }
    }
}
