//! The registry function: registered models, their versions, tags, aliases and stages. Prompts are
//! registered models with a tag.
//!
//! [`routes`] lists the whole API on one page. A handler parses its request and calls one method of
//! the [`store`], which accesses the table and contains no HTTP. `source_uri.rs` defines which
//! sources a version may have.
//!
//! The **model key** consists of the workspace and the name of a model, and is part of the keys of
//! the model's rows. The **home** of a model is the partition that contains its versions. It is
//! determined by the model's first name, and does not change when the model is renamed.
//!
//! # How a version is read by its alias
//!
//! `GET registered-models/alias` → `aliases::Get` → `Store::alias_get` (`store/alias.rs`).
//!
//! 1. One query of LSI1 in `RM#<name>` returns the model and up to 24 complete versions that have
//!    aliases. Any other version takes one more request. `latest` is not in the model's map of
//!    aliases, and is read with two requests.
//! 2. The model's map of aliases determines the version. If the model was renamed, its item
//!    contains the home, and the query is repeated there (`docs/adr/0014-model-homes.md`).
//! 3. Tags that are too large for the version's document are in rows, which take one more request.
//!
//! # How a version is created
//!
//! `POST model-versions/create` → `versions::Create` → `Store::version_create`
//! (`store/version.rs`).
//!
//! 1. `version_source` checks that the source, once decoded, still refers to the location that it
//!    appears to refer to. A source that is a path of the server, or leads through the server, must
//!    belong to the run or the logged model that the request names.
//! 2. The model is read, because it contains the number of its versions.
//! 3. One transaction increments this number, on condition that it has not changed, and puts the
//!    version under the next number. A row in the partition `MVRUN#<run>` refers to the version. If the
//!    request names a logged model, the version is added to the list in that model's tag
//!    (`store/logged_model.rs`).
//! 4. If another request has created a version first, the condition fails and returns the current
//!    model, and the request tries the next number.

mod aliases;
mod declaration;
mod models;
mod response_visibility;
mod routes;
mod source_uri;
pub mod store;
mod versions;

pub use declaration::DOMAIN;
pub use routes::routes;

/// Returns the domain's router over a given store. For tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::FunctionContext::new(store.clone(), authorizer))
}
