//! The artifacts function: the proxy behind `mlflow-artifacts:/`, and what the user interface lists, reads and uploads.
//!
//! [`routes`] is its whole API on one page. A handler reads its request, asks the [`store`] where the artifacts of a run are, and leaves
//! them to that place (`shared/artifact-store`).

mod multipart;
mod presigned;
mod proxy;
mod routes;
mod row;
mod run;
mod served_path;
pub mod store;

pub use routes::routes;
pub use row::DOMAIN;

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::Frame::guarded(store.clone(), authorizer))
}
