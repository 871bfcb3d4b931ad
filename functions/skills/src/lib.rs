//! The function of the skill registry: skills, their versions, and uploaded content.
//!
//! [`routes`] lists the whole API on one page. A handler parses its request and calls one method of
//! the [`store`], which accesses the table and contains no HTTP. `skills.rs`, `versions.rs` and
//! `aliases.rs` have the endpoints, and `registrations.rs` those that create versions.
//!
//! # How a skill is stored
//!
//! A skill is one document with its tags, its aliases, and the facts about its latest version that
//! lists show. The documents of a workspace share a partition, in the order of their organizations
//! and names, so that a page of skills is one query. Versions are rows of a partition per skill.
//!
//! Every change of a version that affects the latest version or the aliases also writes the document,
//! on condition that it has not changed since it was read. The latest version in the document is
//! therefore always correct.
//!
//! Each upload is unpacked in memory (`content/`). Its files are stored in a new directory below
//! the artifact root, before the row of the version is written.

mod aliases;
mod content;
mod declaration;
mod multipart;
mod registrations;
mod request_targets;
mod response_visibility;
mod routes;
mod skills;
pub mod store;
mod versions;

pub use declaration::DOMAIN;
pub use routes::routes;

/// Returns the domain's router over a given store. For tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    let router = service::router(routes(), &service::FunctionContext::new(store.clone(), authorizer));
    service::normalize_paths(router)
}
