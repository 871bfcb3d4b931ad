//! The tracking function: experiments, runs, metrics, params, tags, logged models, datasets of runs.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one call of the [`store`], which knows the
//! table and nothing of HTTP.

pub mod absent;
mod experiments;
mod logged_models;
mod logging;
mod metrics;
mod routes;
mod row;
mod runs;
mod server;
pub mod store;

pub use routes::routes;
pub use row::DOMAIN;
pub use server::VERSION;

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    let rows = routes().into_iter().chain(absent::rows()).collect();
    service::router(rows, &service::Frame::guarded(store.clone(), authorizer))
}
