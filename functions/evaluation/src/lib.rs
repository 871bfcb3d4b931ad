//! The evaluation function: evaluation datasets with their records, and scorers.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one call of the [`store`], which knows the
//! table and nothing of HTTP.

mod asked;
mod datasets;
pub mod lambda;
mod routes;
mod scorers;
pub mod store;

pub use routes::routes;

/// The router of the function.
pub fn router(store: &store::Store) -> axum::Router {
    service::router(routes(), &service::Frame::new(store.clone()))
}
