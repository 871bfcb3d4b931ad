//! The registry function: registered models, their versions, tags, aliases and stages. Prompts are registered models with a tag.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one call of the [`store`], which knows the
//! table and nothing of HTTP.

mod aliases;
pub mod lambda;
mod models;
mod routes;
mod source;
pub mod store;
mod versions;

pub use routes::routes;

/// The router of the function.
pub fn router(store: &store::Store) -> axum::Router {
    service::router(routes(), &service::Frame::new(store.clone()))
}
