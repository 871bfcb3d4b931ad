//! The registry function: registered models, their versions, tags, aliases and stages. Prompts are
//! registered models with a tag.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one call of the
//! [`store`]. The store knows the table and nothing of HTTP. `source.rs` says what the source of a
//! version may be.
//!
//! The **model key** is the workspace and the name of a model: its rows are under it. The **home**
//! of a model is the partition of its versions, that of its first name. A renamed model keeps its
//! home.
//!
//! # A version is read by its alias
//!
//! `GET registered-models/alias` → `aliases::Get` → `Store::alias_get` (`store/alias.rs`).
//!
//! 1. One query of LSI1 in `RM#<name>` brings the model, and up to 24 versions that have aliases,
//!    whole. Any other version takes one request more. `latest` is no alias in the map and is read
//!    with two requests.
//! 2. The model's map of aliases names the version. A renamed model names its home, and the query
//!    is made there once more (`docs/adr/0014-model-homes.md`).
//! 3. A tag too big for the version's document is in a row: one more request.
//!
//! # A version is created
//!
//! `POST model-versions/create` → `versions::Create` → `Store::version_create`
//! (`store/version.rs`).
//!
//! 1. `version_source` checks that the decoded source is still the location that it seems to name.
//!    It also checks a source that is a path of the server, or goes through it. Such a source must
//!    belong to the run or the logged model that the request names.
//! 2. The model is read: it holds the count of its versions.
//! 3. One transaction raises the count if it is still the same and puts the version under the next
//!    number. A row in the run's partition names the version. The tag of the logged model, if the
//!    request names one, lists it (`store/logged_model.rs`).
//! 4. A writer that loses the race gets the model as it is now, and tries the next number.

mod aliases;
mod declaration;
mod models;
mod routes;
mod shown;
mod source;
pub mod store;
mod versions;

pub use declaration::DOMAIN;
pub use routes::routes;

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::Frame::guarded(store.clone(), authorizer))
}
