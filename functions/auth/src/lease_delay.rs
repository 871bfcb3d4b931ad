//! Delays responses to changes until the changes are in effect in every process.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use http::{Method, StatusCode};
use permissions::LEASE;

/// Wraps a router so that it responds to a change only after the lease has expired. By then, no
/// process relies on the earlier state any more.
pub(crate) fn with_lease_delay(router: Router) -> Router {
    router.layer(from_fn(|request: Request, next: Next| async move {
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let answer = next.run(request).await;
        // Responses with client errors are not delayed, because nothing has changed. The exception
        // is 404, because an earlier attempt of the request may have deleted the entity.
        let status = answer.status();
        let is_settled = status.is_client_error() && status != StatusCode::NOT_FOUND;
        if changes && !is_settled {
            runtime::clock::sleep(LEASE).await;
        }
        answer
    }))
}
