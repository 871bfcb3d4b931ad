//! The artifacts function: the proxy behind `mlflow-artifacts:/`, and what the user interface lists, reads and uploads.
//!
//! [`routes`] is its whole API on one page. A handler reads its request, asks the [`store`] where the artifacts of a run are, and leaves
//! them to that place (`shared/artifact-store`).

pub mod lambda;
mod multipart;
mod presigned;
mod proxy;
mod routes;
mod run;
mod served_path;
pub mod store;

pub use routes::routes;

/// The router of the function.
pub fn router(store: &store::Store) -> axum::Router {
    service::router(routes(), &service::Frame::new(store.clone()))
}
