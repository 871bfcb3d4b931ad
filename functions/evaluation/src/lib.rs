//! The evaluation function: evaluation datasets with their records, and scorers.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one call of the [`store`], which knows the
//! table and nothing of HTTP.

mod asked;
mod datasets;
mod routes;
mod row;
mod scorers;
pub mod store;

pub use routes::routes;
pub use row::DOMAIN;

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::Frame::guarded(store.clone(), authorizer))
}
