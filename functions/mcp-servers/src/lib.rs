//! The function of the MCP server registry: servers, their versions, and access endpoints.
//!
//! [`routes`] lists the whole API on one page. A handler parses its request and calls one method of
//! the [`store`], which accesses the table and contains no HTTP. `servers.rs`, `versions.rs` and
//! `access_endpoints.rs` have the endpoints.
//!
//! # How a server is stored
//!
//! A server is one document with its tags, its aliases, its access endpoints, and those values of
//! its latest version that lists show. The documents of a workspace share a partition, in the order
//! of their names, so that a page of servers is one query. The versions of a server are rows of one
//! partition, in the order of SemVer. Each row has the content of the version, or refers to the
//! rows with its parts.
//!
//! Every change of a server or of one of its versions that affects the latest version, the aliases
//! or the access endpoints also writes the document, on condition that it has not changed since it
//! was read. The latest version in the document is therefore always correct. A list reads no
//! versions, except those that access endpoints refer to.

mod access_endpoints;
mod aliases;
mod declaration;
mod request_targets;
mod response_visibility;
mod routes;
mod servers;
pub mod store;
mod versions;

pub use declaration::DOMAIN;
pub use routes::routes;

/// Returns the domain's router over a given store. For tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::FunctionContext::new(store.clone(), authorizer))
}
