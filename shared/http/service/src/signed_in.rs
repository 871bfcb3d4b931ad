//! Routers that belong to no function: their callers have to be known, too.

use std::sync::Arc;

use access::{Arrived, Authorizer};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use mlflow_api::Result;

use crate::answer::error_response;

/// Paths that are open to everybody, as with MLflow (`_UNPROTECTED_PATH_PREFIXES`): the page for
/// signing in has its own files.
pub(crate) const OPEN: [&str; 2] = ["/static-files/", "/favicon.ico"];

/// The same router for those who are known to the authorizer, but for the files of the page.
pub fn signed_in(router: Router, authorizer: Arc<dyn Authorizer>) -> Router {
    router.layer(from_fn(move |request: Request, next: Next| {
        let authorizer = Arc::clone(&authorizer);
        async move { answer(authorizer.as_ref(), request, next).await }
    }))
}

async fn known(authorizer: &dyn Authorizer, arrived: &Arrived) -> Result<()> {
    let identity = authorizer.authenticate(arrived).await?;
    authorizer.confirm(identity).await.map(drop)
}

async fn answer(authorizer: &dyn Authorizer, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let is_open = OPEN.iter().any(|open| parts.uri.path().starts_with(open));
    if !is_open && let Err(error) = known(authorizer, &Arrived::of(&parts)).await {
        return error_response(&error);
    }
    next.run(Request::from_parts(parts, body)).await.into_response()
}
