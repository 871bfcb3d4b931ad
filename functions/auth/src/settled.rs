//! Changes are answered once they hold in every process.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use http::{Method, StatusCode};
use permissions::LEASE;

/// The same router, which answers a change when no process relies on the earlier state any more.
pub(crate) fn settled(router: Router) -> Router {
    router.layer(from_fn(|request: Request, next: Next| async move {
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let answer = next.run(request).await;
        // An answer that something is not there, or no answer, may follow an earlier request that
        // has taken it away.
        let status = answer.status();
        let is_settled = status.is_client_error() && status != StatusCode::NOT_FOUND;
        if changes && !is_settled {
            clock::sleep(LEASE).await;
        }
        answer
    }))
}
