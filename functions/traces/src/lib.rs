//! The traces function: traces, their spans and assessments.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one call or two of the [`store`], which knows the
//! table and nothing of HTTP.

mod artifact;
mod assessments;
mod delete;
mod figures;
mod link;
mod named;
mod otlp;
mod read;
mod routes;
mod row;
mod search;
mod shown;
mod start;
pub mod store;
mod tags;

pub use routes::routes;
pub use row::DOMAIN;

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::Frame::guarded(store.clone(), authorizer))
}
