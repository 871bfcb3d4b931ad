//! What is changed here holds in every process once it was answered.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use http::{Method, StatusCode};
use permissions::LEASE;

/// The same router, which answers a change when no process relies any more on what was before.
pub(crate) fn settled(router: Router) -> Router {
    router.layer(from_fn(|request: Request, next: Next| async move {
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let answer = next.run(request).await;
        // Whoever is told that something is not there, or is not told, may be the second who takes it away.
        let status = answer.status();
        let is_settled = status.is_client_error() && status != StatusCode::NOT_FOUND;
        if changes && !is_settled {
            clock::sleep(LEASE).await;
        }
        answer
    }))
}
