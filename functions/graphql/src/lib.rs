//! The GraphQL function: the answers of other functions' endpoints, as far as a query asks for
//! them.
//!
//! `schema.graphql` is the whole schema on one page, [`roots`](mod@roots) says which endpoint
//! answers each root. It calls those endpoints for the same caller, with the same needs, and
//! makes no request to the table itself.
//!
//! `POST /graphql` → `query.rs` parses and validates on a thread for blocking work, 16 queries of a
//! process at a time. `operation.rs` checks MLflow's limits. `root.rs` has the roots, and
//! `object.rs` the objects that they answer. `requests.rs` calls the endpoint that `roots.rs`
//! names, through `service::Calls`. Caller and needs are those of REST.

mod declaration;
mod limits;
mod object;
mod operation;
mod query;
mod requests;
mod root;
mod roots;
mod store;

use access::Permission::SignedIn;
use service::{Frame, Paths, Route};

pub use declaration::DOMAIN;
pub use store::Store;

/// The routes of this function. A query itself needs nothing: each endpoint that it calls asks for
/// its own needs.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        Route::to::<query::Query>("GET", "/graphql", SignedIn).under(Paths::Bare),
        Route::to::<query::Query>("POST", "/graphql", SignedIn).under(Paths::Bare),
    ]
}

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &Frame::guarded(store.clone(), authorizer))
}
