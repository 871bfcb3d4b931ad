//! Authentication for routers that do not belong to a function.

use std::sync::Arc;

use access::{Authorizer, RequestHead};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use mlflow_api::Result;

use crate::endpoint_response::error_response;

/// Prefixes of the paths that are served without authentication, as in MLflow
/// (`_UNPROTECTED_PATH_PREFIXES`).
pub(crate) const PUBLIC_PATH_PREFIXES: [&str; 2] = ["/static-files/", "/favicon.ico"];

/// Restricts a router to callers that the authorizer can identify, except for the static files of
/// the user interface.
pub fn require_sign_in(router: Router, authorizer: Arc<dyn Authorizer>) -> Router {
    router.layer(from_fn(move |request: Request, next: Next| {
        let authorizer = Arc::clone(&authorizer);
        async move { answer(authorizer.as_ref(), request, next).await }
    }))
}

async fn check_caller(authorizer: &dyn Authorizer, arrived: &RequestHead) -> Result<()> {
    let identity = authorizer.authenticate(arrived).await?;
    authorizer.confirm(identity).await.map(drop)
}

async fn answer(authorizer: &dyn Authorizer, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let is_open = PUBLIC_PATH_PREFIXES.iter().any(|open| parts.uri.path().starts_with(open));
    if !is_open && let Err(error) = check_caller(authorizer, &RequestHead::of(&parts)).await {
        return error_response(&error);
    }
    next.run(Request::from_parts(parts, body)).await.into_response()
}
