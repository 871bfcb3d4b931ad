//! The registry function: registered models, their versions, tags, aliases and stages. Prompts are registered models with a tag.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one call of the [`store`], which knows the
//! table and nothing of HTTP.

mod aliases;
mod models;
mod routes;
mod row;
mod shown;
mod source;
pub mod store;
mod versions;

pub use routes::routes;
pub use row::DOMAIN;

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::Frame::guarded(store.clone(), authorizer))
}
