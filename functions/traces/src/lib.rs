//! The traces function: traces, their spans and assessments.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one call or two of the [`store`], which knows the
//! table and nothing of HTTP.

mod artifact;
mod assessments;
mod delete;
mod figures;
pub mod lambda;
mod link;
mod named;
mod otlp;
mod read;
mod routes;
mod search;
mod start;
pub mod store;
mod tags;

pub use routes::routes;

/// The router of the function.
pub fn router(store: &store::Store) -> axum::Router {
    service::router(routes(), &service::Frame::new(store.clone()))
}
